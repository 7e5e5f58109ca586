"""The table of operators that ONNX can express: a function for each, in the modules of the families."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Final

from paddlelike.interop.onnx.exporter.graph import Step

__all__ = ["Converter", "converts", "load_table"]

Converter = Callable[[Step], None]

_FAMILIES: Final = (
    "activation",
    "arithmetic",
    "control",
    "detection",
    "images",
    "index",
    "matrices",
    "normalize",
    "recurrent",
    "reduction",
    "sequence",
    "shapes",
)
_TABLE: Final[dict[str, Converter]] = {}


def converts(*types: str) -> Callable[[Converter], Converter]:
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
        importlib.import_module(f"paddlelike.interop.onnx.exporter.families.{family}")
    return _TABLE
