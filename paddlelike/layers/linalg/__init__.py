"""Matrices: products, distances, diagonals and triangles."""
