"""The table of operators that CNTK's operations express: a function each, in the modules of the families."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paddlelike.interop.cntk.writing.graph import Ref, Step
from paddlelike.interop.reader_tables import Table

#: What it returns is the value of the operator's first output.
Writer = Callable[[Step], Ref | None]

_TABLE: Final = Table[Writer]("paddlelike.interop.cntk.writing")
writes = _TABLE.add
load_writers = _TABLE.load
