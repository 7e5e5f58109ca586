"""Read an ONNX model as a program: `build.py` leads; one function for each operator of ONNX."""
