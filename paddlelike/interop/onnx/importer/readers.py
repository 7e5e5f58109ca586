"""The table of ONNX's operators that a program can express: a function for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paddlelike.interop.onnx.importer.node import Node
from paddlelike.interop.reader_tables import Table

Converter = Callable[[Node], None]

#: The domain of classic machine learning; its operators are in the table with this before their names.
ML: Final = "ai.onnx.ml."

_TABLE: Final = Table[Converter](
    "paddlelike.interop.onnx.importer.families",
    (
        "elementwise.activation",
        "elementwise.binary",
        "control",
        "detection",
        "nn.grid_sample",
        "nn.image",
        "tensor.gather",
        "machine_learning.encoders",
        "machine_learning.linear_models",
        "machine_learning.support_vectors",
        "linalg.products",
        "linalg.signal",
        "loss",
        "nn.normalization",
        "nn.pool",
        "nn.quantization",
        "random",
        "recurrent.layers",
        "reduction",
        "tensor.lists",
        "tensor.reshape",
        "tensor.unique",
        "machine_learning.trees",
    ),
)
reads = _TABLE.add
load_table = _TABLE.load
