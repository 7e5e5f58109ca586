"""The table of ONNX's operators that a program can express: a function for each."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Final

from paddlelike.interop.onnx.importer.node import Node

__all__ = ["ML", "Converter", "load_table", "reads"]

Converter = Callable[[Node], None]

#: The domain of classic machine learning; its operators are in the table with this before their names.
ML: Final = "ai.onnx.ml."
_FAMILIES: Final = (
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
)
_TABLE: Final[dict[str, Converter]] = {}


def reads(*types: str) -> Callable[[Converter], Converter]:
    """Return a decorator that puts a function into the table, for operators of these types."""

    def decorate(function: Converter) -> Converter:
        for type_ in types:
            assert type_ not in _TABLE, type_
            _TABLE[type_] = function
        return function

    return decorate


@cache
def load_table() -> dict[str, Converter]:
    """Return the function of each operator type."""
    for family in _FAMILIES:
        importlib.import_module(f"paddlelike.interop.onnx.importer.families.{family}")
    return _TABLE
