"""Readers of products and Fourier transforms."""
