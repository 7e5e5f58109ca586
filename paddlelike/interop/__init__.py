"""Doors to other systems: converting tensors between file formats."""

from paddlelike.interop.convert import ConvertReport, convert

__all__ = ["ConvertReport", "convert"]
