"""Staging of gradients on a server until they are applied: whole pushes, in memory that is reused."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np

from paddlelike.core import memory
from paddlelike.core.tensor import SelectedRows
from paddlelike.distributed.placement import Kind, ServerTable, rows_at, values_at
from paddlelike.distributed.protocol.header import read_pairs
from paddlelike.distributed.wire.parts import Into
from paddlelike.errors import FrameError

__all__ = ["Contribution", "Staging"]

Array = np.ndarray[Any, Any]


class Contribution(Into):
    """One push: receives the records as they come in; afterwards it has the gradients by entry index."""

    def __init__(
        self,
        dense: dict[int, Array],
        sparse: dict[int, SelectedRows],
        wanted: frozenset[int],
        make_rows: Callable[[int, int], SelectedRows],
    ) -> None:
        self.dense = dense
        self.sparse: dict[int, SelectedRows] = {}
        self._wanted = wanted
        self._make_rows = make_rows
        #: By (trainer, index), what came from other trainers and is not added here: selected rows, which one
        #: operator merges in the end.
        self.others: dict[tuple[int, int], Array | SelectedRows] = {}
        super().__init__({values_at(index): array for index, array in dense.items()})
        for index, rows in sparse.items():
            self._add_rows(index, rows)

    def note(self, header: Mapping[str, Any]) -> None:
        """Take the counts of selected rows that were not known when the push began.

        Raises FrameError for a malformed note, and as :meth:`Staging.take`.
        """
        try:
            counts = read_pairs(header.get("rows"))
        except ValueError as error:
            raise FrameError(f"a note with rows {header.get('rows')!r:.80}: {error}") from None
        for index, count in counts:
            if index in self.sparse or self._filled.get(values_at(index)):
                raise FrameError(f"a note of rows of entry {index}, which has come before")
            rows = self._make_rows(index, count)
            self.dense.pop(index, None)
            self._add_rows(index, rows)

    def _add_rows(self, index: int, rows: SelectedRows) -> None:
        assert rows.array is not None
        self.sparse[index] = rows
        self.add({rows_at(index): rows.row_array, values_at(index): rows.array})

    def merge(self, trainer: int, other: Contribution) -> None:
        """Add the whole push of a trainer, whose memory may be used again afterwards."""
        self.others.update({(trainer, index): rows for index, rows in other.sparse.items()})
        for index in list(other.dense):
            if index in self.dense:
                self.dense[index] += other.dense[index]
            else:  # here it came as selected rows
                self.others[trainer, index] = other.dense.pop(index)

    def finish(self, *, whole: bool) -> dict[int, Array | SelectedRows]:
        """Return the gradients that came, by index; ``whole``: every gradient of the server must have come.

        Raises
        ------
        FrameError
            A gradient is missing or came in part, or its row ids are outside of the variable.
        """
        if whole:
            self.check()
            missing = self._wanted - self.dense.keys() - self.sparse.keys()
            if missing:
                raise FrameError(f"a push without the gradients {sorted(missing)[:5]}")
        else:  # every array that was begun, and those that the header announced
            begun = {index for index, filled in self._filled.items() if filled}
            announced = {at(index) for index in self.sparse for at in (rows_at, values_at)}
            self.check(begun | announced)
        for rows in self.sparse.values():
            ids = rows.row_array
            if ids.size and not (ids.min() >= 0 and ids.max() < rows.height()):
                raise FrameError(
                    f"the gradient has rows {ids.min()} to {ids.max()}; its variable has {rows.height()} rows"
                )
        came = {index: array for index, array in self.dense.items() if self._filled[values_at(index)]}
        return came | self.sparse


class Staging:
    """The memory for pushes. A trainer with a push under way or staged uses one set of arrays, rarely two.

    Parameters
    ----------
    table
        The server's; pushes bring its gradients and counters.
    only_rows
        Indexes of gradients that come as selected rows only: a table may be too large to be in memory twice.
    most
        Bytes of dense gradients that may be here at once; three sets of arrays may always be.
    """

    def __init__(self, table: ServerTable, only_rows: Collection[int] = (), *, most: int = 1 << 62) -> None:
        self._only_rows = frozenset(only_rows)
        self._wanted = frozenset(entry.index for entry in table.having(Kind.GRADIENT))
        self._entries = {entry.index: entry for entry in table.having(Kind.GRADIENT, Kind.COUNTER)}
        self._free: list[dict[int, Array]] = []
        self._lock = threading.Lock()
        self._used: weakref.WeakSet[Contribution] = weakref.WeakSet()
        sizes = [
            math.prod(entry.shape) * entry.numpy_dtype.itemsize
            for index, entry in self._entries.items()
            if index not in self._only_rows
        ]
        self._most_sets = max(most // max(sum(sizes), 1) - 2, 1)  # beside the sum, and the push to add next

    @property
    def is_full(self) -> bool:
        """Whether pushes have to wait, but for the one that the round waits for first."""
        return len(self._used) >= self._most_sets

    def take(self, rows: Iterable[tuple[int, int]]) -> Contribution:
        """Return memory for one push; ``rows``: (index of an entry, count of rows) of selected rows.

        Raises
        ------
        FrameError
            An index is not that of a gradient, or there are more rows than it has. No memory was allocated.
        """
        sparse = {}
        for index, count in rows:
            sparse[index] = self._make_rows(index, count)
        with self._lock:
            dense = self._free.pop() if self._free else {}
        for index in sparse.keys() & dense.keys():
            del dense[index]
        for index, entry in self._entries.items():
            if index not in dense and index not in sparse and index not in self._only_rows:
                dense[index] = memory.empty(entry.shape, entry.numpy_dtype)
        contribution = Contribution(dense, sparse, self._wanted, self._make_rows)
        self._used.add(contribution)
        return contribution

    def _make_rows(self, index: int, count: int) -> SelectedRows:
        entry = self._entries.get(index)
        if entry is None or entry.kind != Kind.GRADIENT or count > entry.shape[0]:
            raise FrameError(
                f"a push of {count} rows of entry {index}, which is not a gradient with so many rows"
            )
        value = np.empty((count, *entry.shape[1:]), entry.numpy_dtype)
        return SelectedRows(np.empty(count, np.int64), entry.shape[0], value)

    def give_back(self, contribution: Contribution) -> None:
        """Let a later push reuse the memory. Called when nobody reads it any more."""
        self._used.discard(contribution)
        with self._lock:
            self._free.append(contribution.dense)
