"""The functions of ONNX's operators, by family."""
