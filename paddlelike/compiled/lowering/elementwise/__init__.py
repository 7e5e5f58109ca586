"""Lowerings of each element."""
