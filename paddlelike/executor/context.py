"""What a kernel may ask of the run it is part of."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from paddlelike.core.random import Generator
from paddlelike.core.scope import Scope
from paddlelike.core.tensor import LoD
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator

if TYPE_CHECKING:
    from paddlelike.executor.frame import Frame

__all__ = ["Snapshot", "StepContext"]


class Snapshot(NamedTuple):
    """Values and LoDs by number."""

    values: dict[int, Any]
    lods: dict[int, LoD]


class StepContext:
    """The :class:`~paddlelike.framework.opdef.registry.Context` of one operator in one run."""

    __slots__ = ("_block", "_frame", "op")

    def __init__(self, frame: Frame, op: Operator, block: Block) -> None:
        self._frame = frame
        self.op = op
        self._block = block

    @property
    def scope(self) -> Scope:
        """The scope of the run."""
        return self._frame.scope

    def _number(self, name: str) -> int:
        number = self._frame.plan.number(self._block, name)
        values = self._frame.values
        if number >= len(values):  # a name first met while running
            values.extend([None] * (number + 1 - len(values)))
            self._frame.hold(number)
        return number

    def lod(self, slot: str, index: int = 0) -> LoD:
        """The LoD of a variable of an input slot; [] when it has none."""
        names = self.op.input(slot)
        return self._frame.lods.get(self._number(names[index]), []) if index < len(names) else []

    def set_lod(self, slot: str, lod: LoD, index: int = 0) -> None:
        """Give a variable of an output slot its LoD."""
        names = self.op.output(slot)
        if index < len(names):
            number = self._number(names[index])
            if lod:
                self._frame.lods[number] = lod
            else:
                self._frame.lods.pop(number, None)

    def read(self, name: str) -> Any:
        """The value of a variable, or None."""
        return self._frame.values[self._number(name)]

    def read_lod(self, name: str) -> LoD:
        """The LoD of a variable."""
        return self._frame.lods.get(self._number(name), [])

    def write(self, name: str, value: Any, lod: LoD | None = None, *, fresh: bool = False) -> None:
        """Set a variable; a ``fresh`` array belongs to nobody else, so that the scope may take it over."""
        from paddlelike.executor.frame import keep

        number = self._number(name)
        if lod:
            self._frame.lods[number] = lod
        else:
            self._frame.lods.pop(number, None)
        if number in self._frame.holders:
            value = keep(self._frame, number, value, fresh=fresh)
        self._frame.values[number] = value

    def run_block(self, index: int) -> None:
        """Run a sub-block on the same values."""
        frame = self._frame
        for step in frame.plan.blocks[index]:
            step.run(frame)

    def clear(self, index: int) -> None:
        """Forget the values of a sub-block's own variables."""
        values, lods = self._frame.values, self._frame.lods
        for number in self._frame.plan.own_numbers(index):
            values[number] = None
            lods.pop(number, None)

    def inside(self, index: int) -> StepContext:
        """The context as a sub-block sees it."""
        return StepContext(self._frame, self.op, self._block.program.blocks[index])

    def owns(self, name: str) -> bool:
        """Whether the block that this context looks from has a variable of that name itself."""
        return name in self._block.vars

    def is_read(self, slot: str) -> bool:
        """Whether any operator of the run reads the variable in an output slot."""
        return any(self._number(name) in self._frame.plan.reads for name in self.op.output(slot))

    def snapshot(self, index: int) -> Snapshot:
        """The values of a sub-block's own variables."""
        return self._values_of(self._frame.plan.own_numbers(index))

    def overwritten(self) -> Snapshot:
        """A snapshot of the variables around the sub-block that it reads and then overwrites."""
        return self._values_of(self._frame.plan.overwritten_numbers(self.op))

    def _values_of(self, numbers: Iterable[int]) -> Snapshot:
        frame = self._frame
        values = {number: frame.values[number] for number in numbers}
        for number in frame.holders.keys() & values.keys():  # its memory is going to be written into
            values[number] = copy.copy(values[number])
        return Snapshot(values, {number: frame.lods[number] for number in values if number in frame.lods})

    def reveal(self, snapshot: Snapshot | None) -> None:
        """Show the values before a block overwrote them to the gradients of what ran before it."""
        values, plan = self._frame.values, self._frame.plan
        for number in plan.overwritten_numbers(self.op):
            values[plan.earlier[number]] = values[number] if snapshot is None else snapshot.values[number]

    def restore(self, snapshot: Snapshot) -> Snapshot:
        """Put the values of a snapshot back; returns one of what was there."""
        frame = self._frame
        before = self._values_of(snapshot.values)
        for number, value in snapshot.values.items():
            frame.values[number] = value
            frame.lods.pop(number, None)
        frame.lods.update(snapshot.lods)
        return before

    def random(self, seed: int) -> Generator:
        """A generator that starts at ``seed``; at 0 the scope's own, which moves on."""
        return Generator(seed) if seed else self._frame.scope.generator

    def service(self, name: str) -> Any:
        """What the caller of the run lends to operators, or None."""
        return self._frame.services.get(name)
