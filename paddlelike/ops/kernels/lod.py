"""Sequences as rows cut by LoD: offsets, lengths, row indices; for the operators on sequences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddlelike.core.tensor import LoD
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import GRAD, Array, Context, Spec


def find_lod(ctx: Context, slot: str, index: int = 0) -> LoD:
    """Return the LoD of an input, perhaps none; a gradient has that of the variable it belongs to."""
    lod = ctx.lod(slot, index)
    if lod or GRAD not in (name := ctx.op.input(slot)[index]):
        return lod
    return ctx.read_lod(name.partition(GRAD)[0])


def read_levels(ctx: Context, slot: str, index: int = 0) -> LoD:
    """Return the LoD of an input, as :func:`find_lod`; raise EnforceNotMet when it has none."""
    lod, name = find_lod(ctx, slot, index), ctx.op.input(slot)[index]
    if not lod:
        raise EnforceNotMet(
            f"{ctx.op.type}: {slot} ({name!r}) has no LoD, so that its rows are not sequences",
            hint="feed it as fluid.create_lod_tensor(rows, [lengths], place); operators that change the "
            "number of rows drop the LoD",
        )
    return lod


def read_last_level(ctx: Context, slot: str, rows: int, index: int = 0) -> Array:
    """Return the offsets of the sequences of an input; raise EnforceNotMet unless they end at ``rows``."""
    offsets = np.array(read_levels(ctx, slot, index)[-1], np.int64)
    if offsets[-1] != rows:
        raise EnforceNotMet(
            f"{ctx.op.type}: the sequences of {slot} ({ctx.op.input(slot)[index]!r}) have "
            f"{offsets[-1]} rows, but there are {rows}"
        )
    return offsets


def expand_ranges(starts: Array, lengths: Array) -> Array:
    """Return the row indices of many ranges one after the other: ``lengths[i]`` from ``starts[i]`` on.

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
    """Return offsets from lengths: 0 and the running sum."""
    out = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def make_lod(lengths: Array) -> list[int]:
    """Return one level of LoD from lengths."""
    return make_offsets(lengths).tolist()


def check_level(op: str, slot: str, x: Spec) -> None:
    """Raise ShapeError, while a program is built, for a variable that is declared without LoD."""
    if x.lod_level == 0:
        raise ShapeError(
            f"{op}: {slot} of shape {list(x.shape)} has lod_level 0, it takes sequences",
            hint="declare the data with lod_level=1; operators that change the number of rows drop the LoD",
        )


def check_equal_counts(op: str, names: Sequence[str], counts: Sequence[int]) -> None:
    """Raise EnforceNotMet unless the counts of sequences are equal."""
    if len(set(counts)) > 1:
        shown = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
        raise EnforceNotMet(f"{op}: the numbers of sequences differ: {shown}")


def pick_sequences(x: Array, lod: LoD, indices: list[int]) -> tuple[Array, LoD]:
    """Return the sequences of these indices in the first level of ``lod``, with their LoD; else rows."""
    if not lod:
        return x[indices], []
    starts = np.array(lod[0][:-1], np.int64)[indices]
    ends = np.array(lod[0][1:], np.int64)[indices]
    offsets = [0, *np.cumsum(ends - starts).tolist()]
    inner = [n for start, end in zip(starts, ends, strict=True) for n in range(start, end)]
    rows, finer = pick_sequences(x, lod[1:], inner)
    return rows, [offsets, *finer]


def join_lods(lods: list[LoD]) -> LoD:
    """Return the LoD of several tensors one after the other.

    >>> join_lods([[[0, 2, 3]], [[0, 1, 5]]])
    [[0, 2, 3, 4, 8]]
    """
    joined = [list(level) for level in lods[0]]
    for lod in lods[1:]:
        for level, more in zip(joined, lod, strict=True):
            rows = level[-1]  # not read in the loop below, which makes the level longer
            level.extend([rows + offset for offset in more[1:]])
    return joined
