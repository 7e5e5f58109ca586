"""Operators from ONNX: layers of networks."""
