"""Write a program for prediction as an ONNX model. Start at `export.py`; each operator has one function."""
