"""Where gradients lie on a server until they are applied: whole pushes, in memory that is used again."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from paddlelike.core import memory
from paddlelike.core.tensor import SelectedRows
from paddlelike.distributed.server.table import Role, Table, rows_at, values_at
from paddlelike.distributed.wire.parts import Into
from paddlelike.errors import FrameError

__all__ = ["Contribution", "Staging"]

Array = np.ndarray[Any, Any]


class Contribution(Into):
    """One push: takes the records as they come in; afterwards the gradients by number."""

    def __init__(
        self, dense: dict[int, Array], sparse: dict[int, SelectedRows], wanted: frozenset[int]
    ) -> None:
        self.dense = dense
        self.sparse = sparse
        self._wanted = wanted
        arrays = {values_at(index): array for index, array in dense.items()}
        for index, rows in sparse.items():
            assert rows.array is not None
            arrays |= {rows_at(index): rows.row_array, values_at(index): rows.array}
        super().__init__(arrays)

    def finish(self, *, whole: bool) -> dict[int, Array | SelectedRows]:
        """The gradients that came, checked; ``whole``: every gradient of the server must be among them."""
        if whole:
            self.check()
            missing = self._wanted - self.dense.keys() - self.sparse.keys()
            if missing:
                raise FrameError(f"a push without the gradients {sorted(missing)[:5]}")
        else:  # what was begun, and what the header spoke of
            begun = {number for number, filled in self._filled.items() if filled}
            said = {place(index) for index in self.sparse for place in (rows_at, values_at)}
            self.check(begun | said)
        for rows in self.sparse.values():
            numbers = rows.row_array
            if numbers.size and not (numbers.min() >= 0 and numbers.max() < rows.height()):
                raise FrameError(f"selected rows {numbers.min()} to {numbers.max()} of {rows.height()} rows")
        came = {index: array for index, array in self.dense.items() if self._filled[values_at(index)]}
        return came | self.sparse


class Staging:
    """The memory for pushes. A trainer whose push is under way or waits has one set of arrays, rarely two.

    Parameters
    ----------
    table
        The server's; its gradients are what is taken.
    only_rows
        Numbers of gradients that come as selected rows only: a table may be larger than memory can be twice.
    """

    def __init__(self, table: Table, only_rows: Collection[int] = ()) -> None:
        self._only_rows = frozenset(only_rows)
        self._wanted = frozenset(entry.index for entry in table.having(Role.GRADIENT))
        self._entries = {entry.index: entry for entry in table.having(Role.GRADIENT, Role.COUNTER)}
        self._free: list[dict[int, Array]] = []
        self._lock = threading.Lock()

    def take(self, rows: Iterable[tuple[int, int]]) -> Contribution:
        """Room for one push; ``rows``: number of an entry and how many rows, where it comes as selected rows.

        Raises FrameError for what the table does not have, before memory is taken.
        """
        sparse = {}
        for index, count in rows:
            entry = self._entries.get(index)
            if entry is None or entry.role != Role.GRADIENT or count > entry.shape[0]:
                raise FrameError(f"a push of {count} rows of entry {index}, which is no gradient so tall")
            value = np.empty((count, *entry.shape[1:]), entry.numpy_dtype)
            sparse[index] = SelectedRows(np.empty(count, np.int64), entry.shape[0], value)
        with self._lock:
            dense = self._free.pop() if self._free else {}
        for index in sparse.keys() & dense.keys():
            del dense[index]
        for index, entry in self._entries.items():
            if index not in dense and index not in sparse and index not in self._only_rows:
                dense[index] = memory.empty(entry.shape, entry.numpy_dtype)
        return Contribution(dense, sparse, self._wanted)

    def give_back(self, contribution: Contribution) -> None:
        """Let a later push use the memory, once nobody reads it any more."""
        with self._lock:
            self._free.append(contribution.dense)
