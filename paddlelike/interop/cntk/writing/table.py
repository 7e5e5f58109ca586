"""The table of operators that CNTK's operations express: a function each, in the modules of the families."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Final

from paddlelike.interop.cntk.writing.graph import Step

__all__ = ["Writer", "load_writers", "writes"]

Writer = Callable[[Step], None]

_FAMILIES: Final = (
    "elementwise",
    "images",
    "index",
    "losses",
    "matrices",
    "normalize",
    "sequences",
    "shapes",
)
_TABLE: Final[dict[str, Writer]] = {}


def writes(*types: str) -> Callable[[Writer], Writer]:
    """Return a decorator that puts a function into the table, for operators of these types."""

    def decorate(function: Writer) -> Writer:
        for type_ in types:
            assert type_ not in _TABLE, type_
            _TABLE[type_] = function
        return function

    return decorate


@cache
def load_writers() -> dict[str, Writer]:
    """Return the function of each operator, by its type."""
    for family in _FAMILIES:
        importlib.import_module(f"paddlelike.interop.cntk.writing.{family}")
    return _TABLE
