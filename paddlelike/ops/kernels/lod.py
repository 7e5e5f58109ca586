"""Sequences as rows cut by LoD: offsets, lengths, row indices; sums and maxima of the rows of each.

Many short sequences are added step by step: all first rows, then all second rows, and so on, with the longest
sequence in front. For few, long or narrow sequences numpy's ``reduceat`` is faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from paddlelike.core import LoD
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import GRAD, Array, Context, Spec


def find_lod(ctx: Context, slot: str, index: int = 0) -> LoD:
    """Return the LoD of an input, or [] without one; a gradient has the LoD of its variable."""
    lod = ctx.lod(slot, index)
    if lod or GRAD not in (name := ctx.op.input(slot)[index]):
        return lod
    return ctx.read_lod(name.partition(GRAD)[0])


def read_levels(ctx: Context, slot: str, index: int = 0) -> LoD:
    """Return the LoD of an input. Raises EnforceNotMet when it has none."""
    lod, name = find_lod(ctx, slot, index), ctx.op.input(slot)[index]
    if not lod:
        raise EnforceNotMet(
            f"{ctx.op.type}: {slot} ({name!r}) has no LoD, so that its rows are not sequences",
            hint="feed it as fluid.create_lod_tensor(rows, [lengths], place); operators that change the "
            "number of rows drop the LoD",
        )
    return lod


def read_last_level(ctx: Context, slot: str, rows: int, index: int = 0) -> Array:
    """Return the offsets of the sequences of an input. Raises EnforceNotMet unless they end at ``rows``."""
    offsets = np.array(read_levels(ctx, slot, index)[-1], np.int64)
    if offsets[-1] != rows:
        raise EnforceNotMet(
            f"{ctx.op.type}: the sequences of {slot} ({ctx.op.input(slot)[index]!r}) have "
            f"{offsets[-1]} rows, but there are {rows}"
        )
    return offsets


def expand_ranges(starts: Array, lengths: Array) -> Array:
    """Return the row indexes of many ranges, concatenated: ``lengths[i]`` indexes from ``starts[i]`` on.

    >>> expand_ranges(np.array([4, 0]), np.array([2, 3])).tolist()
    [4, 5, 0, 1, 2]
    """
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(starts - ends + lengths, lengths)


def index_sequences(offsets: Array) -> Array:
    """Return, for each row, the index of its sequence.

    >>> index_sequences(np.array([0, 2, 2, 5])).tolist()
    [0, 0, 2, 2, 2]
    """
    lengths = offsets[1:] - offsets[:-1]
    return np.repeat(np.arange(len(lengths)), lengths)


def make_offsets(lengths: Array) -> Array:
    """Return offsets from lengths: 0, then the cumulative sums."""
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def make_lod(lengths: Array) -> list[int]:
    """Return one level of LoD from lengths."""
    return make_offsets(lengths).tolist()


def check_level(op: str, x: Spec) -> None:
    """Raise ShapeError, while a program is built, for a variable that is declared without LoD."""
    if x.lod_level == 0:
        raise ShapeError(
            f"{op}: X of shape {list(x.shape)} has lod_level 0, it takes sequences",
            hint="declare the data with lod_level=1; operators that change the number of rows drop the LoD",
        )


def check_equal_counts(op: str, names: Sequence[str], counts: Sequence[int]) -> None:
    """Raise EnforceNotMet unless the numbers of sequences are equal."""
    if len(set(counts)) > 1:
        shown = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
        raise EnforceNotMet(f"{op}: the numbers of sequences differ: {shown}")


def pick_sequences(x: Array, lod: LoD, indices: list[int]) -> tuple[Array, LoD]:
    """Return the sequences with these indexes in the first level of ``lod``, with their LoD; without LoD,
    rows.
    """
    if not lod:
        return x[indices], []
    starts = np.array(lod[0][:-1], np.int64)[indices]
    ends = np.array(lod[0][1:], np.int64)[indices]
    offsets = [0, *np.cumsum(ends - starts).tolist()]
    inner = [n for start, end in zip(starts, ends, strict=True) for n in range(start, end)]
    rows, finer = pick_sequences(x, lod[1:], inner)
    return rows, [offsets, *finer]


def join_lods(lods: list[LoD]) -> LoD:
    """Return the LoD of several concatenated tensors.

    >>> join_lods([[[0, 2, 3]], [[0, 1, 5]]])
    [[0, 2, 3, 4, 8]]
    """
    joined = [list(level) for level in lods[0]]
    for lod in lods[1:]:
        for level, more in zip(joined, lod, strict=True):
            rows = level[-1]  # not read in the loop below, which makes the level longer
            level.extend([rows + offset for offset in more[1:]])
    return joined


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
        """Return one row for each sequence, in the original order."""
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
    """Return the largest element of each column in each sequence; no length is 0."""
    if not _has_many_short(x, lengths):
        return np.maximum.reduceat(x, starts, axis=0)
    rounds = _Rounds.of(starts, lengths)
    best = x.take(rounds.starts, axis=0)
    for _, count, rows in rounds.rows(x):
        np.maximum(best[:count], rows, out=best[:count])
    return rounds.restore(best)


def find_maxima(x: Array, starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Return the maxima and their rows in ``x``, int32: the first maximum, or the last row for NaN."""
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
