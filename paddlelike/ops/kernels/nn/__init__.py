"""Kernels of networks' layers: convolutions, images, normalization."""
