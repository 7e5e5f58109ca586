"""Lowerings of the operators on sequences."""
