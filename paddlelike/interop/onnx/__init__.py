"""Programs for prediction as ONNX models, and ONNX models as programs."""

from paddlelike.interop.onnx.exporter.export import OnnxReport, export_onnx
from paddlelike.interop.onnx.importer.build import import_onnx

__all__ = ["OnnxReport", "export_onnx", "import_onnx"]
