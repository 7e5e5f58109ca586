"""Converters of network layers to ONNX."""
