"""Which rows of large tables were written, noted by the updates that write single rows.

Every write of a tensor increases its version. An update of rows notes them before it writes; a version that
nobody noted was a write of unknown rows, and what was changed before it is unknown too. So a note that is
left out, or a write that nobody knows of here, costs a comparison of the whole table and never a row.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from paddlelike.core.tensor import LoDTensor

__all__ = ["find_written_rows", "note_rows", "watch_rows"]

Array = np.ndarray[Any, Any]


class _Rows:
    """The rows of one array that were written, with the version before the last write of each.

    They are kept as they come and set down many at a time, which touches the large array less often.
    """

    def __init__(self, tensor: LoDTensor, array: Array) -> None:
        self.tensor = weakref.ref(tensor)
        key = id(array)
        self.array = weakref.ref(array, lambda _: _watched.pop(key, None))
        self.known_from = self.next = self.first = tensor.version
        self.written = np.zeros(len(array), np.uint32)  # version + 1 - first; 0: never
        self.pending: list[tuple[int, Array]] = []
        self.most = len(array) // 16  # rows that are pending
        self.count = 0
        self.lock = threading.Lock()  # several threads train, or save while others train

    def note(self, rows: Array) -> None:
        tensor = self.tensor()
        if tensor is None:
            return
        with self.lock:
            version = tensor.version
            if version not in (self.next, self.next - 1):  # - 1: the same write notes further rows
                self.known_from = version
            self.next = version + 1
            self.pending.append((version + 1 - self.first, rows))
            self.count += 1 + len(rows)
            if self.count > self.most:
                self._settle()

    def find(self, version: int) -> Array:
        """Return the rows written since the tensor had a version, in rising order."""
        with self.lock:
            self._settle()
            return np.flatnonzero(self.written > version - self.first)

    def _settle(self) -> None:
        for version, rows in self.pending:
            self.written[rows] = version
        self.pending, self.count = [], 0


_watched: Final[dict[int, _Rows]] = {}


def watch_rows(tensor: LoDTensor) -> None:
    """Note from now on which rows of a tensor are written."""
    array = tensor.held_array
    assert array is not None
    watched = _watched.get(id(array))
    if watched is None or watched.array() is not array or watched.tensor() is not tensor:
        _watched[id(array)] = _Rows(tensor, array)


def note_rows(arrays: Iterable[Array], rows: Array) -> None:
    """Note that these rows of arrays are about to be written, and no others."""
    if not _watched:
        return
    found = [one for array in arrays if (one := _watched.get(id(array))) is not None and one.array() is array]
    rows = rows.copy() if found else rows
    for watched in found:
        watched.note(rows)


def find_written_rows(tensor: LoDTensor, version: int) -> Array | None:
    """Return the rows of a tensor written since it had a version, in rising order; None: it is not known.

    >>> tensor = LoDTensor(np.zeros((5, 2), "float32"))
    >>> watch_rows(tensor)
    >>> note_rows([tensor.held_array], np.array([3, 1]))
    >>> tensor.touch()
    >>> find_written_rows(tensor, 0), find_written_rows(tensor, 1)
    (array([1, 3]), array([], dtype=int64))
    >>> tensor.touch()
    >>> find_written_rows(tensor, 0) is None
    True
    """
    array = tensor.held_array
    watched = _watched.get(id(array))
    if watched is None or watched.array() is not array or watched.tensor() is not tensor:
        return None
    if tensor.version != watched.next or version < watched.known_from:
        return None if tensor.version != version else np.empty(0, np.int64)
    return watched.find(version)
