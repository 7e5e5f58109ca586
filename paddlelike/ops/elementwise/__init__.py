"""Operators on each element alone, and on pairs of elements."""
