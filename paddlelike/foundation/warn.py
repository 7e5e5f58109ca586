"""Warnings that point at the user's own line."""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
from types import FrameType
from typing import Final

from paddlelike.foundation.current import Block, Current

#: Files that are not the user's: this package, and the modules that run its ``with`` blocks and decorators.
_NOT_USERS: Final = (
    __file__.rpartition("foundation")[0],
    contextlib.__file__,
    functools.__file__,
)

_Held = list[tuple[str, type[Warning]]]
_held: Final = Current[_Held]([])


def hold_warnings(held: _Held) -> Block:
    """Collect this thread's warnings of :func:`warn_user`, because a repeated read would repeat them."""
    return _held.replaced(held)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning for the innermost line outside this package, or hold it back."""
    if (block := _held.find_own()) is not None:
        block.values[_held].append((message, category))
        return
    frame = find_user_frame() or sys._getframe(1)
    names = frame.f_globals
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=names.get("__name__"),
        registry=names.setdefault("__warningregistry__", {}),
    )


def find_user_frame() -> FrameType | None:
    """Return the innermost frame outside of this package, or None in a thread of the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_USERS):
        frame = frame.f_back
    return frame
