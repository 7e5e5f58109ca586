"""Records of the rows of large tables that updates write, and of their old values.

Every write of a tensor increases its version, and an update first records its rows. A version without a
record is a write of unknown rows; then earlier changes are unknown too. So a missing record costs a
comparison of the whole table, but never loses a row.

While a save reads a large array during training, the array is read-only. Code that records its writes gets a
writable view, and the old rows are kept. Other code writes into other memory, or numpy raises an error.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from sys import getrefcount
from typing import Any, Final

import numpy as np

from paddlelike.core.tensor import LoDTensor
from paddlelike.foundation.locks import Lock
from paddlelike.foundation.snapshot import POPULATE_WRITE, advise

Array = np.ndarray[Any, Any]

LEAST: Final = 4 << 20  # bytes; of larger arrays the old rows are kept instead of a copy
SHORTEST: Final = 64  # bytes of a row, besides 4 for its position
_PIECE: Final = 2 << 20  # bytes that are read at a time
_AHEAD: Final = 8  # pieces of memory for old rows, prepared before use
_ONE_VIEW: Final = np.empty(2)[1:]
_ALONE: Final = getrefcount(_ONE_VIEW.base)


class _Rows:
    """The rows of one array that were written, with the version before the last write of each.

    They are collected and stored many at a time, which touches the large array less often. Notes are not
    locked, since an append to a deque is one operation. Notes of two threads at once leave a version that
    differs from the tensor's, so the changes count as unknown.
    """

    def __init__(self, tensor: LoDTensor, array: Array) -> None:
        self.tensor = weakref.ref(tensor)
        key = id(array)
        self.array = weakref.ref(array, lambda _: _watched.pop(key, None))
        self.known_from = self.next = self.first = tensor.version
        self.written = np.zeros(len(array), np.uint32)  # version + 1 - first; 0: never
        self.pending: deque[tuple[int, Array]] = deque()
        self.most = len(array) // 16  # rows that are pending
        self.count = 0
        self.lock = Lock()

    def note(self, rows: Array) -> None:
        tensor = self.tensor()
        if tensor is None:
            return
        version = tensor.version
        if version not in (self.next, self.next - 1):  # - 1: the same write records further rows
            self.known_from = version
        self.next = version + 1
        self.pending.append((version + 1 - self.first, rows))
        self.count += 1 + len(rows)
        if self.count > self.most:
            with self.lock.hold():
                self._settle()

    def find(self, version: int) -> Array:
        """Return the rows written since the tensor had a version, in rising order."""
        with self.lock.hold():
            self._settle()
            return np.flatnonzero(self.written > version - self.first)

    def _settle(self) -> None:
        """Store the pending notes; the caller holds the lock."""
        self.count = 0
        while self.pending:
            version, rows = self.pending.popleft()
            self.written[rows] = version


_watched: Final[dict[int, _Rows]] = {}


def watch_rows(tensor: LoDTensor) -> None:
    """Start to record which rows of a tensor are written."""
    array = tensor.held_array
    assert array is not None
    watched = _watched.get(id(array))
    if watched is None or watched.array() is not array or watched.tensor() is not tensor:
        _watched[id(array)] = _Rows(tensor, array)


def note_rows(arrays: Sequence[Array], rows: Array | None) -> Sequence[Array]:
    """Record rows (None means all rows) before they are written. Return the arrays to write into."""
    if _watched and rows is not None:
        found = [
            one for array in arrays if (one := _watched.get(id(array))) is not None and one.array() is array
        ]
        noted = rows.copy() if found else rows
        for watched in found:
            watched.note(noted)
    return [array if array.nbytes < LEAST else _open_array(array, rows) for array in arrays]


def _open_array(array: Array, rows: Array | None) -> Array:
    """Return a view of a large array to write rows into. If a save reads the array, its old rows are kept."""
    if id(array) not in tables:
        tables[id(array)] = _HostTable(array, by_rows=rows is not None)
    while True:
        # In this order, since a save that does not see the view has already put its old rows there.
        view, old = array.view(), _kept.get(id(array))
        if old is not None:
            if (kept := old.keep(rows)) is not None:
                return kept
        elif view.flags.writeable or not array.flags.writeable:
            return view


class Table(ABC):
    """A large array written by updates, whole or by rows."""

    by_rows = True
    places: Array | None = None  # from an earlier save, all 0

    @abstractmethod
    def find(self) -> int:
        """Return the address of the table's memory; 0 if it has none."""

    @abstractmethod
    def hold(self, nbytes: int) -> OldRows | None:
        """Return a snapshot of the rows, or None if the bytes differ or no snapshot is possible."""


class OldRows:
    """A snapshot of the rows of a table. Updates may continue: rows are copied before they are overwritten.

    Iterating yields the bytes as they were, in pieces, once.
    """

    def __init__(self, table: Table, rows: Array) -> None:
        self.span = rows.ctypes.data, rows.nbytes
        self._table = table
        self._rows = rows
        self._old = np.empty_like(rows)  # pages take memory only when written
        places, table.places = table.places, None
        # By row, its position among the old rows, + 1; 0 for rows that were not written.
        self._places = np.zeros(len(rows), np.min_scalar_type(len(rows))) if places is None else places
        self._count = self._next = 0  # number of old rows; the first unread row
        self.lock = Lock()

    def _keep(self, new: Array) -> None:
        """Copy chosen rows, each once, before they are written. The caller holds the lock."""
        start, self._count = self._count, self._count + len(new)
        self._rows.take(new, 0, self._old[start : self._count], "clip")
        self._places[new] = np.arange(start + 1, self._count + 1)

    def _choose(self, rows: Array) -> Array:
        """Return those given rows that are neither read nor copied yet."""
        unread = rows[rows >= self._next] if self._next else rows
        return unread.compress(self._places[unread] == 0)

    def _keep_all(self) -> None:
        self._keep(self._choose(np.arange(len(self._rows))))

    def __iter__(self) -> Iterator[memoryview]:
        if self._next:
            raise RuntimeError("the old rows were read already; they can be read only once")
        step, populated = max(_PIECE // self._rows[0].nbytes, 1), 0
        ahead = _AHEAD * step if self._table.by_rows else 0
        for start in range(0, len(self._rows), step):
            until = min(self._count + ahead, len(self._old))
            while populated < until:  # prepared here, so that no training step waits for new memory
                new = self._old[populated : populated + step]
                advise(new.ctypes.data, new.nbytes, POPULATE_WRITE)
                populated += step
            piece, places = self._read(start, start + step)
            written = np.flatnonzero(places)
            piece[written] = self._old[places[written] - 1]
            yield piece.reshape(-1).view(np.uint8).data
        self._old = self._rows[:0]

    def _read(self, start: int, stop: int) -> tuple[Array, Array]:
        """Return copies of rows, some of them possibly new, and of their positions."""
        piece = self._rows[start:stop].copy()
        with self.lock.hold():
            return piece, self._pass(start, stop)

    def _pass(self, start: int, stop: int) -> Array:
        self._next = stop
        return self._places[start:stop].copy()

    def close(self) -> None:
        """Release the table for writing, and drop the copied rows."""
        with self.lock.hold():
            self._open()
            del self._rows, self._old
        self._places.fill(0)
        self._table.places = self._places

    def _open(self) -> None:
        """Allow writes to the table; the caller holds the lock."""


class _HostTable(Table):
    """An array of numpy."""

    def __init__(self, array: Array, *, by_rows: bool) -> None:
        self.by_rows = by_rows
        key = id(array)
        self._array = weakref.ref(array, lambda _: tables.pop(key, None))
        self._address = array.ctypes.data

    def find(self) -> int:
        return self._address

    def hold(self, nbytes: int) -> OldRows | None:
        if (array := self._array()) is None or array.nbytes != nbytes:
            return None
        # Another owner of a view could write there without a record.
        if not array.flags.carray or array[0].nbytes < SHORTEST or getrefcount(array.base) != _ALONE + 1:
            return None
        old = _HostRows(self, array)
        if getrefcount(array.base) == _ALONE + 2:  # see _open_array
            return old
        old.close()
        return None


class _HostRows(OldRows):
    """A snapshot of rows of a numpy array, which is read-only until the snapshot is closed, or copied
    whole.
    """

    def __init__(self, table: Table, array: Array) -> None:
        super().__init__(table, array.reshape(len(array), -1))  # it stays writable
        self.array = array
        _kept[id(array)] = self
        array.flags.writeable = False

    def keep(self, rows: Array | None) -> Array | None:
        """Copy rows, each once, before they are written.

        Return the array to write into, or None for the table's own.
        """
        with self.lock.hold():
            if self.array.flags.writeable:
                return None
            if rows is None:
                self._keep_all()
                self._open()
            else:
                self._keep(self._choose(rows))
            return self._rows.reshape(self.array.shape)

    def _open(self) -> None:
        if not self.array.flags.writeable:
            self.array.flags.writeable = True  # first: later nobody finds the old rows
            del _kept[id(self.array)]


#: By id of an array, or of the table itself.
tables: Final[dict[int, Table]] = {}
_kept: Final[dict[int, _HostRows]] = {}


def find_tables() -> dict[int, Table]:
    """Return the tables that updates have written, by the address of their memory."""
    return {table.find(): table for table in list(tables.values())}


def keep_old_rows(found: Mapping[int, Table], saved: memoryview) -> OldRows | None:
    """Return a snapshot of the table with these bytes, which can be read while updates continue.

    Return None if no table has these bytes, or if a write might not be seen.
    """
    table = found.get(np.asarray(saved.obj).ctypes.data)
    with contextlib.suppress(MemoryError):
        return None if table is None else table.hold(saved.nbytes)
    return None


def _forget_other_threads() -> None:
    """Allow writes to arrays in a forked process, which has none of the saves and threads of its parent."""
    for rows in _watched.values():
        rows.lock = Lock()
    for old in _kept.values():
        old.array.flags.writeable = True
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_other_threads)


def find_written_rows(tensor: LoDTensor, version: int) -> Array | None:
    """Return the rows of a tensor written after a version, in rising order; None if they are unknown.

    >>> tensor = LoDTensor(np.zeros((5, 2), "float32"))
    >>> watch_rows(tensor)
    >>> _ = note_rows([tensor.held_array], np.array([3, 1]))
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
