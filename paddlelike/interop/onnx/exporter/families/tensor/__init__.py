"""Operators to ONNX: shapes and indexing."""
