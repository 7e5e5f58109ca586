"""The context of a lowering: the operator, its block, and the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.packing import LoweringError, Uncovered
from paddlelike.compiled.tracing.draws import Draw
from paddlelike.compiled.values import Packed
from paddlelike.core import Generator, LoD
from paddlelike.framework import Operator

if TYPE_CHECKING:
    from paddlelike.compiled.pieces.piece_plan import CompiledPlan
    from paddlelike.compiled.tracing.trace import Trace


class Bound(NamedTuple):
    """An upper bound of numbers that are known only on the device.

    ``read`` computes a single number from the inputs of the piece; it is None if the host cannot know it.
    If ``is_reached``, the greatest of the numbers is ``most``.
    """

    most: int
    read: Callable[[Mapping[int, Any]], int] | None
    is_reached: bool = False


Rows = Callable[[Mapping[int, Any], Sequence[int]], int]


class OpContext:
    """The context of a lowering, besides its arguments: the operator, the block and the run."""

    def __init__(self, trace: Trace, op: Operator, rows: Rows | None = None) -> None:
        self.trace = trace
        self.op = op
        self._rows = rows

    @property
    def plan(self) -> CompiledPlan:
        """The plan of the program."""
        return self.trace.plan

    def lod(self, slot: str, index: int = 0) -> LoD:
        """Return no LoD: sequences reach lowerings as Packed values."""
        return []

    read_lod = lod

    def set_lod(self, slot: str, lod: LoD, index: int = 0) -> None:
        """Do nothing."""

    def check(self, holds: Array | bool, message: str) -> None:
        """Fail the run unless ``holds`` is true everywhere; persistables then stay unchanged."""
        self.trace.checks.append((self.op, message, jnp.all(holds)))

    def check_below(self, values: Array, bound: int, subject: str, unless: Array | None = None) -> None:
        """Check that whole numbers are at least 0 and below ``bound``, except where ``unless`` is true."""
        holds = (values >= 0) & (values < bound)
        self.check(holds if unless is None else holds | unless, f"{subject} outside of 0 to {bound - 1}")

    def require(self, holds: Array | bool, reason: str) -> None:
        """Have numpy run the operator from this step on, unless ``holds`` is true everywhere."""
        self.check(holds, Uncovered(reason, self.trace.index))

    def draw(
        self,
        seed: int,
        shape: Sequence[int],
        dtype: jax.typing.DTypeLike,
        sample: Callable[[Generator, int], np.ndarray[Any, Any]],
    ) -> Array:
        """Return random values that the host draws with Paddle's generator before the piece runs."""
        return self.trace.draw(Draw(seed, tuple(shape), np.dtype(dtype), sample, self._rows))

    def draw_seed(self, sample: Callable[[Generator, int], np.ndarray[Any, Any]]) -> Array:
        """Return a random number, int32 of shape (1,), that is the seed of other operators of the piece."""
        (position,) = self.plan.outputs_of[id(self.op)]
        assert isinstance(position, int)
        self.trace.seeds[position] = len(self.trace.drawn)
        return self.draw(0, (1,), np.int32, sample)

    def draw_by(
        self,
        slot: int,
        shape: Sequence[int],
        dtype: jax.typing.DTypeLike,
        sample: Callable[[Generator, int], np.ndarray[Any, Any]],
    ) -> Array:
        """Return random values drawn with the seed in an input slot.

        Raises LoweringError unless the host draws that seed for the same piece.
        """
        position = self.plan.inputs_of[id(self.op)][slot]
        index = self.trace.seeds.get(position) if isinstance(position, int) else None
        if index is None:
            raise LoweringError("the seed is a variable")
        return self.trace.draw(Draw(0, tuple(shape), np.dtype(dtype), sample, self._rows, index))

    def bound(
        self,
        most: int,
        read: Callable[[Mapping[int, Any]], int] | None,
        *,
        slot: int = 0,
        is_reached: bool = False,
    ) -> None:
        """Record an upper bound for the result of an output slot: see :class:`Bound`."""
        self.trace.noted_bounds[slot] = Bound(most, read, is_reached)

    def find_greatest(self, slot: int) -> int | None:
        """Return the upper bound of an input's numbers, or None if it is not known."""
        position = self.plan.inputs_of[id(self.op)][slot]
        bound = None if isinstance(position, list) else self.trace.bounds.get(position)
        return bound.most if bound is not None and bound.is_reached else None

    def with_rows_of(self, x: Packed) -> OpContext:
        """Return a context that draws random values only for used rows.

        Raises LoweringError where the host cannot know how many these are.
        """
        if not x.offsets:
            return self._with_rows_of_step(x)
        count = self._find_count(x)
        if count is None:
            raise LoweringError("it draws values for sequences whose lengths are only known at run time")
        return OpContext(self.trace, self.op, count)

    def note_count(self, offsets: Array, x: Array, find: Callable[[int], int] = int) -> None:
        """Record how the number of rows of new sequences follows from the number of rows of ``x``, if
        possible.
        """
        count = self._find_count(x) if isinstance(x, Packed) else _count_fixed(x.shape[0])
        if count is not None:
            self.trace.root.counts.append((offsets, lambda given, steps: find(count(given, steps))))

    def _find_count(self, x: Packed) -> Rows | None:
        """Return a function by which the host counts the used rows of sequences, or None if the host cannot
        count.
        """
        if not x.offsets:
            return None
        for position, value in self.trace.root.given.items():
            if isinstance(value, Packed) and value.offsets and value.offsets[-1] is x.offsets[-1]:
                return _count_all(position)
        return next((count for known, count in self.trace.root.counts if known is x.offsets[-1]), None)

    def _with_rows_of_step(self, x: Packed) -> OpContext:
        """Return a context for the rows of one step of sequences."""
        source = None if x.source is None else self.trace.root.given.get(x.source)
        if not isinstance(source, Packed) or self.trace.step is None:
            raise LoweringError("it draws values for rows whose count is only known at run time")
        expected = (source.lengths > self.trace.step).sum()
        self.check(x.live == expected, "it draws values for the rows of another step")
        assert x.source is not None
        return OpContext(self.trace, self.op, _count_step(x.source))

    def read_inputs(self) -> list[Any]:
        """Return the values of the input slots; None for a slot of several variables."""
        positions = self.plan.inputs_of[id(self.op)]
        return [None if isinstance(one, list) else self.trace.values.get(one) for one in positions]

    def find_positions(self, names: Sequence[str], block: int | None = None) -> list[int]:
        """Return the positions of variables, as the operator's block or a sub-block sees them."""
        where = self.op.block if block is None else self.plan.program.blocks[block]
        return [self.plan.layout.get_position(where, name) for name in names]

    def run_block(self, index: int, values: Mapping[int, Any], **given: Any) -> Trace:
        """Run the operators of a sub-block, and return its trace.

        ``values``, by position, replace the values of the outer block. For ``given`` see
        :meth:`~paddlelike.compiled.tracing.trace.Trace.enter`.
        """
        inner = self.trace.enter(values, **given)
        for step in self.plan.blocks[index]:
            inner.run(step, self.trace.index)
        return inner

    def add_checks(self, inner: Sequence[tuple[Operator, str]], held: Any) -> None:
        """Add the checks of a block; ``held`` tells whether each was true in every step."""
        for place, (op, message) in enumerate(inner):
            self.trace.checks.append((op, message, held[place]))


def _count_fixed(count: int) -> Rows:
    return lambda given, steps: count


def _count_all(position: int) -> Rows:
    return lambda given, steps: int(given[position].offsets[-1][-1])


def _count_step(position: int) -> Rows:
    return lambda given, steps: int((np.diff(np.asarray(given[position].offsets[-1])) > steps[-1]).sum())
