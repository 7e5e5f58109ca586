"""Activations, arithmetic and comparison of variables, element by element."""
