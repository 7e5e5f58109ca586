"""Limit BLAS to one thread while programs run.

Fluid computes on one thread by default. BLAS libraries use every core, and their threads spin while they
wait, so beside another busy process a small network's step takes several times as long. Their sums also
depend on the number of threads. When a program requests more threads, the kernels divide the work themselves
(:mod:`paddlelike.ops.kernels.threads`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from paddlelike.foundation.locks import make_keys

Result = TypeVar("Result")

_RESTORING = 0.1  # seconds, more than it takes


class ThreadLimit:
    """Limits BLAS to one thread while programs run; afterwards restores its thread pools.

    The pools belong to the process: the first of several simultaneous runs limits them, the last restores
    them. If an interrupt prevents that, the next run restores them.
    """

    def __init__(self) -> None:
        self._runs: list[bool] = []  # an item for each
        self._run = make_keys(self._runs.append, self._runs.pop)
        self._is_restoring = False
        self._before: list[tuple[Callable[[int], Any], int]] = []  # changed pools: threads outside runs
        self._last_change = object()  # of a pool; each has its own

    def run(self, function: Callable[..., Result], *args: Any) -> Result:
        """Return ``function(*args)``, called with one thread of BLAS."""
        last_change = self._last_change  # read before _before, which is written before it
        if not self._before:
            for get_count, _ in _find_pools():
                if get_count() != 1:
                    break
            else:
                if last_change is self._last_change:  # the pools have one thread outside runs, too
                    return function(*args)
        # A run that begins while another restores the pools is counted there or waits here.
        with self._run():
            try:
                if self._is_restoring:
                    self._wait()
                for get_count, set_count in _find_pools():
                    count = get_count()
                    if count != 1:
                        self._before.append((set_count, count))
                        self._last_change = object()
                        set_count(1)
                return function(*args)
            finally:
                if self._before and len(self._runs) == 1:
                    self._restore()

    def _restore(self) -> None:
        self._is_restoring = True
        try:
            if len(self._runs) == 1:
                for set_count, count in reversed(self._before):
                    set_count(count)
                self._before.clear()
        finally:
            self._is_restoring = False

    def _wait(self) -> None:
        end = time.monotonic() + _RESTORING
        while self._is_restoring and time.monotonic() < end:
            time.sleep(0)
        self._is_restoring = False  # or else the run that did so was interrupted


class _Pool(NamedTuple):
    """Functions that read and set the number of threads of a BLAS library."""

    get_count: Callable[[], Any]
    set_count: Callable[[int], Any]


@lru_cache(maxsize=1)
def _find_pools() -> tuple[_Pool, ...]:
    """Return the BLAS libraries of the process; they are searched once, which takes milliseconds."""
    from threadpoolctl import ThreadpoolController  # late: it looks through the libraries of the process

    return tuple(map(_bind_pool, (p for p in ThreadpoolController().lib_controllers if p.user_api == "blas")))


def _bind_pool(pool: Any) -> _Pool:
    """Return functions that read and set the number of threads of a library that threadpoolctl found.

    Since threadpoolctl 3.6 its own setter works only in the first thread that called it, but another thread
    may restore a pool here. Its methods for OpenBLAS also look up the functions at every call, which takes
    several times as long.
    """
    get_count, set_count = (
        pool.get_num_threads,
        getattr(pool, "_real_set_num_threads", pool.set_num_threads),
    )
    find = getattr(pool, "_get_symbol", None)
    if find is None or pool.internal_api != "openblas" or pool.threading_layer == "openmp":
        return _Pool(get_count, set_count)
    return _Pool(find("openblas_get_num_threads") or get_count, find("openblas_set_num_threads") or set_count)


#: The limit of all runs of this process.
thread_limit = ThreadLimit()
os.register_at_fork(after_in_child=thread_limit.__init__)  # type: ignore[misc]  # no run goes on in the child
