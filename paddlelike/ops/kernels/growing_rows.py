"""Tables of rows for any 64-bit ids, which grow and shrink.

The first values of a row depend on its id alone, not on earlier ids or on the table's place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from paddlelike.core import Array, SelectedRows
from paddlelike.core.rows import unique_rows

if TYPE_CHECKING:
    from paddlelike.ops.kernels.cold_rows import ColdRows

#: The height of tables whose rows are any 64-bit ids.
ANY_ID: Final = (1 << 63) - 1
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_SUMMED: Final = 12  # uniform numbers, whose sum has variance 1 and is nearly normal
_BLOCK: Final = 1 << 16  # elements that are drawn at once


def _mix(bits: Array) -> Array:
    """Return the mix function of SplitMix64, a permutation of 64-bit numbers."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = bits ^ (bits >> np.uint64(31))
    return mixed


def draw_unit(ids: Array, count: int, seed: int) -> Array:
    """Return for each id ``count`` numbers in [0, 1), float64 of shape (ids, count).

    >>> draw_unit(np.array([5, -1]), 2, 0).round(3)
    array([[0.417, 0.536],
           [0.646, 0.705]])
    """
    keys = _mix(ids.astype(np.int64).view(np.uint64) + _mix(np.array([seed & (1 << 64) - 1], np.uint64)))
    bits = _mix(keys[:, None] + _GOLDEN * np.arange(1, count + 1, dtype=np.uint64))
    return (bits >> np.uint64(11)) * 2.0**-53


class RowRule(NamedTuple):
    """The initial values of a row: ``fill_constant`` (first), ``uniform_random`` (first to second) or
    ``gaussian_random`` (mean first, deviation second; within six deviations).
    """

    kind: str
    first: float = 0.0
    second: float = 0.0
    seed: int = 0

    def make(self, ids: Array, width: int, dtype: np.dtype[Any]) -> Array:
        """Return the rows of ids, of shape (ids, width)."""
        out = np.full((len(ids), width), self.first, dtype)
        if self.kind == "fill_constant":
            return out
        step = max(1, _BLOCK // (width * _SUMMED))
        for start in range(0, len(ids), step):
            part = slice(start, start + step)
            if self.kind == "uniform_random":
                drawn = draw_unit(ids[part], width, self.seed)
                out[part] = self.first + drawn * (self.second - self.first)
            else:
                drawn = draw_unit(ids[part], width * _SUMMED, self.seed).reshape(-1, width, _SUMMED)
                out[part] = self.first + (drawn.sum(2) - _SUMMED / 2) * self.second
        return out


class GrowingRows(SelectedRows):
    """SelectedRows for any 64-bit ids: ``add_rows`` makes rows by a rule, and ``keep`` removes rows.

    >>> table = GrowingRows(2, np.dtype("float32"), RowRule("fill_constant", 0.5))
    >>> table.add_rows([1 << 40, -3])
    >>> table.find_rows(np.array([-3, 4])), table.array
    (array([ 1, -1]), array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32))
    """

    __slots__ = ("_cold", "_layout", "_memory", "_rule")

    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {
        **SelectedRows._left_out,
        "_cold": lambda: None,
        "_memory": lambda: None,
        "_layout": object,
    }

    def __init__(self, width: int, dtype: np.dtype[Any], rule: RowRule, *, is_stored: bool = False) -> None:
        super().__init__((), ANY_ID, np.empty((0, width), dtype))
        self._rule = rule
        self._cold = self._open_store() if is_stored else None
        self._memory: tuple[Array, Array] | None = None  # ids and values, with room for more
        self._layout = object()  # replaced when rows move: tables of one layout differ by rows at the end

    def copy(self) -> GrowingRows:
        """Return a table of the same rule with copies of the rows."""
        assert self.held_array is not None
        width, dtype = self.held_array.shape[1], self.held_array.dtype
        made = GrowingRows(width, dtype, self._rule, is_stored=self._cold is not None)
        whole = self.gather()
        assert whole.held_array is not None
        made.adopt(
            whole.row_array.copy(), whole.held_array.copy() if made._cold is None else whole.held_array
        )
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a table in memory with all rows."""
        if self._cold is None:
            return super().__getstate__()
        whole, made = self.gather(), GrowingRows(1, np.dtype("float32"), self._rule)
        made.adopt(whole.row_array, whole.held_array)
        return made.__getstate__()

    def gather(self) -> SelectedRows:
        """Return all rows: copies for a table with a store, otherwise the table itself."""
        if self._cold is None:
            return self
        self._cold.write(self._rows, np.asarray(self.held_array))
        ids, rows = self._cold.map_all()
        return SelectedRows(ids, ANY_ID, rows)

    @property
    def is_stored(self) -> bool:
        """Whether rows may leave memory for a store."""
        return self._cold is not None

    @property
    def row_bytes(self) -> int:
        """The bytes of a row with its id."""
        assert self.held_array is not None
        return 8 + self.held_array.shape[1] * self.held_array.itemsize

    def count_rows(self) -> int:
        """Return how many rows there are, in memory and in the store."""
        return len(self._rows) if self._cold is None else self._cold.count

    def blocks(self, *, change: bool = False) -> Iterator[tuple[Array, Array]]:
        """Yield all ids and rows in parts.

        With ``change``, changes to the rows are kept, and rows that cannot be read are an error before the
        first part.
        """
        if self._cold is None:
            assert self.held_array is not None
            yield self._rows, self.held_array
            return
        if change:
            self.keep(np.empty(0, np.int64))
            deque(self._cold.scan(), 0)
        else:
            self._cold.write(self._rows, np.asarray(self.held_array))
        for ids, rows in self._cold.scan():
            yield ids, rows
            if change:
                self._cold.write(ids, rows, reserve=False)

    def find_rows(self, rows: Array) -> Array:
        """Move the rows of these ids from the store into memory; return their indices, -1 without a row.

        The indices are valid until the next call.
        """
        places = super().find_rows(rows)
        cold = self._cold
        if cold is None:
            return places
        missing = np.flatnonzero(places < 0)
        if len(missing):
            ids = unique_rows(rows[missing])
            held, values = ids[:0], self.make_rows(ids[:0])
            if cold.count > len(self._rows):
                there, values = cold.read(ids)
                held = ids[there]
            cold.use(places[places >= 0], len(self._rows))
            keep = cold.choose(len(self._rows), len(ids))
            if keep is not None:
                self.keep(keep)
                missing = np.arange(len(rows))  # all have moved
            self._append(held, values)
            places[missing] = super().find_rows(rows[missing])
        cold.use(places[places >= 0], len(self._rows))
        return places

    def make_rows(self, ids: Array) -> Array:
        """Return the initial rows of ids, without adding them."""
        assert self.held_array is not None
        return self._rule.make(ids, self.held_array.shape[1], self.held_array.dtype)

    def add_rows(self, rows: Any) -> None:
        """Append rows for ids that the table does not have."""
        new = np.asarray(rows, np.int64)
        values = self.make_rows(new)
        cold = self._cold
        if cold is not None:
            known = cold.count - len(self._rows)
            if cold.most is None and known:  # the table that this one follows has moved rows back into memory
                there, held = cold.read(new)
                values[there] = held
                known = int(there.sum())
            else:
                known = 0
            cold.count += len(new) - known
        self._append(new, values)
        if cold is not None:
            cold.use(np.arange(len(self._rows) - len(new), len(self._rows)), len(self._rows))

    def _append(self, new: Array, values: Array) -> None:
        ids, room = self._make_room(len(new))
        held = len(self._rows)
        total = held + len(new)
        ids[held:total], room[held:total] = new, values
        index, self._indexes = self._indexes, None  # made again if Ctrl-C ends this call
        if index is not None:
            index.add(new)
        self._tensor.adopt(room[:total])
        self._rows, self._indexes = ids[:total], index

    def _make_room(self, count: int) -> tuple[Array, Array]:
        """Grow the memory for ids and values, keeping their current contents."""
        old = self.held_array
        assert old is not None
        total = len(old) + count
        memory = self._memory
        if memory is None or old.base is not memory[1] or self._rows.base is not memory[0]:
            memory = None  # the values were replaced, by a load say
        if memory is None or len(memory[0]) < total:
            room = max(total, len(old) * 5 // 4 + 64)
            memory = np.empty(room, np.int64), np.empty((room, *old.shape[1:]), old.dtype)
            memory[0][: len(old)], memory[1][: len(old)] = self._rows, old
        self._memory = memory
        return memory

    def adopt(self, rows: Array, values: Array | None) -> None:
        """Replace all rows by these ids and values, which are not copied."""
        if self._cold is not None:
            assert values is not None
            self._cold.clear()
            self._cold.write(rows, values)
            self._cold.count = len(rows)
            rows, values = rows[:0].copy(), values[:0].copy()
        self._hold(rows, values)

    def _hold(self, rows: Array, values: Array | None) -> None:
        self._rows, self._indexes, self._memory, self._layout = rows, None, None, object()
        self._tensor.adopt(values)

    def keep(self, places: Array) -> None:
        """Keep the rows at these indices, in their order; the others move to the store or are dropped."""
        values = self.held_array
        assert values is not None
        if self._cold is not None:
            leave = np.ones(len(self._rows), np.bool_)
            leave[places] = False
            self._cold.write(self._rows[leave], values[leave])
            self._cold.move(places)
        self._hold(self._rows[places], values[places])

    def forget(self, ids: Array) -> None:
        """Remove the rows of ids, if any, and free their memory; no id may repeat."""
        if self._cold is not None:
            self.keep(np.empty(0, np.int64))
            there, _ = self._cold.read(ids)
            self._cold.remove(ids[there])
            self._cold.count -= int(there.sum())
            return
        stay = np.ones(len(self._rows), np.bool_)
        places = self.find_rows(ids)
        stay[places[places >= 0]] = False
        self.keep(np.flatnonzero(stay))

    def follow(self, leader: GrowingRows) -> None:
        """Give this table the ids of ``leader`` at the same indexes: remove other rows, create missing
        ones.
        """
        if leader._cold is not None:
            self._begin_store()
        ids = leader.row_array
        if self._layout is not leader._layout:
            places = self.find_rows(ids)
            known = places >= 0
            self.keep(places[known])
            if not known.all():
                self.add_rows(ids[~known])
                back = np.empty(len(ids), np.int64)
                back[np.concatenate([known.nonzero()[0], (~known).nonzero()[0]])] = np.arange(len(ids))
                self.keep(back)
            self._layout = leader._layout
        if len(self._rows) < len(ids):
            self.add_rows(ids[len(self._rows) :])

    def _begin_store(self) -> None:
        """Create a store for this table's rows if the leading table has one."""
        if self._cold is None:
            self._cold = self._open_store()
            self.adopt(self._rows, self.held_array)
        self._cold.most = None

    def _open_store(self) -> ColdRows:
        from paddlelike.ops.kernels.cold_rows import ColdRows  # late: few tables are stores

        assert self.held_array is not None
        return ColdRows(self.held_array.shape[1], self.held_array.dtype)


def edit_table(
    do: str, table: GrowingRows, counts: GrowingRows, states: Sequence[GrowingRows], **how: Any
) -> dict[str, float]:
    """Shrink or clear a table with its counts (show, click, unseen days) and its state; return statistics of
    it.

    ``do`` is ``shrink`` (``how`` as for :func:`paddlelike.distributed.growing_tables.shrink`), ``age`` (add a
    day to unseen rows), ``clear`` or ``count``. The statistics count the rows that were forgotten and those
    that are left.
    """
    before, every = table.count_rows(), (table, counts, *states)
    if do == "shrink":
        parts = [ids[~_age(rows, **how)] for ids, rows in counts.blocks(change=True)]
        gone = np.concatenate([np.empty(0, np.int64), *parts])
        for one in every:
            one.forget(gone)
    elif do == "age":
        for _, rows in counts.blocks(change=True):
            rows[:, 2] += 1
        counts.get_tensor().touch()
    elif do == "clear":
        for one in every:
            one.adopt(one.row_array[:0].copy(), np.asarray(one.held_array)[:0].copy())
    if do in ("shrink", "clear"):
        for one in states:
            one.follow(table)
    sums = sum((rows.sum(0, np.float64) for _, rows in counts.blocks()), np.zeros(3))
    return {
        "forgotten": before - table.count_rows(),
        "rows": table.count_rows(),
        "ids": counts.count_rows(),
        "shows": float(sums[0]),
        "clicks": float(sums[1]),
        "bytes": sum(one.count_rows() * one.row_bytes for one in every),
    }


def _age(
    values: Array,
    *,
    threshold: float | None,
    show_click_decay_rate: float,
    delete_after_unseen_days: float,
    nonclk_coeff: float,
    click_coeff: float,
    days: float = 1,
) -> Array:
    """Increase the ages in the counts by days, and return a mask of the rows that stay."""
    values[:, :2] *= show_click_decay_rate
    values[:, 2] += days
    shows, clicks, unseen = values.T
    keep: Array = unseen <= delete_after_unseen_days
    if threshold is not None:
        keep &= nonclk_coeff * (shows - clicks) + click_coeff * clicks >= threshold
    return keep
