"""Converters of elementwise operators to ONNX."""
