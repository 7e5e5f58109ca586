"""The functions of the operators, by family."""
