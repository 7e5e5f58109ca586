"""Tables of rows for any 64-bit ids, which grow and forget.

A row begins with bits that follow from its id alone, so that it is the same whichever ids came before it and
wherever its table lies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from paddlelike.core.tensor import SelectedRows

__all__ = ["ANY_ID", "GrowingRows", "RowRule", "draw_unit", "edit_table"]

Array = np.ndarray[Any, Any]

#: The height of tables whose rows are any 64-bit ids.
ANY_ID: Final = (1 << 63) - 1
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_SUMMED: Final = 12  # uniform numbers, whose sum has variance 1 and is nearly normal
_BLOCK: Final = 1 << 16  # elements that are drawn at once


def _mix(bits: Array) -> Array:
    """Return a permutation of 64-bit numbers without visible order: that of SplitMix64."""
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
    """What a new row holds: ``fill_constant`` (first), ``uniform_random`` (first to second) or
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
    """SelectedRows for any 64-bit ids: ``add_rows`` makes rows by a rule, ``keep`` forgets others.

    >>> table = GrowingRows(2, np.dtype("float32"), RowRule("fill_constant", 0.5))
    >>> table.add_rows([1 << 40, -3])
    >>> table.find_rows(np.array([-3, 4])), table.array
    (array([ 1, -1]), array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32))
    """

    __slots__ = ("_layout", "_memory", "_rule")

    _left_out: ClassVar[Mapping[str, Callable[[], Any]]] = {
        **SelectedRows._left_out,
        "_memory": lambda: None,
        "_layout": object,
    }

    def __init__(self, width: int, dtype: np.dtype[Any], rule: RowRule) -> None:
        super().__init__((), ANY_ID, np.empty((0, width), dtype))
        self._rule = rule
        self._memory: tuple[Array, Array] | None = None  # ids and values, with room for more
        self._layout = object()  # replaced when rows move: tables of one layout differ by rows at the end

    def copy(self) -> GrowingRows:
        """Return a table of the same rule with copies of the rows."""
        assert self.held_array is not None
        made = GrowingRows(self.held_array.shape[1], self.held_array.dtype, self._rule)
        made.adopt(self._rows.copy(), self.held_array.copy())
        return made

    def make_rows(self, ids: Array) -> Array:
        """Return the rows that ids begin with, without adding them."""
        assert self.held_array is not None
        return self._rule.make(ids, self.held_array.shape[1], self.held_array.dtype)

    def add_rows(self, rows: Any) -> None:
        """Append rows for ids that the table does not have."""
        new = np.asarray(rows, np.int64)
        ids, values = self._make_room(len(new))
        held = len(self._rows)
        total = held + len(new)
        ids[held:total] = new
        values[held:total] = self._rule.make(new, values.shape[1], values.dtype)
        if self._indexes is not None:
            self._indexes.add(new)
        self._rows = ids[:total]
        self._tensor.adopt(values[:total])

    def _make_room(self, count: int) -> tuple[Array, Array]:
        """Return the memory of ids and values, which begins with those that there are."""
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
        """Take over ids and values without a copy."""
        self._rows, self._indexes, self._memory, self._layout = rows, None, None, object()
        self._tensor.adopt(values)

    def keep(self, places: Array) -> None:
        """Keep the rows at these places, in their order; forget the others and free their memory."""
        assert self.held_array is not None
        self.adopt(self._rows[places], self.held_array[places])

    def follow(self, leader: GrowingRows) -> None:
        """Hold the rows of ``leader`` at the same places: forget those that it has not, make those it has."""
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


def edit_table(
    do: str, table: GrowingRows, counts: GrowingRows, states: Sequence[GrowingRows], **how: Any
) -> dict[str, float]:
    """Shrink or clear a table with its counts (show, click, unseen days) and its state; return what it holds.

    ``do``: ``shrink`` (``how`` as of :func:`paddlelike.distributed.growing_tables.shrink`), ``clear`` or
    ``count``. The answer says how many rows were forgotten, and what there is.
    """
    before = len(table.row_array)
    if do == "shrink":
        _forget(table, counts, **how)
    elif do == "clear":
        for one in (table, counts):
            one.keep(np.empty(0, np.int64))
    if do != "count":
        for one in states:
            one.follow(table)
    shows, clicks, _ = np.asarray(counts.array, np.float64).sum(0).tolist()
    return {
        "forgotten": before - len(table.row_array),
        "rows": len(table.row_array),
        "ids": len(counts.row_array),
        "shows": shows,
        "clicks": clicks,
        "bytes": sum(one.row_array.nbytes + np.asarray(one.array).nbytes for one in (table, counts, *states)),
    }


def _forget(
    table: GrowingRows,
    counts: GrowingRows,
    *,
    threshold: float | None,
    show_click_decay_rate: float,
    delete_after_unseen_days: float,
    nonclk_coeff: float,
    click_coeff: float,
) -> None:
    values = counts.held_array
    assert values is not None
    values[:, :2] *= show_click_decay_rate
    values[:, 2] += 1
    shows, clicks, unseen = values.T
    keep = unseen <= delete_after_unseen_days
    if threshold is not None:
        keep &= nonclk_coeff * (shows - clicks) + click_coeff * clicks >= threshold
    counts.keep(np.flatnonzero(keep))
    table.keep(np.flatnonzero(counts.find_rows(table.row_array) >= 0))
