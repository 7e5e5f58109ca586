"""Operators as the compiled engine traces them: each primitive of JAX becomes nodes of ONNX."""
