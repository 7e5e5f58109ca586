"""Functions that translate CNTK's operations into operators, one module per family."""
