"""Operators to ONNX: shapes and places."""
