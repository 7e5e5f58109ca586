"""Lowerings of matrices."""
