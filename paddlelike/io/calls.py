"""Checks of arguments and warnings that concern the user's own call."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from paddlelike.executor.run import Executor

__all__ = ["check_executor", "warn_user"]


def check_executor(executor: Any, function: str) -> None:
    """Raise TypeError when what was passed to ``function`` as its executor is none."""
    if not isinstance(executor, Executor):
        raise TypeError(f"{function}: executor is a fluid.Executor, not {executor!r}")


def warn_user(message: str) -> None:
    """Issue a UserWarning at the nearest line outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and "paddlelike" in frame.f_globals.get("__name__", "").split("."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level + 1)
