"""Find the number of steps of a loop before it runs, where that is possible.

While the program is traced, numpy's kernels run the operators that compute the condition of a loop, if their
inputs are known: constants, or lengths of sequences, which have a bound. A condition may join a known part to
a part that depends on values ("not at the last step, and no sentence is finished"): then the known part gives
a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from jax import Array

from paddlelike.compiled.lowerings import Results
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.constants import run_kernel
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.framework import Operator
from paddlelike.framework.opdef import registry

_MOST: Final = 100_000  # steps that are followed
_OPEN: Final[Any] = object()  # a condition that depends on values, joined to a known one
_LOGIC: Final = ("logical_and", "logical_or", "logical_not", "assign")
Values = dict[int, Any]


class Trips(NamedTuple):
    """The steps of a loop.

    Attributes
    ----------
    most : int
        The largest number of steps.
    exact : bool
        Whether there are exactly that many.
    lengths : dict
        The least length after the loop of each tensor array that the block writes, by position.
    last : dict
        The variables that the condition depends on, with their values after the last step, by position;
        only if exact.
    count
        Returns the number of steps, computed from the inputs of the piece. Raises LoweringError if that
        is not possible.
    """

    most: int
    exact: bool
    lengths: dict[int, int]
    last: Values
    count: Callable[[Mapping[int, Any]], int]


class _UnknownError(Exception):
    """Raised when the number of steps depends on values on the device."""


def find_trips(ctx: OpContext, block: int, condition: int) -> Trips | None:
    """Return the largest possible number of steps of a loop, or None if it is only known at run time."""
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
    exact = not (follower.bounded or follower.is_open)

    def count(given: Mapping[int, Any]) -> int:
        if follower.is_open:
            raise LoweringError("the number of its steps is only known at run time")
        return steps if exact else follower.follow(given)[0]

    return Trips(steps, exact, lengths, last if exact else {}, count)


def _is_known(ctx: OpContext, block: int, condition: int, writes: list[Operator]) -> bool:
    """Return whether the indexes of written elements can be computed before the run."""
    try:
        _Follower(ctx, block, condition, writes).follow(None)
    except _UnknownError:
        return False
    return True


class _Follower:
    """The operators of a block on which its condition and its array indexes depend."""

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
        self.is_open = False  # whether values may end the loop after a step

    def _find(self, names: list[str]) -> list[int]:
        return self._ctx.find_positions(names, self._block)

    def _grow(self) -> None:
        """Add operators until all inputs are computed; a step may read results of the one before."""
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
        if self._bounds:  # compared with a bound: only the device knows whether there is a first step
            values.setdefault(self._condition, np.ones(1, bool))
        for position, bound in self._bounds.items():
            if given is not None and bound.read is None:
                raise LoweringError("the number of its steps is only known at run time")
            number = bound.most if given is None or bound.read is None else bound.read(given)
            values[position] = np.array([number], np.int64)
            if not number:
                values[self._condition] = np.zeros(1, bool)
        if values.get(self._condition) is None:
            values[self._condition] = _OPEN  # whether there is a first step
        lengths: dict[int, int] = {}
        steps = 0
        while self._goes_on(values):
            if steps == _MOST and self.is_open:
                raise _UnknownError
            if steps == _MOST:
                raise LoweringError(f"it has more than {_MOST} steps")
            self._run_step(values, lengths)
            steps += 1
        return steps, lengths, values

    def _goes_on(self, values: Values) -> bool:
        """Return whether the loop may take one more step."""
        if values.get(self._condition) is _OPEN:
            self.is_open = True
            return True
        return bool(self._read(values, self._condition).item())

    def _run_step(self, values: Values, lengths: dict[int, int]) -> None:
        for op in self._ops:
            if id(op) in self._writes:
                array, index = self._writes[id(op)]
                lengths[array] = max(lengths.get(array, 0), self._read(values, index).item() + 1)
            elif id(op) in self._slice:
                self._run(op, values)

    def _run(self, op: Operator, values: Values) -> None:
        """Compute the results of an operator, and mark those that are only known at run time as unknown."""
        try:
            results = self._compute(op, values)
        except _UnknownError:
            for position in self._find(op.output_arg_names):
                values.pop(position, None)
            return
        for target, result in zip(self._plan.outputs_of[id(op)], results, strict=True):
            if isinstance(target, list):
                values.update(zip(target, result, strict=False))
            elif target > 0:
                values[target] = result

    def _compute(self, op: Operator, values: Values) -> Results:
        cls = registry.find_for_version(op.type, self._plan.program.paddle_version)
        if cls is None or op.sub_blocks():
            raise _UnknownError
        positions = self._plan.inputs_of[id(op)]
        if op.type in _LOGIC:
            decided = _decide(op.type, [values.get(n) for n in positions if isinstance(n, int)])
            if decided is not None:
                return (decided,)
        args = [
            [self._read(values, n) for n in position] if isinstance(position, list) else
            self._read(values, position) if position > 0 else None
            for position in positions
        ]  # fmt: skip
        results = run_kernel(op, cls, args)
        if results is None:
            raise _UnknownError
        return (results,) if len(cls.output_slots) == 1 else results

    @staticmethod
    def _read(values: Values, position: int) -> Array | np.ndarray[Any, Any]:
        found = values.get(position)
        if not isinstance(found, np.ndarray) or found.size > 64:
            raise _UnknownError
        return found


def _decide(type: str, args: list[Array]) -> Array | np.ndarray[Any, Any] | None:
    """Return the result of a logical operator with an unknown argument; None if it is unknown.

    One known argument may decide the result.
    """
    known = [arg for arg in args if isinstance(arg, np.ndarray)]
    if len(known) == len(args):
        return None
    if type in ("logical_not", "assign"):
        return _OPEN if args[0] is _OPEN else None
    deciding = type == "logical_or"
    if any(arg.size == 1 and bool(arg.item()) == deciding for arg in known):
        return np.full(1, deciding)
    return _OPEN if known or any(arg is _OPEN for arg in args) else None
