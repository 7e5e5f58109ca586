"""Runs something in a copy of this process, so that nothing here changes."""

from __future__ import annotations

import os
import select
import signal
import warnings
from collections.abc import Callable
from typing import Final

from paddlelike.foundation.locks import Keys

__all__ = ["try_aside"]

_LONGEST: Final = 120.0  # seconds; a copy may hang in a lock that another thread held


def try_aside(check: Callable[[], bool], hold: Keys, seconds: float = _LONGEST) -> bool | None:
    """Return what ``check`` returns in a fork of this process; None where that cannot be found out.

    That is where there is no fork, ``check`` takes longer than ``seconds``, or it ends the process.
    The lock of ``hold`` is held by no other thread at the fork, since it would be held for ever in the copy.

    >>> from paddlelike.foundation.locks import RLock
    >>> changed = []
    >>> try_aside(lambda: changed.append(1) is None, RLock().hold), changed
    (True, [])
    """
    if not hasattr(os, "fork"):
        return None
    answer, answers = os.pipe()
    with warnings.catch_warnings(), hold():
        for kind in (DeprecationWarning, RuntimeWarning):  # of forks beside threads: this one only checks
            warnings.simplefilter("ignore", kind)
        child = os.fork()
    if child == 0:
        code = b"?"
        try:
            code = b"y" if check() else b"n"
        finally:
            os.write(answers, code)
            os._exit(0)
    os.close(answers)
    try:
        found = os.read(answer, 1) if select.select([answer], [], [], seconds)[0] else b""
    finally:
        os.close(answer)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return {b"y": True, b"n": False}.get(found)
