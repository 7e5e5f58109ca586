"""The order in which recurrent operators run sequences, and their activations.

Sequences run side by side, longest first, so that every time step is one matrix product. Step t works on the
sequences that have a row t. Arrays in "batch order" hold the rows of step 0, then those of step 1, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np

from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import Array
from paddlelike.lazy import dataclass

Spans = list[tuple[int, int, int]]  # (begin, end, begin of the step before or -1) of every step


@dataclass(frozen=True, eq=False)
class Steps:
    """The rows of sequences in batch order. Equal objects are cached, shared and never changed."""

    rows: Array  # the row of the sequences at each index of the batch order
    bounds: list[int]  # where each step begins; the last entry is the number of rows
    order: Array  # the sequences, longest first
    places: Array  # of each row in batch order, its place within its step
    previous: Array  # of each row after the first step, the index of the row before it
    spans: Spans

    @classmethod
    def of(cls, offsets: Array, *, reverse: bool = False) -> Steps:
        """Return the steps through sequences with these offsets; ``reverse`` begins with their last rows."""
        return cls.through(offsets[:-1], offsets[1:] - offsets[:-1], reverse=reverse)

    @classmethod
    def through(cls, starts: Array, lengths: Array, *, reverse: bool = False) -> Steps:
        """Return the steps through sequences that begin at these rows, in any order."""
        return _find_steps(starts.astype(np.int64).tobytes(), lengths.astype(np.int64).tobytes(), reverse)

    @classmethod
    def side_by_side(cls, time: int, count: int) -> Steps:
        """Return the steps through ``count`` sequences of ``time`` rows each that are in batch order
        already.
        """
        return _find_even_steps(time, count)

    @cached_property
    def first(self) -> int:
        """The number of sequences that have a first step."""
        return self.bounds[1] if len(self.bounds) > 1 else 0

    def are_small(self, width: int) -> bool:
        """Return whether one compiled kernel, if available, should run all steps of ``width`` cells."""
        return self.first <= _FEW and self.first * width * width <= _NARROW

    def owner(self) -> Array:
        """Return, for each row in batch order, the index of its sequence."""
        return self.order.take(self.places)

    def before(self, states: Array, initial: Array) -> Array:
        """Return the state before each row: that of the previous step, or ``initial`` in the first step."""
        out = np.empty_like(states)
        out[: self.first] = initial
        states.take(self.previous, axis=0, out=out[self.first :], mode="clip")  # clip: without a copy
        return out

    def find_blocks(self, count: int) -> Blocks:
        """Return where the parts of rows are if a step holds all first parts, then all second ones."""
        return _find_blocks(self, count)


class Blocks(NamedTuple):
    """Indices that reorder the parts of rows: within each step, part 0 of all rows, then part 1, and so on.

    Calls of numpy on few rows take half as long when the same part of all rows is one piece of memory.
    """

    source: Array  # of each part in a block, its index in the rows of the sequences
    in_rows: Array  # of each part of the rows of the sequences, its index in the blocks
    in_batch: Array  # the same for rows in batch order


@lru_cache(maxsize=16)
def _find_blocks(steps: Steps, count: int) -> Blocks:
    bounds, parts = np.array(steps.bounds), np.arange(count)
    sizes = np.diff(bounds)
    begins = np.repeat(bounds[:-1], sizes)
    in_batch = (count * begins + steps.places)[:, None] + parts * np.repeat(sizes, sizes)[:, None]
    in_rows = np.empty_like(in_batch)
    in_rows[steps.rows] = in_batch
    source = np.empty(in_rows.size, np.int64)
    source[in_rows.reshape(-1)] = np.arange(in_rows.size)
    blocks = Blocks(source, in_rows.reshape(-1), in_batch.reshape(-1))
    for array in blocks:
        array.flags.writeable = False
    return blocks


@lru_cache(maxsize=16)
def _find_even_steps(time: int, count: int) -> Steps:
    return _make_steps(np.arange(time * count), np.full(time, count), np.arange(count))


@lru_cache(maxsize=8)
def _find_steps(starts_bytes: bytes, lengths_bytes: bytes, reverse: bool) -> Steps:
    """Return the steps, cached: an operator, its gradient and both directions of a layer share them."""
    starts, lengths = np.frombuffer(starts_bytes, np.int64), np.frombuffer(lengths_bytes, np.int64)
    order = np.argsort(-lengths, kind="stable")
    lengths = lengths[order]
    ends = np.cumsum(lengths)
    time = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
    ahead = np.repeat(lengths, lengths) - 1 - time if reverse else time
    rows = (np.repeat(starts[order], lengths) + ahead)[np.argsort(time, kind="stable")]
    counts = np.bincount(time) if len(time) else np.zeros(0, np.int64)
    return _make_steps(rows, counts, order)


def _make_steps(rows: Array, counts: Array, order: Array) -> Steps:
    """Return the steps of rows in batch order; ``counts[t]`` rows belong to step t."""
    begins = np.cumsum(counts) - counts
    places = np.arange(len(rows)) - np.repeat(begins, counts)
    first = counts[0] if len(counts) else 0
    previous = np.repeat(begins[:-1], counts[1:]) + places[first:]
    bounds = [*begins.tolist(), len(rows)]
    spans = list(zip(bounds, bounds[1:], [-1, *bounds], strict=False))
    for array in (rows, order, places, previous):
        array.flags.writeable = False
    return Steps(rows, bounds, order, places, previous, spans)


def order_initial_rows(initial: Array | None, steps: Steps, width: int, dtype: np.dtype[np.generic]) -> Array:
    """Return the initial states of the nonempty sequences, in the order of the steps; zeros by default."""
    if initial is None:
        return np.zeros((steps.first, width), dtype)
    return initial[steps.order[: steps.first]]


def restore_initial_gradient(d_rows: Array, steps: Steps, initial: Array | None) -> Array | None:
    """Return the gradient of the initial states; sequences without rows get zeros."""
    if initial is None:
        return None
    out = np.zeros_like(initial, d_rows.dtype)
    out[steps.order[: steps.first]] = d_rows
    return out


def transpose_weight(weight: Array, steps: Steps) -> Array:
    """Return the transpose of a weight that every step is multiplied by.

    BLAS takes up to five times as long for some ten rows and a transposed view. So the transpose is copied,
    unless there is only a vector or a few steps.
    """
    transposed = weight.T
    return transposed if steps.first <= 2 or len(steps.spans) < 8 else np.ascontiguousarray(transposed)


def scatter_rows(values: Array, rows: Array) -> Array:
    """Return an array in which row ``rows[i]`` is ``values[i]``."""
    indices = np.empty(len(rows), np.intp)
    indices[rows] = np.arange(len(rows))
    return values.take(indices, axis=0)  # copies whole rows, which an assignment by indices does not


class Activation(NamedTuple):
    """An elementwise function, computed in place, and its slope in terms of its value."""

    apply: Callable[[Array], Array]
    slope: Callable[[Array], Array]


# Up to both limits one compiled kernel takes less time than calls of BLAS and numpy.
_FEW: Final = 8  # sequences side by side
_NARROW: Final = 1 << 16  # products of one step with one gate's weight
LARGEST: Final = 13  # argument of a sigmoid, as in Paddle's recurrent kernels


# Arrays: numpy takes twice as long to make one of a Python number as to add it to a few hundred elements.
_LIMITS: Final = {np.dtype(kind): np.array(LARGEST, kind) for kind in "efd"}
_ONES: Final = {kind: np.ones((), kind) for kind in _LIMITS}


def _sigmoid(x: Array) -> Array:
    np.minimum(x, _LIMITS[x.dtype], out=x)
    np.exp(x, out=x)
    return np.divide(x, np.add(x, _ONES[x.dtype]), out=x)


def _relu(x: Array) -> Array:
    return np.maximum(x, 0, out=x)


ACTIVATIONS: Final = {
    "identity": Activation(lambda x: x, np.ones_like),
    "sigmoid": Activation(_sigmoid, lambda y: y * (1 - y)),
    "tanh": Activation(lambda x: np.tanh(x, out=x), lambda y: 1 - y * y),
    "relu": Activation(_relu, lambda y: (y > 0).astype(y.dtype)),
}


def find_activation(op: str, attribute: str, name: str) -> Activation:
    """Return the activation called ``name``; raise EnforceNotMet when there is none."""
    found = ACTIVATIONS.get(name)
    if found is None:
        known = ", ".join(ACTIVATIONS)
        raise EnforceNotMet(f"{op}: {attribute} is {name!r}, expected one of {known}")
    return found


def clip(x: Array, limit: float) -> Array:
    """Limit ``x`` to [-limit, limit] in place; 0 means no limit."""
    return np.clip(x, -limit, limit, out=x) if limit > 0 else x


def clip_gradient(d_x: Array, x: Array, limit: float) -> None:
    """Return the gradient of :func:`clip`, in place: 0 where ``x`` was set to the limit."""
    if limit > 0:
        d_x[np.abs(x) >= limit] = 0
