"""The table of CNTK's operations that programs express: a function each, in the modules of the families."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from paddlelike.interop.cntk.operations import NUMBERS
from paddlelike.interop.cntk.reading.step import Step, Value
from paddlelike.interop.reader_tables import Table

Reader = Callable[[Step], "Value | tuple[Value, ...]"]

_TABLE: Final = Table[Reader]("paddlelike.interop.cntk.reading")
reads = _TABLE.add


@cache
def load_readers() -> dict[int, Reader]:
    """Return the function of each operation, by its number."""
    return {NUMBERS[name]: function for name, function in _TABLE.load().items()}
