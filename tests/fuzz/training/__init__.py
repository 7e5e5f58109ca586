"""Random training programs, run through every path of the executor."""
