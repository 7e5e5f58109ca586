"""Progress of a training: printed, drawn as a bar, written into a log."""
