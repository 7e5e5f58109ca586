"""assign."""

from __future__ import annotations

from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.graph import Step


@converts("assign")
def _convert_assign(step: Step) -> None:
    step.give("Out", step.input())
