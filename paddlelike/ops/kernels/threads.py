"""Work of one kernel that is divided among several threads.

The parts depend on shapes alone, and one thread computes each part, so results have the same bits on any
number of threads. BLAS stays on one thread: with several it adds long products in another order.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from paddlelike.core.floats import run_quietly
from paddlelike.foundation.locks import Lock
from paddlelike.framework.flags import flag, is_set, read_environment

if TYPE_CHECKING:
    from paddlelike.foundation.threads import Pool

Part = TypeVar("Part")
Result = TypeVar("Result")


def count_threads() -> int:
    """Return how many threads a kernel may use.

    It is ``FLAGS_paddle_num_threads`` when that is set, else ``OMP_NUM_THREADS`` when that is a positive
    integer, else 1.
    """
    if is_set("FLAGS_paddle_num_threads"):
        return max(1, int(flag("FLAGS_paddle_num_threads")))
    text = read_environment("OMP_NUM_THREADS") or ""
    return max(1, int(text)) if text.isdigit() else 1


def map_parts(work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """Yield ``work(part)`` for every part, in order, computed by :func:`count_threads` threads.

    At most twice as many results as threads are computed ahead. ``work`` must not call a kernel that uses
    this function.

    >>> list(map_parts(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    count = count_threads()
    if count == 1:
        yield from map(work, parts)
        return
    pool, rest = _pools.get(count), iter(parts)
    waiting = [pool.submit(run_quietly, work, part) for part in itertools.islice(rest, 2 * count)]
    try:
        while waiting:
            yield waiting.pop(0).result()
            waiting += [pool.submit(run_quietly, work, part) for part in itertools.islice(rest, 1)]
    finally:
        for task in waiting:
            task.cancel()
        for task in waiting:
            task.wait()  # until then workers use the caller's buffers


def consume(results: Iterator[None]) -> None:
    """Run an iterator of :func:`map_parts` to its end, for parts that store their results themselves."""
    for _ in results:
        pass


class _Pools:
    """The threads of this process by the requested count, created at their first use."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pools: dict[int, Pool] = {}

    def get(self, count: int) -> Pool:
        from paddlelike.foundation.threads import Pool  # late: one thread needs none

        with self._lock.hold():
            if count not in self._pools:
                self._pools[count] = Pool(count, "paddlelike-kernel")
            return self._pools[count]


_pools = _Pools()
os.register_at_fork(after_in_child=_pools.__init__)  # type: ignore[misc]  # a child has none of the threads
