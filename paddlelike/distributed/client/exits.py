"""How a script ends that a fault has ended: with the exit code by which a launcher knows what to do."""

from __future__ import annotations

import functools
import sys
from types import TracebackType

from paddlelike.errors import FaultError

__all__ = ["exit_by_code"]


@functools.cache
def exit_by_code() -> None:
    """From now on a FaultError that nobody catches ends this process with its ``exit_code``, not with 1.

    The traceback is printed as before.
    """
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        if isinstance(error, FaultError):
            raise SystemExit(error.exit_code)

    sys.excepthook = show
