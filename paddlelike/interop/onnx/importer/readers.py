"""The table of ONNX's operators that a program can express: a function for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paddlelike.interop.onnx.importer.node import Node
from paddlelike.interop.reader_tables import Table

#: What it returns is the name of the operator's first output.
Converter = Callable[[Node], str | None]

#: The domain of classic machine learning; its operators are in the table with this before their names.
ML: Final = "ai.onnx.ml."

_TABLE: Final = Table[Converter]("paddlelike.interop.onnx.importer.families")
reads = _TABLE.add
load_table = _TABLE.load
