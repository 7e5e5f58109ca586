"""The package onnx, which is an extra."""

from __future__ import annotations

from types import ModuleType

from paddlelike.errors import ExtraMissingError


def import_onnx_package(door: str) -> ModuleType:
    """Return the package onnx. Raises ExtraMissingError when it is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise ExtraMissingError(f"{door} needs onnx, which is not installed", extra="onnx") from error
    return onnx
