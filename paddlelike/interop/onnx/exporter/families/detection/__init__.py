"""Converters of detection operators to ONNX: anchors, boxes, regions."""
