"""Functions that translate operators into CNTK's operations, one module per family."""
