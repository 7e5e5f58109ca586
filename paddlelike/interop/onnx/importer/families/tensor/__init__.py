"""Operators from ONNX: shapes and places."""
