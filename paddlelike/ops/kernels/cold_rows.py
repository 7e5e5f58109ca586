"""Rows of a table that are stored on disk, and the choice of rows to move there and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from paddlelike.errors import StorageError

Array = np.ndarray[Any, Any]

_HOT: Final = 1_000_000  # rows that stay in memory, unless PADDLELIKE_HOT_ROWS says otherwise


class ColdRows:
    """The rows of one table in its store, and the time of the last use of each row in memory.

    Attributes
    ----------
    most
        Rows that stay in memory. None: the same as in the table that this one follows.
    count
        Rows of the table, in memory or here.
    """

    def __init__(self, width: int, dtype: np.dtype[Any]) -> None:
        self._width, self._dtype = width, dtype
        from paddlelike.storage.row_store import RowStore  # late: few tables are stores

        self._store = RowStore(width * dtype.itemsize)
        self._used = np.empty(0, np.int64)
        self._now = 0
        self.most: int | None = int(os.environ.get("PADDLELIKE_HOT_ROWS") or _HOT)
        self.count = 0

    def read(self, ids: Array) -> tuple[Array, Array]:
        """Return a mask of the ids whose rows are in the store, and these rows."""
        there, rows = self._store.read(ids)
        return there, rows.view(self._dtype).reshape(-1, self._width)

    def write(self, ids: Array, rows: Array) -> None:
        """Write rows to the store.

        A table that follows another one writes within a step, so room on the disk is reserved for it first.
        """
        self._store.write(ids, rows, reserve=self.most is not None)

    def remove(self, ids: Array) -> None:
        """Remove rows."""
        self._store.remove(ids)

    def clear(self) -> None:
        """Remove all rows."""
        from paddlelike.storage.row_store import RowStore

        self._store, self.count = RowStore(self._width * self._dtype.itemsize), 0

    def scan(self) -> Iterator[tuple[Array, Array]]:
        """Yield the ids and rows of the store in parts. All rows of the table must be in it.

        Raises StorageError when their count differs from the table's.
        """
        found = 0
        for ids, rows in self._store.scan():
            found += len(ids)
            yield ids, rows.view(self._dtype).reshape(-1, self._width)
        if found != self.count:
            raise StorageError(
                f"the table has {self.count} rows, but its store holds {found}",
                hint="the changes since the last save are lost: load that save in a new process",
            )

    def map_all(self) -> tuple[Array, Array]:
        """Return all ids and rows, which must be in the store, in memory that can be paged out."""
        from paddlelike.storage.row_store import map_array

        ids = map_array((self.count,), np.int64)
        rows = map_array((self.count, self._width), self._dtype)
        at = 0
        for some, values in self.scan():
            if at + len(some) > self.count:
                continue  # scan() counts them
            ids[at : at + len(some)], rows[at : at + len(some)] = some, values
            at += len(some)
        return ids, rows

    def use(self, places: Array, count: int) -> None:
        """Record that the rows at these positions, of ``count``, are in use now."""
        self._now += 1
        if len(self._used) < count:
            used = np.zeros(count * 5 // 4 + 64, np.int64)
            used[: len(self._used)] = self._used
            self._used = used
        self._used[places] = self._now

    def choose(self, count: int, more: int) -> Array | None:
        """Return the rows to keep in memory so that ``more`` rows fit, or None for all. Rows in use are
        kept.
        """
        if self.most is None or not count or count + more <= self.most:
            return None
        used = self._used[:count]
        leave = min(count + more - self.most * 3 // 4, count)
        keep = used > np.sort(used)[leave - 1]  # and no others of the same time: a partition of ties is slow
        keep |= used == self._now
        return np.flatnonzero(keep)

    def move(self, places: Array) -> None:
        """Update the positions after a move: row k came from ``places[k]``."""
        self._used = self._used[places] if len(self._used) else self._used
