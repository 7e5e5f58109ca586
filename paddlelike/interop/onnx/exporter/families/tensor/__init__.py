"""Converters of shapes and indexing to ONNX."""
