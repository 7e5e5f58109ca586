"""Pauses of Python's collector of cyclic garbage, while many objects that stay are created."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def pause_collection(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Return a function that pauses the collector while ``function`` runs.

    The collector goes through all objects again and again as their number grows, and finds nothing: reading
    a program of 20,000 operators takes half the time without it. It stays off where the caller turned it off.

    >>> pause_collection(gc.isenabled)()
    False
    """

    @functools.wraps(function)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        if not gc.isenabled():
            return function(*args, **kwargs)
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return run
