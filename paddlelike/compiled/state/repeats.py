"""State that a run of a program keeps for the next run, which usually has the same shapes.

A step of a small network takes XLA some ten microseconds. Python takes longer than that to look up and
describe the variables; checking that they were not written since takes a tenth of that time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.compiled.pieces.executables import Executable
from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.compiled.tracing.draws import Draw
from paddlelike.compiled.values import find_array_type, is_large
from paddlelike.core import LoDTensor, Scope, ScopeVariable
from paddlelike.core.tensor import adopt_all
from paddlelike.executor.plans.binding import Take, make_taker
from paddlelike.executor.plans.frame import Frame


class CompiledFrame(Frame):
    """A frame that begins with the state of the previous run and ends with the state of this run."""

    __slots__ = ("repeat",)

    repeat: Repeat | None


class Repeat:
    """The persistables of a scope after a run of a program's only piece, and how to run it again.

    It is in ``Scope.found``. One run at a time takes it from there; a second thread that runs the same
    program works without it.

    Parameters
    ----------
    executable
        The executable of the piece for these shapes.
    holders
        The persistables that the piece reads or writes; written ones first.
    arrays
        The values of these persistables on the device.
    stored
        The index of the result for each written value, by position.
    fed
        The shape and dtype of each feed, by position.
    copied
        The positions of feeds that may have to be copied first.
    only
        The positions that other code must not write, because they share an array.
    """

    def __init__(
        self,
        scope: Scope,
        frame: Frame,
        executable: Executable,
        holders: Mapping[int, ScopeVariable],
        arrays: Sequence[Any],
        stored: Mapping[int, int],
        fed: Mapping[int, tuple[Any, Any]],
        only: Iterable[int],
        copied: Sequence[int],
    ) -> None:
        self.executable = executable
        self.holders = frame.holders
        self._erasures = scope.erasures
        self._kept = list(holders.values())
        self._tensors = [holder._value for holder in self._kept]
        self._arrays = list(arrays)
        self._positions = list(holders)
        self._fed = [(position, *described) for position, described in fed.items()]
        self.copied = copied
        self._only = frozenset(only)
        self.take_donated: Take = make_taker(executable.donated)
        self.take_kept: Take = make_taker(executable.kept)
        self._stored = list(stored)
        self._take_stored: Take = make_taker(list(stored.values()))
        self._updated = self._tensors[: len(stored)]
        self._others = [
            (position, index) for index, position in enumerate(executable.results) if position not in stored
        ]

    def prepare(self, frame: Frame) -> bool:
        """Fill a frame with the persistables.

        Return False if one was written by anything but the last run.
        """
        if frame.scope.erasures != self._erasures:
            return False
        # Without calls, since a network with many parameters spends most of its time outside of XLA in these
        # loops.
        values = frame.values
        entries = zip(self._kept, self._tensors, self._arrays, strict=True)
        for index, (holder, tensor, array) in enumerate(entries):
            if (
                tensor._device is not array
                or tensor.version != tensor._device_version
                or holder._value is not tensor
            ) and not self._renew(index):
                return False
        for position, array in zip(self._positions, self._arrays, strict=True):
            values[position] = array
        frame.holders = self.holders
        return True

    def _renew(self, index: int) -> bool:
        """Use a value that another program has put on the device; return False for other kinds of values."""
        tensor, old = self._tensors[index], self._arrays[index]
        if self._kept[index]._value is not tensor or tensor._lod or self._positions[index] in self._only:
            return False
        array = tensor.find_on_device()
        if array is None or array.is_deleted() or array.sharding != old.sharding:
            return False
        if (array.shape, array.dtype) != (old.shape, old.dtype):
            return False
        self._arrays[index] = array
        return True

    def fits(self, frame: Frame) -> bool:
        """Return whether the feeds have the shapes of the last run, and no LoD."""
        if frame.lods or frame.unshown:
            return False
        values = frame.values
        for position, shape, dtype in self._fed:
            value = values[position]
            if type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
                return False
        return True

    def store(self, frame: Frame, results: Sequence[Any]) -> None:
        """Write results into a frame and into the scope, and keep them for the next run."""
        values = frame.values
        stored = self._take_stored(results)  # type: ignore[arg-type]
        adopt_all(self._updated, stored)
        for position, value in zip(self._stored, stored, strict=True):
            values[position] = value
        self._arrays[: len(self._stored)] = stored
        for position, index in self._others:
            values[position] = results[index]


def create_repeat(
    plan: CompiledPlan,
    frame: Frame,
    executable: Executable,
    given: Mapping[int, Any],
    results: Mapping[int, Any],
    same: Mapping[int, int],
) -> Repeat | None:
    """Return the state for the next run of a plan's only piece, or None if each run must check its values.

    ``given`` are the inputs of the piece. ``same`` are the persistables that share an array with another.
    """
    scope, array_type, persistables = frame.scope, find_array_type(), plan.layout.persistables
    plain = scope.parent is None and not frame.lods and not frame.unshown
    if not plain or any(not isinstance(draw, Draw) or draw.rows is not None for draw in executable.draws):
        return None
    if any(type(value) is not array_type for value in results.values()):
        return None
    index_of = {position: index for index, position in enumerate(executable.results)}
    stored = {n: index_of[same.get(n, n)] for n in results if n in persistables}
    read = {n: value for n, value in given.items() if n in persistables and n not in stored}
    fed = {n: (value.shape, value.dtype) for n, value in given.items() if n not in persistables}
    if persistables.keys() - stored.keys() - read.keys() or not stored.keys() >= set(executable.donated):
        return None
    if not fed.keys() <= {one.position for one in plan.fed.values()}:
        return None
    if any(one.position in persistables for one in plan.fed.values()):
        return None
    if any(_describe(given[n]) != _describe(results[n]) for n in stored if n in given):
        return None  # the next run takes another shape, as that of `auc`, whose table grows at the first
    arrays = {n: results[n] for n in stored} | read
    holders = {n: frame.holders[n] for n in arrays}
    for n, holder in holders.items():
        if type(holder._value) is not LoDTensor or holder._value.find_on_device() is not arrays[n]:
            return None
    only = itertools.chain(same, same.values())
    copied = [n for n in fed if type(given[n]) is array_type or is_large(given[n])]
    return Repeat(scope, frame, executable, holders, list(arrays.values()), stored, fed, only, copied)


def _describe(array: Any) -> tuple[Any, Any]:
    return array.shape, array.dtype
