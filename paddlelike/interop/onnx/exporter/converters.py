"""The table of operators that ONNX can express: a function for each, in the modules of the families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paddlelike.interop.onnx.exporter.graph import Step
from paddlelike.interop.reader_tables import Table

__all__ = ["Converter", "converts", "load_table"]

Converter = Callable[[Step], None]

_TABLE: Final = Table[Converter](
    "paddlelike.interop.onnx.exporter.families",
    (
        "control",
        "detection",
        "elementwise.activation",
        "elementwise.binary",
        "fused",
        "linalg",
        "loss",
        "nn.dropout",
        "nn.embedding",
        "nn.image",
        "nn.normalization",
        "recurrent",
        "reduction",
        "sequence",
        "tensor.assign",
        "tensor.gather",
        "tensor.pad",
        "tensor.reshape",
    ),
)
converts = _TABLE.add
load_table = _TABLE.load
