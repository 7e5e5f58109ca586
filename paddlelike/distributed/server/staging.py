"""Staging of gradients on a server until they are applied: whole pushes, in memory that is reused."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from paddlelike.core import Array, SelectedRows, memory
from paddlelike.distributed.placement import Entry, Kind, ServerTable, rows_at, values_at
from paddlelike.distributed.protocol.header import read_pairs
from paddlelike.distributed.protocol.messages import Push
from paddlelike.distributed.wire.parts import Into
from paddlelike.errors import FrameError
from paddlelike.foundation.locks import Lock
from paddlelike.ops.kernels.growing_rows import ANY_ID


class _Memory(NamedTuple):
    """The memory of a push."""

    dense: dict[int, Array]  # by index of the entry
    flats: Sequence[Array]  # by group, its gradients behind one another
    views: Mapping[int, memoryview] | None  # the bytes of ``dense``, if they are known


class Contribution(Into):
    """One push: receives the records as they arrive, then holds the gradients by entry index."""

    def __init__(
        self, memory: _Memory, wanted: frozenset[int], make_rows: Callable[[int, int], SelectedRows]
    ) -> None:
        self.dense, self.flats, views = memory
        self.sparse: dict[int, SelectedRows] = {}
        self.request: Push | None = None
        self._wanted = wanted
        self._make_rows = make_rows
        self._came: dict[int, Array | SelectedRows] | None = None  # once the push is whole
        #: By (trainer, index), selected rows of other trainers, which one operator merges in the end.
        self.others: dict[tuple[int, int], Array | SelectedRows] = {}
        super().__init__({values_at(index): array for index, array in self.dense.items()}, views)

    @property
    def memory(self) -> _Memory:
        """The memory, to be used again by another push."""
        return _Memory(self.dense, self.flats, None if self.sparse else self.views)

    def note(self, header: Mapping[str, Any]) -> None:
        """Store the numbers of selected rows that were unknown when the push began.

        Raises FrameError for a malformed note, and the errors of :meth:`Staging.take`.
        """
        try:
            counts = read_pairs(header.get("rows"))
        except ValueError as error:
            raise FrameError(
                f"the note of selected rows has rows {header.get('rows')!r:.80}: {error}"
            ) from None
        for index, count in counts:
            if index in self.sparse or self._filled.get(values_at(index)):
                raise FrameError(f"the note of rows of entry {index} was sent before")
            rows = self._make_rows(index, count)
            self.dense.pop(index, None)
            self.add_rows(index, rows)

    def add_rows(self, index: int, rows: SelectedRows) -> None:
        """Store the gradient of an entry as selected rows."""
        assert rows.held_array is not None
        self.sparse[index] = rows
        self.add({rows_at(index): rows.row_array, values_at(index): rows.held_array})

    def merge(self, trainer: int, other: Contribution) -> None:
        """Add the whole push of another trainer, whose memory may then be reused."""
        self.others.update({(trainer, index): rows for index, rows in other.sparse.items()})
        for index in list(other.dense):
            if index in self.dense:
                self.dense[index] += other.dense[index]
            else:  # here it came as selected rows
                self.others[trainer, index] = other.dense.pop(index)

    def is_dense(self, indexes: Collection[int]) -> bool:
        """Return whether none of the gradients, including merged ones, came as selected rows."""
        return not any(index in indexes for index in self.sparse) and not any(
            index in indexes for _, index in self.others
        )

    def finish(self, *, whole: bool) -> dict[int, Array | SelectedRows]:
        """Return the gradients that arrived, by index. With ``whole``, every gradient of the server must be
        there.

        Raises
        ------
        FrameError
            A gradient is missing or came in part, or its row ids are outside of the variable.
        """
        if self._came is not None:
            return self._came
        if whole:
            self.check()
            missing = self._wanted - self.dense.keys() - self.sparse.keys()
            if missing:
                raise FrameError(f"the push lacks the gradients {sorted(missing)[:5]}")
        else:  # all arrays that were begun or announced in the header
            begun = {index for index, filled in self._filled.items() if filled}
            announced = {at(index) for index in self.sparse for at in (rows_at, values_at)}
            self.check(begun | announced)
        for rows in self.sparse.values():
            ids = rows.row_array
            if ids.size and rows.height() < ANY_ID and not (ids.min() >= 0 and ids.max() < rows.height()):
                raise FrameError(
                    f"the gradient has rows {ids.min()} to {ids.max()}; its variable has {rows.height()} rows"
                )
        came = {index: array for index, array in self.dense.items() if self._filled[values_at(index)]}
        self._came = came | self.sparse
        return self._came


class Staging:
    """The memory for pushes. A trainer with a current or staged push uses one set of arrays, rarely two.

    Parameters
    ----------
    table
        The server's; pushes bring its gradients and counters.
    only_rows
        Indices of gradients that come only as selected rows, because a table may be too large to be in memory
        twice.
    most
        Bytes of dense gradients in memory at once; three sets of arrays are always allowed.
    groups
        Indices of gradients of one dtype that are consecutive in memory.
    """

    def __init__(
        self,
        table: ServerTable,
        only_rows: Collection[int] = (),
        *,
        most: int = 1 << 62,
        groups: Sequence[Sequence[int]] = (),
    ) -> None:
        self._only_rows = frozenset(only_rows)
        self._wanted = frozenset(entry.index for entry in table.having(Kind.GRADIENT))
        self._entries = {entry.index: entry for entry in table.having(Kind.GRADIENT, Kind.COUNTER)}
        self._groups = [[self._entries[index] for index in group] for group in groups]
        self._free: list[_Memory] = []
        self._lock = Lock()
        self._used: weakref.WeakSet[Contribution] = weakref.WeakSet()
        sizes = [
            math.prod(entry.shape) * entry.numpy_dtype.itemsize
            for index, entry in self._entries.items()
            if index not in self._only_rows
        ]
        self._most_sets = max(most // max(sum(sizes), 1) - 2, 1)  # besides the sum and the push to add next

    @property
    def is_full(self) -> bool:
        """Whether pushes must wait, except the push that the round needs first."""
        return len(self._used) >= self._most_sets

    def take(self, rows: Iterable[tuple[int, int]]) -> Contribution:
        """Return memory for one push. ``rows`` gives entry index and number of rows of selected rows.

        Raises
        ------
        FrameError
            No gradient has this index, or it has fewer rows. No memory was allocated.
        """
        sparse = {}
        for index, count in rows:
            sparse[index] = self._make_rows(index, count)
        with self._lock.hold():
            found = self._free.pop() if self._free else None
        dense, flats, views = found or _Memory({}, [_make_flat(one) for one in self._groups], None)
        some = {*sparse, *self._only_rows}
        if some & dense.keys() or len(dense) + len(some) != len(self._entries):
            kept = {index: array for index, array in dense.items() if index not in some}
            dense, views = kept | self._make_arrays(flats, {*kept, *some}), None
        contribution = Contribution(_Memory(dense, flats, views), self._wanted, self._make_rows)
        for index, selected in sparse.items():
            contribution.add_rows(index, selected)
        self._used.add(contribution)
        return contribution

    def _make_arrays(self, flats: Sequence[Array], but: Collection[int]) -> dict[int, Array]:
        """Return arrays for all gradients except ``but``: views of ``flats``, or separate arrays."""
        made: dict[int, Array] = {}
        for flat, group in zip(flats, self._groups, strict=True):
            made.update((entry.index, part) for entry, part in zip(group, _cut(flat, group), strict=True))
        for index, entry in self._entries.items():
            if index not in made and index not in but:
                made[index] = memory.empty(entry.shape, entry.numpy_dtype)
        return {index: array for index, array in made.items() if index not in but}

    def _make_rows(self, index: int, count: int) -> SelectedRows:
        entry = self._entries.get(index)
        if entry is None or entry.kind != Kind.GRADIENT or count > entry.shape[0]:
            raise FrameError(f"entry {index} cannot be a gradient with {count} rows")
        value = np.empty((count, *entry.shape[1:]), entry.numpy_dtype)
        return SelectedRows(np.empty(count, np.int64), entry.shape[0], value)

    def give_back(self, contribution: Contribution) -> None:
        """Let a later push reuse the memory. Called when the memory is no longer read."""
        self._used.discard(contribution)
        with self._lock.hold():
            self._free.append(contribution.memory)


def _make_flat(entries: Sequence[Entry]) -> Array:
    """Allocate one array for variables of one dtype."""
    return memory.empty((sum(math.prod(entry.shape) for entry in entries),), entries[0].numpy_dtype)


def _cut(flat: Array, entries: Sequence[Entry]) -> Iterator[Array]:
    """Yield the part of a flat array that belongs to each variable."""
    start = 0
    for entry in entries:
        end = start + math.prod(entry.shape)
        yield flat[start:end].reshape(entry.shape)
        start = end
