"""Rules that map names of a checkpoint to variables of a program."""
