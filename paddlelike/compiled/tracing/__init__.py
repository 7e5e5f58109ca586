"""Tracing the operators of a piece: contexts of lowerings, derivatives, constants, random values."""
