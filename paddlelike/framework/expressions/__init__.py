"""Python expressions on variables (``x + y``, ``x[0]``), as operators of the current block."""
