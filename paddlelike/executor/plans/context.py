"""The context of a run, for kernels that need more than their inputs."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, NamedTuple

from paddlelike.core import Generator, LoD, Scope
from paddlelike.executor.plans.frame import Frame, write_persistable
from paddlelike.framework import Block, Operator


class Snapshot(NamedTuple):
    """Values and LoDs of some variables, by position."""

    values: dict[int, Any]
    lods: dict[int, LoD]


class StepContext:
    """The :class:`~paddlelike.framework.opdef.Context` of one operator in one run."""

    __slots__ = ("_block", "_frame", "op")

    def __init__(self, frame: Frame, op: Operator, block: Block) -> None:
        self._frame = frame
        self.op = op
        self._block = block

    @property
    def scope(self) -> Scope:
        """The scope of the run."""
        return self._frame.scope

    def _get_position(self, name: str) -> int:
        position = self._frame.layout.get_position(self._block, name)
        values = self._frame.values
        if position >= len(values):  # a name that no operator of the plan used before
            values.extend([None] * (position + 1 - len(values)))
            persistables = self._frame.layout.persistables
            if position in persistables:
                self._frame.load_persistables({position: persistables[position]})
        return position

    def lod(self, slot: str, index: int = 0) -> LoD:
        """Return the LoD of a variable of an input slot; [] when it has none."""
        if not self._frame.lods:
            return []
        names = self.op.input(slot)
        return self._frame.lods.get(self._get_position(names[index]), []) if index < len(names) else []

    def set_lod(self, slot: str, lod: LoD, index: int = 0) -> None:
        """Set the LoD of a variable of an output slot."""
        if not lod and not self._frame.lods:
            return
        names = self.op.output(slot)
        if index < len(names):
            position = self._get_position(names[index])
            if lod:
                self._frame.lods[position] = lod
            else:
                self._frame.lods.pop(position, None)

    def read(self, name: str) -> object:
        """Return the value of a variable, or None if it has no value yet."""
        return self._frame.values[self._get_position(name)]

    def read_lod(self, name: str) -> LoD:
        """Return the LoD of a variable."""
        return self._frame.lods.get(self._get_position(name), [])

    def write(self, name: str, value: object, lod: LoD | None = None, *, fresh: bool = False) -> None:
        """Set the value and the LoD of a variable; the scope takes over a ``fresh`` array without a copy."""
        position = self._get_position(name)
        if lod:
            self._frame.lods[position] = lod
        else:
            self._frame.lods.pop(position, None)
        if position in self._frame.holders:
            value = write_persistable(self._frame, position, value, fresh=fresh)
        self._frame.values[position] = value

    def run_block(self, index: int) -> None:
        """Run a sub-block on the same values."""
        frame = self._frame
        for step in frame.blocks[index]:
            step.run(frame)

    def clear(self, index: int) -> None:
        """Remove the values of a sub-block's own variables."""
        values, lods = self._frame.values, self._frame.lods
        positions = self._frame.layout.get_own_positions(index)
        for position in positions:
            values[position] = None
        if lods:
            for position in positions:
                lods.pop(position, None)

    def inside(self, index: int) -> StepContext:
        """Return the context for a sub-block, whose variables hide outer variables of the same name."""
        return StepContext(self._frame, self.op, self._block.program.blocks[index])

    def owns(self, name: str) -> bool:
        """Return whether the block of this context has a variable of that name; outer blocks do not count."""
        return name in self._block.vars

    def is_read(self, slot: str) -> bool:
        """Return whether any operator of the run reads a variable of an output slot."""
        return any(self._get_position(name) in self._frame.layout.reads for name in self.op.output(slot))

    def snapshot(self, index: int) -> Snapshot:
        """Return the values of a sub-block's own variables."""
        frame = self._frame
        values = {position: frame.values[position] for position in frame.layout.get_own_positions(index)}
        return Snapshot(values, {position: lod for position, lod in frame.lods.items() if position in values})

    def snapshot_overwritten(self) -> Snapshot:
        """Return the values of the outer variables that the sub-block reads and then overwrites."""
        return self._take_snapshot(self._frame.layout.get_overwritten_positions(self.op))

    def _take_snapshot(self, positions: Iterable[int]) -> Snapshot:
        frame = self._frame
        values = {position: frame.values[position] for position in positions}
        for position in frame.holders.keys() & values.keys():  # its memory will be overwritten
            values[position] = copy.copy(values[position])
        lods = {position: frame.lods[position] for position in values if position in frame.lods}
        return Snapshot(values, lods)

    def reveal(self, snapshot: Snapshot | None) -> None:
        """Let gradients of earlier operators read the values from before a block overwrote them.

        None means that the block has not changed them.
        """
        values, layout = self._frame.values, self._frame.layout
        for position in layout.get_overwritten_positions(self.op):
            value = values[position] if snapshot is None else snapshot.values[position]
            if position in layout.earlier:
                values[layout.earlier[position]] = value

    def restore(self, snapshot: Snapshot) -> None:
        """Put the values of a snapshot back."""
        values, lods = self._frame.values, self._frame.lods
        for position, value in snapshot.values.items():
            values[position] = value
        if lods:
            for position in snapshot.values:
                lods.pop(position, None)
        lods.update(snapshot.lods)

    def exchange(self, snapshot: Snapshot) -> Snapshot:
        """Put back the values of a snapshot. Return a snapshot of the values that they replace."""
        before = self._take_snapshot(snapshot.values)
        self.restore(snapshot)
        return before

    def random(self, seed: int) -> Generator:
        """Return a generator that starts at ``seed``; for 0 the generator of the scope."""
        return Generator(seed) if seed else self._frame.scope.generator

    def service(self, name: str) -> object:
        """Return the object that the caller of the run registered under a name for operators, or None."""
        return self._frame.services.get(name)
