"""Operators from ONNX: products and Fourier transforms."""
