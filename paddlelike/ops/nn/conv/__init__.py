"""Convolutions, transposed ones, and the windows they read."""
