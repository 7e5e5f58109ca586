"""Elementwise operators from ONNX."""
