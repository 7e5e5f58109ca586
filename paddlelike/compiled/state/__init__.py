"""Values that stay on the device between runs of a program."""
