"""The bytes that a block of code reads, as the kernel counts them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

__all__ = ["counting_reads", "needs_read_counts"]

_PROCESS = Path("/proc/self")
needs_read_counts = pytest.mark.skipif(
    not (_PROCESS / "io").exists(), reason="this system does not count what is read"
)


@contextmanager
def counting_reads() -> Iterator[Callable[[], int]]:
    """Give a function that returns how many bytes were read since, by this thread and those started since.

    What other threads read is left out: that of pytest-xdist gets commands at any time.
    """
    own = str(threading.get_native_id())
    others = [task for task in (_PROCESS / "task").iterdir() if task.name != own]
    before = _count(others), _count([_PROCESS])

    def count() -> int:
        read = _count([_PROCESS]) - before[1]
        return read - (_count(others) - before[0])

    yield count


def _count(tasks: list[Path]) -> int:
    counted = 0
    for task in tasks:
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            counted += int((task / "io").read_text().split()[1])  # rchar: N
    return counted
