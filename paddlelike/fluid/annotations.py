"""``fluid.annotations``: marks functions as deprecated."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["deprecated"]

P = ParamSpec("P")
T = TypeVar("T")


def deprecated(
    since: str, instead: str, extra_message: str = ""
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator: decorated functions write to stderr at each call that they are deprecated."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        text = f"API {function.__name__} is deprecated since {since}. Please use {instead} instead."
        text += f"\n{extra_message}" if extra_message else ""

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            print(text, file=sys.stderr)  # noqa: T201  (Fluid's way to say so)
            return function(*args, **kwargs)

        call.__doc__ = f"{function.__doc__ or ''}\n    {text}"
        return call

    return decorate
