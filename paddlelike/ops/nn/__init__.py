"""Operators of feed-forward networks: convolution, pooling, normalization, embedding, images."""
