"""Large persistables on a CPU, which saves read between steps.

XLA writes into the memory of the previous step. If a forked process shares that memory, each written page
costs a fault and a copy: 18,000 in a step of a wide embedding. So the values that a step is about to write
are copied before it (rows whose ids are fed, or else the whole array), and a save reads the others between
two steps.
"""

from __future__ import annotations

import errno
import math
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import jax
import numpy as np

from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.core import Array, numpy_dtype, row_changes
from paddlelike.core.row_changes import OldRows, Table
from paddlelike.core.rows import unique_rows
from paddlelike.core.views import view_bytes_at
from paddlelike.foundation.locks import Event
from paddlelike.framework import Operator, Variable
from paddlelike.framework.opdef import registry
from paddlelike.ops.update.base import Update
from paddlelike.ops.update.rules import Rows

_LOOKUPS: Final = ("lookup_table_grad", "lookup_table_v2_grad")
_PATIENCE: Final = 0.005  # seconds for which a step lets a save read a piece first


class KeptRows:
    """The rows that a step is about to write, by position, and the keys of their locks."""

    def __init__(self) -> None:
        self.rows: dict[int, _DeviceRows] = {}
        self.keys: list[Any] = []


class DeviceTables:
    """The large persistables whose memory a piece, steps ``start`` to ``stop``, reuses for new values."""

    def __init__(self, plan: CompiledPlan, start: int, stop: int, donated: Iterable[int]) -> None:
        self._ids = _find_ids(plan, start, stop)  # of tables where only rows are written
        self._tables = {n: _DeviceTable() for n in donated if _is_large(plan.layout.persistables[n])}
        for position, table in self._tables.items():
            table.by_rows = position in self._ids
            row_changes.tables[id(table)] = table
            weakref.finalize(self, row_changes.tables.pop, id(table), None)

    def begin(
        self, kept: KeptRows, positions: Sequence[int], donated: Sequence[Any], values: Sequence[Any]
    ) -> None:
        """Keep the rows that a step is about to write, until :meth:`end`, also if this is interrupted."""
        for position, array in zip(positions, donated, strict=True) if _kept else ():
            if (old := _kept.get(id(array))) is not None:
                ids = [np.asarray(values[n]).reshape(-1) for n in self._ids.get(position, ())]
                old.wait()
                kept.keys.append(old.lock.hold())
                kept.rows[position] = old
                old.begin(np.concatenate(ids) if ids else None)

    def end(self, kept: KeptRows, results: Mapping[int, Any]) -> None:
        """Let saves continue to read from the results, or from the old arrays if the step failed."""
        arrays = {n: value for n, value in results.items() if isinstance(value, jax.Array)}
        try:
            for position, old in kept.rows.items():
                old.end(arrays.get(position))
        finally:
            kept.keys.clear()
        for position, table in self._tables.items():
            if (array := arrays.get(position)) is not None:
                table.array = weakref.ref(array)

    def __bool__(self) -> bool:
        return bool(self._tables or _kept)


class _DeviceTable(Table):
    array: weakref.ref[jax.Array] | None = None

    def find(self) -> int:
        array = self._find_array()
        return 0 if array is None else array.unsafe_buffer_pointer()

    def hold(self, nbytes: int) -> OldRows | None:
        array = self._find_array()
        if array is None or array.nbytes != nbytes or id(array) in _kept:
            return None
        return _DeviceRows(self, array)

    def _find_array(self) -> jax.Array | None:
        array = None if self.array is None else self.array()
        return None if array is None or array.is_deleted() else array


class _DeviceRows(OldRows):
    """The rows of a table on a device, read under a lock that each step takes.

    A step donates the memory of the table, usually to its result. So rows that are neither read nor kept
    are unchanged in the next array.
    """

    def __init__(self, table: Table, array: jax.Array) -> None:
        super().__init__(table, _view(array))
        self._array = array
        self._is_open = False
        self._waits = False
        self._has_read = Event()
        _kept[id(array)] = self

    def wait(self) -> None:
        """Wait until a waiting save has read a part of the table."""
        if self._waits:
            self._has_read.wait(_PATIENCE)

    def begin(self, rows: Array | None) -> None:
        """Copy the rows that a step is about to write (None means all). The caller holds the lock."""
        if self._is_open:
            return
        if rows is not None and (not len(rows) or 0 <= rows.min() <= rows.max() < len(self._places)):
            self._keep(unique_rows(self._choose(rows)))
        else:
            self._keep_all()
            self._open()

    def end(self, array: jax.Array | None) -> None:
        """Continue with the new array of the step. The caller holds the lock."""
        if not self._is_open and array is not None:
            del _kept[id(self._array)]
            self._array, self._rows = array, _view(array)
            _kept[id(array)] = self

    def _read(self, start: int, stop: int) -> tuple[Array, Array]:
        self._has_read.clear()
        self._waits = True
        with self.lock.hold():
            self._waits = False
            if self._is_open:
                piece = np.empty_like(self._old[start:stop])  # all are kept
            elif self._array.is_deleted():
                raise OSError(errno.EFAULT, "a failed step has released the memory of a table")
            else:
                piece = self._rows[start:stop].copy()
            places = self._pass(start, stop)
        self._has_read.set()
        return piece, places

    def _open(self) -> None:
        self._is_open = True
        _kept.pop(id(self._array), None)


_kept: Final[dict[int, _DeviceRows]] = {}

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_kept.clear)  # the saves belong to the parent process


def keep_tables() -> None:
    """Copy all tables that saves read, before a computation that may write into any persistable."""
    for old in list(_kept.values()):
        old.wait()
        with old.lock.hold():
            old.begin(None)


def _view(array: jax.Array) -> Array:
    """Return the rows of an array without keeping a reference, so that the next step can reuse its memory."""
    memory = view_bytes_at(array.unsafe_buffer_pointer(), array.nbytes)
    return np.frombuffer(memory, array.dtype).reshape(len(array), -1)


def _find_ids(plan: CompiledPlan, start: int, stop: int) -> dict[int, list[int]]:
    """Return, for each large table that a piece writes by rows, the positions of the fed ids."""
    fed = {one.position for one in plan.fed.values()}
    writers: dict[int, list[int]] = {}
    for index in range(start, stop):
        for position in plan.writes[index]:
            writers.setdefault(position, []).append(index)
    found: dict[int, list[int]] = {}
    for index in range(start, stop):
        op = plan.steps[index].op
        cls = registry.find_for_version(op.type, plan.program.paddle_version)
        if cls is None or not issubclass(cls, Update) or not cls.elements or id(op) in plan.row_updates:
            continue
        keywords = cls.make_forward_keywords(op.attrs, op.outputs)
        if cls.choose_rows(keywords, as_dense=False) is not Rows.KEPT:
            continue
        given = _list_inputs(plan, op)
        (gradient,) = given["Grad"]
        ids = _find_rows_of(plan, gradient, writers)
        written = [given[name][0] for name in cls.list_elements(keywords) if name != "Grad"]
        if ids is not None and ids <= fed and all(writers[n] == [index] for n in written):
            found |= {n: sorted(ids) for n in written if _is_large(plan.layout.persistables[n])}
    return found


def _list_inputs(plan: CompiledPlan, op: Operator) -> dict[str, list[int]]:
    """Return the positions of the inputs of an operator by slot."""
    cls = registry.find_for_version(op.type, plan.program.paddle_version)
    slots = () if cls is None else cls.input_slots
    positions = plan.inputs_of.get(id(op), ())
    return {
        slot.name: [found] if isinstance(found, int) else list(found)
        for slot, found in zip(slots, positions, strict=False)
    }


def _find_rows_of(plan: CompiledPlan, gradient: int, writers: Mapping[int, Sequence[int]]) -> set[int] | None:
    """Return the positions of the ids that are the rows of a sparse gradient; None if it may have other
    rows.
    """
    indexes = writers.get(gradient, ())
    if len(indexes) != 1:
        return None
    op = plan.steps[indexes[0]].op
    given = _list_inputs(plan, op)
    if op.type in _LOOKUPS:
        return set(given["Ids"])
    cls = registry.find_for_version(op.type, plan.program.paddle_version)
    if cls is None or not cls.keeps_rows:
        return None
    found = [_find_rows_of(plan, part, writers) for part in given["X"]]
    return None if None in found else set().union(*(ids for ids in found if ids is not None))


def _is_large(variable: Variable) -> bool:
    row = math.prod(variable.shape[1:]) * numpy_dtype(variable.dtype).itemsize
    return row >= row_changes.SHORTEST and row * variable.shape[0] >= row_changes.LEAST
