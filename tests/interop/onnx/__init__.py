"""ONNX models that onnxruntime computes as the programs do."""
