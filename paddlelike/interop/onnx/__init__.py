"""Programs for prediction as ONNX models."""

from paddlelike.interop.onnx.export import OnnxReport, export_onnx

__all__ = ["OnnxReport", "export_onnx"]
