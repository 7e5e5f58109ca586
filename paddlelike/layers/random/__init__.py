"""Random tensors and probability distributions."""
