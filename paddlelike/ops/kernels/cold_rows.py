"""Rows of a table that are stored on disk, and the choice of rows to move there and back."""

from __future__ import annotations

import os
from typing import Any, Final

import numpy as np

from paddlelike.storage.row_store import RowStore, map_array

Array = np.ndarray[Any, Any]

_HOT: Final = 1_000_000  # rows that stay in memory, unless PADDLELIKE_HOT_ROWS says otherwise


class ColdRows(RowStore):
    """The rows of one table in its store, and when the rows in memory were last used.

    Attributes
    ----------
    most
        Rows that stay in memory; None means the same as in the table that this one follows.
    count
        Rows of the table, in memory or here.
    """

    def __init__(self, width: int, dtype: np.dtype[Any]) -> None:
        super().__init__(width, dtype)
        self._used = np.empty(0, np.int64)
        self._now = 0
        self.most: int | None = int(os.environ.get("PADDLELIKE_HOT_ROWS") or _HOT)
        self.count = 0

    def write(self, ids: Array, rows: Array, *, reserve: bool = True) -> None:
        """Write rows to the store.

        A table that follows another one writes within a step, so room on the disk is reserved for it first.
        """
        super().write(ids, rows, reserve=reserve and self.most is not None)

    def map_all(self) -> tuple[Array, Array]:
        """Return all ids and rows, which must be in the store, in memory that can be paged out."""
        ids, rows = map_array((self.count,), np.int64), map_array((self.count, self.width), self.dtype)
        at = 0
        for some, values in self.scan():
            ids[at : at + len(some)], rows[at : at + len(some)] = some, values
            at += len(some)
        self.count = at  # Ctrl-C may have ended a call between two changes of the count and the rows
        return ids[:at], rows[:at]

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
