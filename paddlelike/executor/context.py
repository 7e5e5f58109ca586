"""What a kernel may ask of the run it is part of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paddlelike.core.random import Generator
from paddlelike.core.scope import Scope
from paddlelike.core.tensor import LoD, LoDTensor
from paddlelike.framework.block import Block
from paddlelike.framework.operator import Operator

if TYPE_CHECKING:
    from paddlelike.executor.plan import Frame

__all__ = ["StepContext"]


class StepContext:
    """The :class:`~paddlelike.framework.registry.Context` of one operator in one run."""

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

    def write(self, name: str, value: Any, lod: LoD | None = None) -> None:
        """Set a variable."""
        from paddlelike.executor.plan import keep

        number = self._number(name)
        if lod:
            self._frame.lods[number] = lod
        else:
            self._frame.lods.pop(number, None)
        if number in self._frame.holders:
            value = keep(self._frame, number, value)
        self._frame.values[number] = value

    def run_block(self, index: int) -> None:
        """Run a sub-block on the same values."""
        frame = self._frame
        steps = frame.plan.sub_block(index)
        if frame.plan.size > len(frame.values):
            frame.values.extend([None] * (frame.plan.size - len(frame.values)))
            self._hold_new()
        for step in steps:
            step.run(frame)

    def _hold_new(self) -> None:
        """Persistables that a sub-block brought in get their place in the scope."""
        frame = self._frame
        for number, variable in frame.plan.persistables.items():
            if number not in frame.holders:
                holder = frame.scope.find_var(variable.name) or frame.scope.var(variable.name)
                frame.holders[number] = holder
                value = holder.value
                frame.values[number] = value.array if isinstance(value, LoDTensor) else value

    def random(self, seed: int) -> Generator:
        """A generator that starts at ``seed``; at 0 the scope's own, which moves on."""
        return Generator(seed) if seed else self._frame.scope.generator

    def service(self, name: str) -> Any:
        """What the caller of the run lends to operators, or None."""
        return self._frame.services.get(name)
