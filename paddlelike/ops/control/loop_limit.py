"""Limits for the loops of a run, since a model from a file may have one that never ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from paddlelike.errors import EnforceNotMet

Result = TypeVar("Result")

_HINT: Final = "is its condition computed anew in the block? A loop that ends needs a higher limit"


class _OfThread(threading.local):
    limit: LoopLimit | None = None


_current: Final = _OfThread()


class LoopLimit:
    """The limit of the loops of one run in this thread.

    Parameters
    ----------
    steps
        Of each loop. None: any count.
    seconds
        For all loops of the run, looked at after each step. None: without limit.

    >>> LoopLimit(steps=2).run(lambda: [find_limit().check(step) for step in range(3)])
    Traceback (most recent call last):
      ...
    paddlelike.errors.EnforceNotMet: the loop has not ended after 2 steps, the limit of this run
      hint: is its condition computed anew in the block? A loop that ends needs a higher limit
    """

    def __init__(self, *, steps: int | None = None, seconds: float | None = None) -> None:
        self._steps, self._seconds = steps, seconds
        self._end = float("inf")

    def run(self, function: Callable[[], Result]) -> Result:
        """Return ``function()``, whose loops have this limit."""
        self._end = float("inf") if self._seconds is None else time.monotonic() + self._seconds
        before = _current.limit
        try:
            _current.limit = self
            return function()
        finally:
            _current.limit = before

    def check(self, done: int) -> None:
        """Raise EnforceNotMet if a loop has reached the limit after ``done`` steps."""
        if self._steps is not None and done >= self._steps:
            raise EnforceNotMet(
                f"the loop has not ended after {done} steps, the limit of this run", hint=_HINT
            )
        if time.monotonic() > self._end:
            raise EnforceNotMet(
                f"the loop has not ended after {self._seconds:g} s and {done} steps; the limit of the loops "
                f"of this run is {self._seconds:g} s",
                hint=_HINT,
            )


def find_limit() -> LoopLimit | None:
    """Return the limit of the run that this thread carries out, or None."""
    return _current.limit
