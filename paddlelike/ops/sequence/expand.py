"""Operators that repeat sequences, join them, or give rows another LoD."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.core import LoD
from paddlelike.core.rows import sum_rows
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import OWN, Array, Bool, Context, Gradient, Int, Ints, OpDef, Spec, register
from paddlelike.ops.kernels.lod import (
    check_equal_counts,
    expand_ranges,
    index_sequences,
    make_lod,
    read_last_level,
    read_levels,
    sum_segments,
)


@register
class SequenceExpand(OpDef):
    """``Out``: sequence i of X (row i without LoD), repeated once for each part of sequence i of Y.

    Parts are counted at level ``ref_level`` of Y, -1 being the last.
    """

    type = "sequence_expand"
    inputs = ("X", "Y")
    attrs = {"ref_level": Int(-1)}
    lod = "X"
    gradient = Gradient("Out@GRAD", "X", "Y", outputs=("X@GRAD",), lod_in_run=OWN)

    @staticmethod
    def infer(x: Spec, y: Spec, *, ref_level: int) -> Spec:
        if ref_level < -1:
            raise ShapeError(f"sequence_expand: ref_level is {ref_level}, expected -1 (the last) or a level")
        return Spec((-1, *x.shape[1:]), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, y: Array, *, ref_level: int) -> Array:
        rows, lengths = _repeat_rows(ctx, x, ref_level)
        if ctx.lod("X"):
            ctx.set_lod("Out", [make_lod(lengths)])
        return x.take(rows, axis=0)

    @staticmethod
    def backward(ctx: Context, d_out: Array, x: Array, y: Array, *, ref_level: int) -> Array:
        rows, _ = _repeat_rows(ctx, x, ref_level)
        return sum_rows(rows, d_out, len(x))


def _repeat_rows(ctx: Context, x: Array, ref_level: int) -> tuple[Array, Array]:
    """Return the rows of X that the output repeats, and the lengths of the output's sequences."""
    lod = read_levels(ctx, "Y")
    if ref_level >= len(lod):
        raise EnforceNotMet(f"sequence_expand: ref_level is {ref_level}, but Y has {len(lod)} levels of LoD")
    times = np.diff(lod[ref_level])
    offsets = read_last_level(ctx, "X", len(x)) if ctx.lod("X") else np.arange(len(x) + 1)
    check_equal_counts("sequence_expand", ("X", "Y"), (len(offsets) - 1, len(times)))
    lengths = np.repeat(np.diff(offsets), times)
    return expand_ranges(np.repeat(offsets[:-1], times), lengths), lengths


@register
class SequenceExpandAs(OpDef):
    """``Out``: row i of X, repeated once for each row of sequence i of Y; Out has the LoD of Y."""

    type = "sequence_expand_as"
    inputs = ("X", "Y")
    lod = "Y"
    gradient = Gradient("Out@GRAD", "X", "Y", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        return Spec((-1, *x.shape[1:]), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, y: Array) -> Array:
        offsets = np.array(read_levels(ctx, "Y")[0])
        check_equal_counts("sequence_expand_as", ("rows of X", "Y"), (len(x), len(offsets) - 1))
        return x.take(index_sequences(offsets), axis=0)

    @staticmethod
    def backward(ctx: Context, d_out: Array, x: Array, y: Array) -> Array:
        offsets = np.array(read_levels(ctx, "Y")[0])
        starts, lengths = offsets[:-1], offsets[1:] - offsets[:-1]
        if len(lengths) and lengths.min() > 0:
            return sum_segments(d_out, starts, lengths)
        return sum_rows(index_sequences(offsets), d_out, len(x))


@register
class SequenceConcat(OpDef):
    """``Out``: sequence i consists of sequence i of the first X, then of the second X, and so on."""

    type = "sequence_concat"
    inputs = ("X*",)
    lod = "X"
    gradient = Gradient("Out@GRAD", "X", lod_in_run=OWN)

    @staticmethod
    def infer(xs: list[Spec]) -> Spec:
        widths = {math.prod(x.shape[1:]) for x in xs}
        if len(widths) > 1:
            raise ShapeError(
                f"sequence_concat: X have shapes {[list(x.shape) for x in xs]}; rows must have the same dims"
            )
        # Fluid adds up the first dims, those of -1 as well: (-1, 2) and (4, 2) make (3, 2).
        return Spec((max(sum(x.shape[0] for x in xs), -1), *xs[0].shape[1:]), xs[0].dtype)

    @staticmethod
    def forward(ctx: Context, xs: list[Array]) -> Array:
        where, lengths = _join_rows(ctx, xs)
        ctx.set_lod("Out", [make_lod(lengths)])
        out = np.empty((sum(map(len, xs)), *xs[0].shape[1:]), xs[0].dtype)
        for rows, x in zip(where, xs, strict=True):
            out[rows] = x
        return out

    @staticmethod
    def backward(ctx: Context, d_out: Array, xs: list[Array]) -> list[Array]:
        where, _ = _join_rows(ctx, xs)
        return [d_out.take(rows, axis=0).reshape(x.shape) for rows, x in zip(where, xs, strict=True)]


def _join_rows(ctx: Context, xs: list[Array]) -> tuple[list[Array], Array]:
    """Return, for each X, the rows of Out that it fills, and the lengths of the sequences of Out."""
    offsets = [read_last_level(ctx, "X", len(x), i) for i, x in enumerate(xs)]
    check_equal_counts("sequence_concat", ctx.op.input("X"), [len(one) - 1 for one in offsets])
    lengths = np.array([np.diff(one) for one in offsets])
    total = lengths.sum(0)
    starts = np.cumsum(total) - total + np.cumsum(lengths, axis=0) - lengths
    return [expand_ranges(start, length) for start, length in zip(starts, lengths, strict=True)], total


@register
class LodReset(OpDef):
    """``Out = X`` with another LoD: the LoD of Y, else the offsets that Y contains, else ``target_lod``.

    With ``append`` the new level comes below the levels that X has.
    """

    type = "lod_reset"
    inputs = ("X", "Y?")
    attrs = {"target_lod": Ints([]), "append": Bool(False)}
    views = True
    gradient = Gradient("Out@GRAD", "X", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, y: Spec | None, *, target_lod: list[int], append: bool) -> Spec:
        if y is not None:
            return Spec(x.shape, x.dtype, max(y.lod_level or 0, 1))
        return Spec(x.shape, x.dtype, (x.lod_level or 0) + 1 if append else 1)

    @staticmethod
    def forward(ctx: Context, x: Array, y: Array | None, *, target_lod: list[int], append: bool) -> Array:
        if y is not None and ctx.lod("Y"):
            ctx.set_lod("Out", ctx.lod("Y"))
            return x
        offsets = np.array(target_lod if y is None else y, np.int64).reshape(-1)
        level = offsets.tolist()
        if len(level) < 2 or level[0] != 0 or level[-1] != len(x) or (offsets[1:] < offsets[:-1]).any():
            raise EnforceNotMet(
                f"lod_reset: the offsets {level} do not cut the {len(x)} rows of X into sequences",
                hint="offsets begin with 0, never fall, and end with the number of rows",
            )
        above: LoD = ctx.lod("X") if append else []
        ctx.set_lod("Out", [*above, level])
        return x

    @staticmethod
    def backward(ctx: Context, d_out: Array, x: Array) -> Array:
        return d_out
