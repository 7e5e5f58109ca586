"""The exit code of a script that a fault has ended, by which a launcher decides whether to start it again."""

from __future__ import annotations

import functools
import sys
from types import TracebackType

from paddlelike.errors import FaultError


@functools.cache
def exit_by_code() -> None:
    """Let a FaultError that nobody catches end this process with its ``exit_code`` instead of 1.

    The traceback is printed as before.
    """
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        if isinstance(error, FaultError):
            raise SystemExit(error.exit_code)

    sys.excepthook = show
