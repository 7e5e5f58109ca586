"""Operators to ONNX: anchors, boxes, regions."""
