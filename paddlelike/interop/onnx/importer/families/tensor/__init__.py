"""Operators from ONNX: shapes and indexing."""
