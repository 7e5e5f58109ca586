"""Arithmetic as in C: log(0) is -inf and 1 / 0 is inf, without a warning."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np

__all__ = ["run_quietly"]

T = TypeVar("T")


def _find_setting() -> tuple[contextvars.ContextVar[Any], Any] | None:
    """Return the variable in which numpy keeps what it does about such results, and its value for nothing.

    None where numpy does not keep it in a context, as before 2.0.
    """

    def look() -> list[tuple[contextvars.ContextVar[Any], Any]]:
        with np.errstate(all="ignore"):
            return list(contextvars.copy_context().items())

    found = contextvars.Context().run(look)
    return found[0] if len(found) == 1 else None


def _run_with_errstate(function: Callable[..., T], *args: Any) -> T:
    with np.errstate(all="ignore"):
        return function(*args)


def _make_runner() -> Callable[..., Any]:
    setting = _find_setting()
    if setting is None:
        return _run_with_errstate
    variable, quiet = setting
    replace, restore = variable.set, variable.reset

    def run(function: Callable[..., T], *args: Any) -> T:
        token = replace(quiet)
        try:
            return function(*args)
        finally:
            restore(token)

    return run


#: Returns what a function of some arguments returns, with the warnings of numpy switched off. It takes a
#: tenth of a microsecond; ``np.errstate`` takes nearly one, as it looks through its options each time.
run_quietly: Final = _make_runner()
