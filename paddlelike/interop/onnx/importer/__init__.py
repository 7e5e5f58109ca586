"""Read an ONNX model as a program. Start at `build.py`; each ONNX operator has one function."""
