"""Write a program for prediction as an ONNX model: `export.py` leads; one function for each operator."""
