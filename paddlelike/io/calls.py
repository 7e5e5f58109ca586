"""Checks of arguments of saves and loads."""

from __future__ import annotations

import os

from paddlelike.executor.run import Executor


def check_executor(executor: object, function: str) -> None:
    """Raise TypeError when what was passed to ``function`` as its executor is none."""
    if not isinstance(executor, Executor):
        raise TypeError(
            f"{function}: executor must be a fluid.Executor, got {executor!r}\n"
            "  hint: make one with fluid.Executor(fluid.CPUPlace()); saves and loads take it before the "
            "directory, save_inference_model after the targets"
        )


def check_directory(dirname: object, function: str) -> None:
    """Raise TypeError when what was passed to ``function`` as its directory is not a path."""
    if dirname is not None and not isinstance(dirname, str | bytes | os.PathLike):
        raise TypeError(
            f"{function}: dirname must be a path, got a {type(dirname).__name__}\n"
            "  hint: the executor comes first, then the directory, then the program"
        )
