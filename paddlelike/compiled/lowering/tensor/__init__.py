"""Lowerings of tensors: places, sizes, joins."""
