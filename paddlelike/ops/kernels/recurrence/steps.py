"""The order in which recurrent operators run sequences, and their activations.

Sequences are run side by side, longest first, one time step after the other: step t works on the
sequences that have a row t, so that the batch shrinks and every step is one matrix product. Arrays in
that order ("batch order") hold the rows of step 0, then those of step 1, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import Array

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "Steps",
    "clip",
    "clip_gradient",
    "find_activation",
    "order_initial_rows",
    "restore_initial_gradient",
    "scatter_rows",
]  # fmt: skip


class Steps(NamedTuple):
    """The rows of sequences in batch order."""

    rows: Array  # the row of the sequences at each index of the batch order
    bounds: list[int]  # where each step begins; the last entry is the number of rows
    order: Array  # the sequences, longest first

    @classmethod
    def of(cls, offsets: Array, *, reverse: bool = False) -> Steps:
        """Return the steps through sequences with these offsets; ``reverse`` begins with their last rows."""
        return cls.through(offsets[:-1], offsets[1:] - offsets[:-1], reverse=reverse)

    @classmethod
    def through(cls, starts: Array, lengths: Array, *, reverse: bool = False) -> Steps:
        """Return the steps through sequences that begin at these rows, in any order."""
        order = np.argsort(-lengths, kind="stable")
        lengths = lengths[order]
        ends = np.cumsum(lengths)
        time = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)
        ahead = np.repeat(lengths, lengths) - 1 - time if reverse else time
        rows = np.repeat(starts[order], lengths) + ahead
        counts = np.bincount(time) if len(time) else np.zeros(0, np.int64)
        return cls(rows[np.argsort(time, kind="stable")], [0, *np.cumsum(counts).tolist()], order)

    @property
    def first(self) -> int:
        """The number of sequences that have a first step."""
        return self.bounds[1] if len(self.bounds) > 1 else 0

    def forwards(self) -> Iterator[tuple[int, int, int]]:
        """Yield (begin, end, begin of the step before) of every step; the first has no step before: -1."""
        yield from zip(self.bounds, self.bounds[1:], [-1, *self.bounds], strict=False)

    def backwards(self) -> Iterator[tuple[int, int, int]]:
        """Return the same from the last step to the first."""
        yield from reversed(list(self.forwards()))

    def owner(self) -> Array:
        """Return, for each row in batch order, the index of its sequence."""
        return np.concatenate([self.order[: e - b] for b, e, _ in self.forwards()] or [self.order[:0]])

    def before(self, states: Array, initial: Array) -> Array:
        """Return the state that each row begins with: that of the step before, at first ``initial``."""
        out = np.empty_like(states)
        for begin, end, last in self.forwards():
            out[begin:end] = initial if last < 0 else states[last : last + end - begin]
        return out


def order_initial_rows(initial: Array | None, steps: Steps, width: int, dtype: np.dtype[np.generic]) -> Array:
    """Return the initial states of the sequences with rows, in the order of the steps; zeros by default."""
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


def scatter_rows(values: Array, rows: Array) -> Array:
    """Return an array whose row ``rows[i]`` is ``values[i]``."""
    indices = np.empty(len(rows), np.intp)
    indices[rows] = np.arange(len(rows))
    return values.take(indices, axis=0)  # copies whole rows, which an assignment by indices does not


class Activation(NamedTuple):
    """A function of each element, worked out in place, and its slope in terms of its value."""

    apply: Callable[[Array], Array]
    slope: Callable[[Array], Array]


LARGEST: Final = 13  # argument of a sigmoid, as in Paddle's recurrent kernels


def _sigmoid(x: Array) -> Array:
    np.minimum(x, LARGEST, out=x)
    np.exp(x, out=x)
    return np.divide(x, x + 1, out=x)


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
    """Keep ``x`` in [-limit, limit], in place; a limit of 0 is none."""
    return np.clip(x, -limit, limit, out=x) if limit > 0 else x


def clip_gradient(d_x: Array, x: Array, limit: float) -> None:
    """Return the gradient of :func:`clip`, in place: 0 where ``x`` was cut to the limit."""
    if limit > 0:
        d_x[np.abs(x) >= limit] = 0
