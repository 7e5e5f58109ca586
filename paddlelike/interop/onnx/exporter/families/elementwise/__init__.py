"""Operators to ONNX: of each element."""
