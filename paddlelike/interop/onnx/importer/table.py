"""The table of ONNX's operators that a program can express: a function for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paddlelike.interop.onnx.importer.node import Node
from paddlelike.interop.table import Table

__all__ = ["ML", "Converter", "load_table", "reads"]

Converter = Callable[[Node], None]

#: The domain of classic machine learning; its operators are in the table with this before their names.
ML: Final = "ai.onnx.ml."

_TABLE: Final = Table[Converter](
    "paddlelike.interop.onnx.importer.families",
    (
        "activation",
        "arithmetic",
        "control",
        "detection",
        "images",
        "index",
        "linear_models",
        "matrices",
        "normalize",
        "pooling",
        "recurrent",
        "reduction",
        "shapes",
        "trees",
    ),
)
reads = _TABLE.add
load_table = _TABLE.load
