"""Operators from ONNX: the domain ai.onnx.ml."""
