"""The values of an asynchronous save, which training may change meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import memory
from paddlelike.formats.sources import Buffer
from paddlelike.foundation.snapshot import Snapshot

__all__ = ["Copies", "KeptMemory"]

Array = np.ndarray[Any, Any]

_LARGE: Final = 64 << 10  # bytes; memory of smaller copies is not reused
_HELD: Final = 32 << 20  # bytes that are copied in the time that a snapshot takes


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
    """The contents of files as they were when a save was asked for: a snapshot of all memory, or copies.

    Memory that is kept and not used for copies is returned to the system.
    """

    def __init__(self, kept: KeptMemory) -> None:
        self._kept = kept
        self._used: list[Array] = []
        self._snapshot: Snapshot | None = None

    def hold(self, files: Sequence[Sequence[Buffer]]) -> list[Iterable[Buffer]]:
        """Return the contents of files as they are now, which can be read until :meth:`release`."""
        large = [sum(memoryview(buffer).nbytes for buffer in buffers) >= _LARGE for buffers in files]
        nbytes = sum(memoryview(b).nbytes for buffers in files for b in buffers)
        if nbytes >= _HELD:
            with contextlib.suppress(OSError):  # else they are copied
                self._snapshot = Snapshot()
        held: list[Iterable[Buffer]] = [
            _Held(self._snapshot, buffers)
            if is_large and self._snapshot is not None
            else [self._copy(buffer) for buffer in buffers]
            for buffers, is_large in zip(files, large, strict=True)
        ]
        self._kept.clear()
        return held

    def release(self) -> None:
        """End the use of the contents; the memory of copies is for the next save."""
        used, self._used = self._used, []
        self._kept.give_back(used)
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            snapshot.close()

    def _copy(self, buffer: Buffer) -> Buffer:
        if isinstance(buffer, bytes):
            return buffer
        view = memoryview(buffer)
        if view.nbytes < _LARGE:
            return view.tobytes()
        copy = self._kept.take(view.nbytes)
        self._used.append(copy)
        np.copyto(copy, np.frombuffer(view, np.uint8))
        return copy.data


class _Held:
    """The contents of a file in a snapshot."""

    def __init__(self, snapshot: Snapshot, buffers: Sequence[Buffer]) -> None:
        self._snapshot = snapshot
        self._spans = [_find_span(buffer) for buffer in buffers]

    def __iter__(self) -> Iterator[Buffer]:
        for span in self._spans:
            if isinstance(span, bytes):
                yield span
            else:
                yield from self._snapshot.read(*span)


def _find_span(buffer: Buffer) -> bytes | tuple[int, int]:
    """Return what does not change, or its address and size."""
    if isinstance(buffer, bytes) or not memoryview(buffer).nbytes:
        return bytes(buffer)
    array = np.frombuffer(buffer, np.uint8)
    return array.ctypes.data, array.nbytes
