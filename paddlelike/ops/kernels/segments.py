"""Sums and maxima of the rows of each sequence, for sequences that have rows.

Many short sequences go side by side, the longest first: one pass over their first rows, one over their second
ones, and so on. numpy's ``reduceat`` does few or long ones faster, and narrow rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array

_WIDE: Final = 32  # elements of a row
_MANY: Final = 1 << 9  # rows
_SHORT: Final = 16  # rows of a sequence, on average
_LONGEST: Final = 128


class _Rounds(NamedTuple):
    """Sequences, longest first: ``counts[k]`` of them have a row k."""

    order: Array
    starts: Array  # in that order
    counts: list[int]

    @classmethod
    def of(cls, starts: Array, lengths: Array) -> _Rounds:
        order = np.argsort(-lengths, kind="stable")
        counts = np.cumsum(np.bincount(lengths)[::-1])[::-1][1:]
        return cls(order, starts[order], counts.tolist())

    def rows(self, x: Array) -> Iterator[tuple[int, int, Array]]:
        """Yield k, the number of sequences with a row k, and these rows, from the second on."""
        for k in range(1, len(self.counts)):
            count = self.counts[k]
            yield k, count, x.take(self.starts[:count] + k, axis=0)

    def restore(self, values: Array) -> Array:
        """Return one row for each sequence in the order that they were given in."""
        out = np.empty_like(values)
        out[self.order] = values
        return out


def _has_many_short(x: Array, lengths: Array) -> bool:
    many = len(x) >= _MANY and x.size >= _WIDE * len(x) and len(x) <= _SHORT * len(lengths)
    return many and int(lengths.max()) <= _LONGEST


def sum_segments(x: Array, starts: Array, lengths: Array) -> Array:
    """Return the sum of the rows of each sequence, one row each; no length is 0.

    >>> sum_segments(np.array([[1.0], [2.0], [4.0]]), np.array([0, 2]), np.array([2, 1])).tolist()
    [[3.0], [4.0]]
    """
    if not _has_many_short(x, lengths):
        return np.add.reduceat(x, starts, axis=0)
    rounds = _Rounds.of(starts, lengths)
    total = x.take(rounds.starts, axis=0)
    for _, count, rows in rounds.rows(x):
        total[:count] += rows
    return rounds.restore(total)


def maximize_segments(x: Array, starts: Array, lengths: Array) -> Array:
    """Return the greatest element of each column of each sequence; no length is 0."""
    if not _has_many_short(x, lengths):
        return np.maximum.reduceat(x, starts, axis=0)
    rounds = _Rounds.of(starts, lengths)
    best = x.take(rounds.starts, axis=0)
    for _, count, rows in rounds.rows(x):
        np.maximum(best[:count], rows, out=best[:count])
    return rounds.restore(best)


def find_maxima(x: Array, starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Return the maxima and the rows of ``x`` that hold them, int32: the first, for a NaN the last row."""
    column = (-1, *(1,) * (x.ndim - 1))
    last = (starts + lengths - 1).astype(np.int32).reshape(column)
    if not _has_many_short(x, lengths):
        best = np.maximum.reduceat(x, starts, axis=0)
        rows = np.arange(len(x), dtype=np.int32).reshape(column)
        hits = np.where(x == np.repeat(best, lengths, axis=0), rows, np.int32(len(x)))
        return best, np.minimum(np.minimum.reduceat(hits, starts, axis=0), last)
    rounds = _Rounds.of(starts, lengths)
    best = x.take(rounds.starts, axis=0)
    place = np.zeros(best.shape, np.uint8)  # of the maximum in its sequence
    for k, count, rows in rounds.rows(x):
        np.copyto(place[:count], np.uint8(k), where=rows > best[:count])
        np.maximum(best[:count], rows, out=best[:count])
    best, index = rounds.restore(best), rounds.restore(place) + starts.astype(np.int32).reshape(column)
    return best, np.where(best == best, index, last)
