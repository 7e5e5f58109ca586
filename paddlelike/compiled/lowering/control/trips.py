"""How many steps a loop has, as far as that is known before it runs.

The operators that compute the condition of a loop are run by numpy's kernels while the program is traced,
where what they start from is known: constants, or lengths of sequences, of which a bound is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.tracing.constants import run_kernel
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.opdef import registry

__all__ = ["Trips", "find_trips"]

_MOST: Final = 100_000  # steps that are followed
Values = dict[int, Any]


class Trips(NamedTuple):
    """The steps of a loop.

    Attributes
    ----------
    most : int
        There are no more.
    exact : bool
        Whether there are as many.
    lengths : dict
        By position of an array that the block writes, the length that it has afterwards at least.
    last : dict
        The values, after the last step, of what the condition depends on, by position; if exact.
    count
        Tells the number from the inputs of the piece. Raises LoweringError where that is not possible.
    """

    most: int
    exact: bool
    lengths: dict[int, int]
    last: Values
    count: Callable[[Mapping[int, Any]], int]


class _UnknownError(Exception):
    """The condition depends on values that only the device knows."""


def find_trips(ctx: OpContext, block: int, condition: int) -> Trips | None:
    """Return how many steps a loop has at most; None if that depends on values."""
    ops = ctx.plan.program.blocks[block].ops
    writes = [op for op in ops if op.type == "write_to_array"]
    follower = _Follower(ctx, block, condition, writes)
    try:
        found = follower.follow(None)
    except _UnknownError:
        writes = [op for op in writes if _is_known(ctx, block, condition, [op])]
        follower = _Follower(ctx, block, condition, writes)
        try:
            found = follower.follow(None)
        except _UnknownError:
            return None
    steps, lengths, last = found
    exact = not follower.bounded

    def count(given: Mapping[int, Any]) -> int:
        return steps if exact else follower.follow(given)[0]

    return Trips(steps, exact, lengths, last if exact else {}, count)


def _is_known(ctx: OpContext, block: int, condition: int, writes: list[Operator]) -> bool:
    """Return whether the places that some operators write can be followed."""
    try:
        _Follower(ctx, block, condition, writes).follow(None)
    except _UnknownError:
        return False
    return True


class _Follower:
    """The operators of a block that the condition and the places of an array's elements depend on."""

    def __init__(self, ctx: OpContext, block: int, condition: int, writes: list[Operator]) -> None:
        self._ctx = ctx
        self._plan = ctx.plan
        self._condition = condition
        self._ops = self._plan.program.blocks[block].ops
        self._block = block
        self._writes = {id(op): (*self._find(op.output("Out")), *self._find(op.input("I"))) for op in writes}
        self._needed = {condition, *(index for _, index in self._writes.values())}
        self._slice: set[int] = set()
        self._grow()
        self._start = {
            n: value for n in self._needed if isinstance(value := ctx.trace.values.get(n), np.ndarray)
        }
        bounds = ctx.trace.bounds
        self._bounds = {n: bounds[n] for n in self._needed if n not in self._start and n in bounds}
        self.bounded = bool(self._bounds)

    def _find(self, names: list[str]) -> list[int]:
        return self._ctx.find_positions(names, self._block)

    def _grow(self) -> None:
        """Take in operators until nothing is missing; what a step computes, the next one may read."""
        size = -1
        while size < len(self._slice):
            size = len(self._slice)
            for op in reversed(self._ops):
                if id(op) not in self._writes and self._needed.intersection(self._find(op.output_arg_names)):
                    self._slice.add(id(op))
                    self._needed.update(self._find(op.input_arg_names))

    def follow(self, given: Mapping[int, Any] | None) -> tuple[int, dict[int, int], Values]:
        """Return the number of steps, the lengths of arrays, and the last values.

        ``given`` are the inputs of the piece; without them, bounds take the place of unknown numbers.
        """
        values = dict(self._start)
        if self._bounds:  # it compares with one of these; the device knows whether there is a first step
            values.setdefault(self._condition, np.ones(1, bool))
        for position, bound in self._bounds.items():
            if given is not None and bound.read is None:
                raise LoweringError("the count of its steps is computed")
            number = bound.most if given is None or bound.read is None else bound.read(given)
            values[position] = np.array([number], np.int64)
            if not number:
                values[self._condition] = np.zeros(1, bool)
        lengths: dict[int, int] = {}
        steps = 0
        while self._read(values, self._condition).item():
            if steps == _MOST:
                raise LoweringError(f"it has more than {_MOST} steps")
            self._run_step(values, lengths)
            steps += 1
        return steps, lengths, values

    def _run_step(self, values: Values, lengths: dict[int, int]) -> None:
        for op in self._ops:
            if id(op) in self._writes:
                array, index = self._writes[id(op)]
                lengths[array] = max(lengths.get(array, 0), self._read(values, index).item() + 1)
            elif id(op) in self._slice:
                self._run(op, values)

    def _run(self, op: Operator, values: Values) -> None:
        cls = registry.find_for_version(op.type, self._plan.program.paddle_version)
        if cls is None or op.sub_blocks():
            raise _UnknownError
        args = [
            [self._read(values, n) for n in position] if isinstance(position, list) else
            self._read(values, position) if position > 0 else None
            for position in self._plan.inputs_of[id(op)]
        ]  # fmt: skip
        results = run_kernel(op, cls, args)
        if results is None:
            raise _UnknownError
        several = (results,) if len(cls.output_slots) == 1 else results
        for target, result in zip(self._plan.outputs_of[id(op)], several, strict=True):
            if isinstance(target, list):
                values.update(zip(target, result, strict=False))
            elif target > 0:
                values[target] = result

    @staticmethod
    def _read(values: Values, position: int) -> Any:
        found = values.get(position)
        if not isinstance(found, np.ndarray) or found.size > 64:
            raise _UnknownError
        return found
