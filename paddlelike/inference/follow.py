"""A predictor that loads the saves of a running training."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from paddlelike.core import CPUPlace, Scope, scope_guard
from paddlelike.errors import PaddlelikeError
from paddlelike.executor.run import Executor
from paddlelike.foundation.locks import RLock
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program
from paddlelike.io.load.load import load_persistables
from paddlelike.storage.location import locate
from paddlelike.storage.problems import is_system_error

T = TypeVar("T")


class Follower:
    """Keeps the parameters of a program at the newest save of a directory.

    A function called by :meth:`run` uses the values of one whole save, with its deltas; one call runs at a
    time. If a save cannot be read, a warning is issued and the values stay.

    Parameters
    ----------
    program, scope
        The model; its persistables are in the scope.
    dirname
        The directory into which ``save_persistables`` saves repeatedly, whole or with ``delta=True``.

    Attributes
    ----------
    taken
        The number of loaded saves.
    seconds
        The seconds that the last load took, from the moment when the save was noticed.
    """

    def __init__(self, program: Program, scope: Scope, dirname: str | os.PathLike[str]) -> None:
        self._program, self._scope, self._dirname = program, scope, os.fspath(dirname)
        self._executor, self._lock = Executor(CPUPlace()), RLock()
        self._stamp: object = None
        self.taken, self.seconds = 0, 0.0

    def run(self, work: Callable[[], T]) -> T:
        """Load the newest save, if there is one, then return ``work()``, under a lock."""
        with self._lock.hold():
            self.refresh()
            return work()

    def refresh(self) -> bool:
        """Load the newest save. Return whether there was a new one that could be read."""
        with self._lock.hold():
            stamp = locate(self._dirname).stamp()
            if stamp is None or stamp == self._stamp:
                return False
            begin = time.perf_counter()
            try:
                with scope_guard(self._scope):
                    load_persistables(self._executor, self._dirname, self._program)
            except PaddlelikeError as error:
                if not is_system_error(error):  # the problem may be temporary
                    self._stamp = stamp
                warn_user(f"{self._dirname} was not loaded, the earlier values remain: {error.message}")
                return False
            self._stamp = stamp
            self.taken, self.seconds = self.taken + 1, time.perf_counter() - begin
            return True
