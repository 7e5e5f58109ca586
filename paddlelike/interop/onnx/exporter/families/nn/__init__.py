"""Operators to ONNX: layers of networks."""
