"""Layers of feed-forward networks: dense, convolution, pooling, normalization, embedding, images."""
