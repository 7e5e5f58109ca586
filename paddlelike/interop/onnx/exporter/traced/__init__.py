"""Operators as the compiled engine traces them: JAX's primitives, each as nodes of ONNX."""
