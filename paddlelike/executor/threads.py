"""BLAS takes one thread while programs run.

Fluid computes on one thread unless it is told otherwise. BLAS libraries take every core, and their threads
spin while they wait: with another busy process on the machine a small network's step takes several times as
long. And they add up in an order that depends on how many there are. Where more threads are asked for,
kernels share their work themselves (:mod:`paddlelike.ops.kernels.threads`).
"""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from typing import Any

__all__ = ["ThreadLimit", "thread_limit"]


class ThreadLimit:
    """A context in which BLAS takes one thread; its pools are restored afterwards.

    The pools belong to the process: of runs in several threads, the first one limits them and the last one
    restores them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs = 0
        self._before: list[tuple[Any, int]] = []  # changed pools, and their counts outside of runs

    def __enter__(self) -> None:
        with self._lock:
            self._runs += 1
            if self._runs > 1:
                return
            for pool in _find_pools():
                count = pool.get_num_threads()
                if count != 1:
                    _set_count(pool, 1)
                    self._before.append((pool, count))

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._runs -= 1
            if self._runs == 0 and self._before:
                for pool, count in self._before:
                    _set_count(pool, count)
                self._before.clear()


def _set_count(pool: Any, count: int) -> None:
    """Set how many threads a pool has.

    Since 3.6 threadpoolctl's own method is without effect in all threads but the first that called it. Here
    the lock arbitrates, and the run that restores a pool may be in another thread than the one that limited
    it.
    """
    getattr(pool, "_real_set_num_threads", pool.set_num_threads)(count)


@lru_cache(maxsize=1)
def _find_pools() -> tuple[Any, ...]:
    """Return the BLAS libraries of the process, found once, which takes milliseconds."""
    from threadpoolctl import ThreadpoolController  # late: it looks through the libraries of the process

    return tuple(pool for pool in ThreadpoolController().lib_controllers if pool.user_api == "blas")


#: The limit of all runs of this process.
thread_limit = ThreadLimit()
os.register_at_fork(after_in_child=thread_limit.__init__)  # type: ignore[misc]  # no run goes on in the child
