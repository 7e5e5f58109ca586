"""Programs for prediction as ONNX models."""

from paddlelike.interop.onnx.exporter.export import OnnxReport, export_onnx

__all__ = ["OnnxReport", "export_onnx"]
