"""Control flow, tensor arrays, and calls out of the program."""
