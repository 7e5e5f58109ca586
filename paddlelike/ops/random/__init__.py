"""Random tensors and random choices."""
