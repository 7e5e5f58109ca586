"""Control flow and tensor arrays."""
