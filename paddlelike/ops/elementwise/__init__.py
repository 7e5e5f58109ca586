"""Elementwise operators of one or two tensors."""
