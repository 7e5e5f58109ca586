"""Tracing the operators of a piece: what lowerings see, derivatives, constants, random values."""
