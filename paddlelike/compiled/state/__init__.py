"""What stays on the device between the runs of a program, and how the next run finds it."""
