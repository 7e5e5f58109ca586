"""Branches, loops, and arrays of tensors."""
