"""The table of CNTK's operations that programs express: a function each, in the modules of the families."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Final

from paddlelike.interop.cntk.operations import NUMBERS
from paddlelike.interop.cntk.reading.step import Step, Value

__all__ = ["Reader", "load_readers", "reads"]

Reader = Callable[[Step], "Value | tuple[Value, ...]"]

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
_TABLE: Final[dict[int, Reader]] = {}


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Return a decorator that puts a function into the table, for the operations of these names."""

    def decorate(function: Reader) -> Reader:
        for name in names:
            assert NUMBERS[name] not in _TABLE, name
            _TABLE[NUMBERS[name]] = function
        return function

    return decorate


@cache
def load_readers() -> dict[int, Reader]:
    """Return the function of each operation, by its number."""
    for family in _FAMILIES:
        importlib.import_module(f"paddlelike.interop.cntk.reading.{family}")
    return _TABLE
