"""Copies of the arrays of an asynchronous save, which training may change meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from paddlelike.core import memory

__all__ = ["Copies", "KeptMemory"]

Array = np.ndarray[Any, Any]

_LARGE: Final = 64 << 10  # bytes; memory of smaller copies is not reused
_PARALLEL: Final = 64 << 20  # bytes from which on several threads copy
_CHUNK: Final = 16 << 20  # bytes that one thread copies at a time


class KeptMemory:
    """The memory of copies that are not used any more, for the copies of the next save.

    Several threads may take memory at once; none is given to two of them.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}

    def take(self, size: int) -> Array:
        """Return ``size`` bytes that nobody else uses."""
        try:
            return self._free[size].pop()
        except (KeyError, IndexError):
            return memory.empty((size,), np.dtype(np.uint8))

    def give_back(self, buffers: Sequence[Array]) -> None:
        """Keep memory for the next copies."""
        for buffer in buffers:
            self._free.setdefault(buffer.nbytes, []).append(buffer)

    def clear(self) -> None:
        """Return all memory that is kept to the system."""
        self._free = {}


class Copies:
    """The copies of one save. Memory that is kept and not used for them is returned to the system."""

    def __init__(self, kept: KeptMemory) -> None:
        self._kept = kept
        self._used: list[Array] = []

    def copy(self, arrays: Iterable[Array]) -> list[Array]:
        """Return copies of the arrays in C order, which are valid until :meth:`release`."""
        sources = list(arrays)
        copies = [self._take(array) for array in sources]
        self._kept.clear()
        if sum(array.nbytes for array in sources) < _PARALLEL:
            for target, source in zip(copies, sources, strict=True):
                np.copyto(target, source)
            return copies
        pieces = [piece for pair in zip(copies, sources, strict=True) for piece in _split(*pair)]
        try:
            with ThreadPoolExecutor(min(4, os.cpu_count() or 1), "paddlelike-copy") as pool:
                list(pool.map(lambda piece: np.copyto(*piece), pieces))
        except BaseException:  # such as an interrupt: a thread may still write into this memory
            self._used = []
            raise
        return copies

    def release(self) -> None:
        """End the use of the copies; their memory is for the next save."""
        used, self._used = self._used, []
        self._kept.give_back(used)

    def _take(self, like: Array) -> Array:
        if like.nbytes < _LARGE:
            return np.empty(like.shape, like.dtype)
        buffer = self._kept.take(like.nbytes)
        self._used.append(buffer)
        return buffer.view(like.dtype).reshape(like.shape)


def _split(target: Array, source: Array) -> list[tuple[Array, Array]]:
    """Split a copy into chunks for several threads."""
    if not source.flags.c_contiguous or source.nbytes <= _CHUNK:
        return [(target, source)]
    flat, out = source.reshape(-1), target.reshape(-1)
    step = max(_CHUNK // source.itemsize, 1)
    return [(out[at : at + step], flat[at : at + step]) for at in range(0, len(flat), step)]
