"""Operators that create, join, cut, index and reshape tensors."""
