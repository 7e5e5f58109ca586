"""Operators from ONNX: of each element."""
