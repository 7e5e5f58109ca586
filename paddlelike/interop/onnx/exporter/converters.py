"""The table of operators that ONNX can express: a function for each, in the modules of the families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paddlelike.framework import Operator
from paddlelike.interop.onnx.exporter.graph import Step
from paddlelike.interop.onnx.exporter.traced.operator import convert_traced, is_traceable
from paddlelike.interop.reader_tables import Table

#: What it returns is the value of the operator's first output.
Converter = Callable[[Step], str | None]

_TABLE: Final = Table[Converter]("paddlelike.interop.onnx.exporter.families")
converts = _TABLE.add
load_table = _TABLE.load


def find_converter(op: Operator) -> Converter | None:
    """Return the converter of an operator: its own, or the converter that traces its lowering."""
    return load_table().get(op.type) or (convert_traced if is_traceable(op) else None)
