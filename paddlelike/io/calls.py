"""Checks of arguments and warnings that concern the user's own call."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

from paddlelike.executor.run import Executor

__all__ = ["check_directory", "check_executor", "hold_warnings", "warn_user"]

_held: Final[ContextVar[list[str] | None]] = ContextVar("paddlelike_held_warnings", default=None)


def check_executor(executor: object, function: str) -> None:
    """Raise TypeError when what was passed to ``function`` as its executor is none."""
    if not isinstance(executor, Executor):
        raise TypeError(
            f"{function}: executor must be a fluid.Executor, got {executor!r}\n"
            "  hint: make one with fluid.Executor(fluid.CPUPlace()); saves and loads take it before the "
            "directory, save_inference_model after the targets"
        )


def check_directory(dirname: object, function: str) -> None:
    """Raise TypeError when what was passed to ``function`` as its directory is no path."""
    if dirname is not None and not isinstance(dirname, str | bytes | os.PathLike):
        raise TypeError(
            f"{function}: dirname must be a path, got a {type(dirname).__name__}\n"
            "  hint: the executor comes first, then the directory, then the program"
        )


@contextlib.contextmanager
def hold_warnings() -> Iterator[list[str]]:
    """Collect the messages of :func:`warn_user` instead of issuing them: a read may have to be repeated."""
    held: list[str] = []
    token = _held.set(held)
    try:
        yield held
    finally:
        _held.reset(token)


def warn_user(message: str) -> None:
    """Issue a UserWarning at the nearest line outside of this package, or hold it."""
    held = _held.get()
    if held is not None:
        held.append(message)
        return
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and "paddlelike" in frame.f_globals.get("__name__", "").split("."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level + 1)
