"""Parts and order of sequences: slice, reverse, reshape; operators on ids: enumerate, erase, scatter."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.core.rows import sum_rows
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    OWN,
    Array,
    Bool,
    Context,
    Gradient,
    GradOp,
    Int,
    Ints,
    OpDef,
    OpView,
    Spec,
    grad_names,
    register,
)
from paddlelike.ops.kernels.lod import (
    check_equal_counts,
    expand_ranges,
    index_sequences,
    make_lod,
    read_last_level,
    read_levels,
)
from paddlelike.ops.operands import same_shape


@register
class SequenceSlice(OpDef):
    """``Out``: ``Length[i]`` rows of sequence i of X from ``Offset[i]`` on; both are (sequences, 1)."""

    type = "sequence_slice"
    inputs = ("X", "Offset", "Length")
    gradient = Gradient("Out@GRAD", "X", "Offset", "Length", outputs=("X@GRAD",), lod_in_run=OWN)

    @staticmethod
    def infer(x: Spec, offset: Spec, length: Spec) -> Spec:
        for slot, spec in (("Offset", offset), ("Length", length)):
            if len(spec.shape) != 2:
                raise ShapeError(f"sequence_slice: {slot} is {list(spec.shape)}, expected (sequences, 1)")
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, offset: Array, length: Array) -> Array:
        rows, lengths = _choose_rows(ctx, x, offset, length)
        ctx.set_lod("Out", [make_lod(lengths)])
        return x.take(rows, axis=0)

    @staticmethod
    def backward(ctx: Context, d_out: Array, x: Array, offset: Array, length: Array) -> Array:
        d_x = np.zeros(x.shape, d_out.dtype)
        d_x[_choose_rows(ctx, x, offset, length)[0]] = d_out
        return d_x


def _choose_rows(ctx: Context, x: Array, offset: Array, length: Array) -> tuple[Array, Array]:
    """Return the rows of X that a slice takes, and the lengths of its sequences."""
    offsets = read_last_level(ctx, "X", len(x))
    start, size = offset.reshape(-1), length.reshape(-1)
    check_equal_counts("sequence_slice", ("X", "Offset", "Length"), (len(offsets) - 1, len(start), len(size)))
    wrong = np.flatnonzero((start < 0) | (size < 0) | (start + size > np.diff(offsets)))
    if wrong.size:
        i = int(wrong[0])
        raise EnforceNotMet(
            f"sequence_slice: sequence {i} has {offsets[i + 1] - offsets[i]} rows, "
            f"but {size[i]} rows from {start[i]} on are requested"
        )
    return expand_ranges(offsets[:-1] + start, size), size


@register
class SequenceReverse(OpDef):
    """``Y``: every sequence of X with its rows in reverse order."""

    type = "sequence_reverse"
    outputs = ("Y",)
    lod = "X"

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        inputs = {"X": grad_names(op.output("Y"))}
        return [GradOp(cls.type, inputs, {"Y": grad_names(op.input("X"))}, {})]

    infer = same_shape("X")

    @staticmethod
    def forward(ctx: Context, x: Array) -> Array:
        offsets = read_last_level(ctx, "X", len(x))
        lengths = np.diff(offsets)
        mirror = np.repeat(offsets[:-1] + offsets[1:] - 1, lengths)
        return x.take(mirror - np.arange(len(x)), axis=0)


@register
class SequenceReshape(OpDef):
    """``Out``: the elements of every sequence of X (T, D) in rows of ``new_dim``."""

    type = "sequence_reshape"
    attrs = {"new_dim": Int()}
    views = True
    gradient = Gradient("Out@GRAD", "X", lod=OWN)

    @staticmethod
    def infer(x: Spec, *, new_dim: int) -> Spec:
        if len(x.shape) != 2:
            raise ShapeError(f"sequence_reshape: X is {list(x.shape)}, expected (T, D)")
        return Spec((-1, new_dim), x.dtype, 1)

    @staticmethod
    def forward(ctx: Context, x: Array, *, new_dim: int) -> Array:
        numbers = np.diff(read_last_level(ctx, "X", len(x))) * x.shape[1]
        wrong = np.flatnonzero(numbers % new_dim)
        if wrong.size:
            raise EnforceNotMet(
                f"sequence_reshape: sequence {wrong[0]} has {numbers[wrong[0]]} numbers, which do not fill "
                f"rows of new_dim {new_dim}"
            )
        ctx.set_lod("Out", [make_lod(numbers // new_dim)])
        return x.reshape(-1, new_dim)

    @staticmethod
    def backward(ctx: Context, d_out: Array, x: Array) -> Array:
        return d_out.reshape(x.shape)


@register
class SequenceEnumerate(OpDef):
    """``Out[t]``: the id of row t and the following ids in its sequence, ``win_size`` in all.

    ``pad_value`` follows where the sequence has ended. X is (T, 1).
    """

    type = "sequence_enumerate"
    attrs = {"win_size": Int(), "pad_value": Int(0), "@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@": Bool(True)}
    lod = "X"

    @staticmethod
    def infer(x: Spec, *, win_size: int) -> Spec:
        if len(x.shape) != 2 or x.shape[1] not in (1, -1):
            raise ShapeError(f"sequence_enumerate: X is {list(x.shape)}, expected (T, 1)")
        return Spec((x.shape[0], win_size), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, *, win_size: int, pad_value: int) -> Array:
        offsets = read_last_level(ctx, "X", len(x))
        ends = np.repeat(offsets[1:], np.diff(offsets))
        rows = np.arange(len(x))[:, None] + np.arange(win_size)
        ids = x.reshape(-1).take(rows, mode="clip")
        ids[rows >= ends[:, None]] = pad_value
        return ids


@register
class SequenceErase(OpDef):
    """``Out``: the ids of X (T, 1) without those in ``tokens``; sequences become shorter."""

    type = "sequence_erase"
    attrs = {"tokens": Ints()}
    lod = "X"

    @staticmethod
    def infer(x: Spec) -> Spec:
        if len(x.shape) != 2 or x.shape[1] not in (1, -1):
            raise ShapeError(f"sequence_erase: X is {list(x.shape)}, expected (T, 1)")
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, *, tokens: list[int]) -> Array:
        lod = read_levels(ctx, "X")
        offsets = read_last_level(ctx, "X", len(x))
        kept = ~np.isin(x.reshape(-1), tokens)
        before = np.concatenate([[0], np.cumsum(kept)])
        ctx.set_lod("Out", [*lod[:-1], before[offsets].tolist()])
        return x[kept]


@register
class SequenceScatter(OpDef):
    """``Out = X``, with ``Updates[t]`` added at row i, column ``Ids[t]``, for all t of sequence i of Ids."""

    type = "sequence_scatter"
    inputs = ("X", "Ids", "Updates")
    gradient = Gradient("Out@GRAD", "Ids", "Updates", outputs=("X@GRAD", "Updates@GRAD"))

    infer = same_shape("X")

    @staticmethod
    def forward(ctx: Context, x: Array, ids: Array, updates: Array) -> Array:
        offsets = read_last_level(ctx, "Ids", len(ids))
        check_equal_counts("sequence_scatter", ("rows of X", "Ids"), (len(x), len(offsets) - 1))
        width = math.prod(x.shape[1:])
        flat = ids.reshape(-1)
        wrong = flat[(flat < 0) | (flat >= width)]
        if wrong.size:
            raise EnforceNotMet(f"sequence_scatter: Ids hold {wrong[0]}, but X is {list(x.shape)}")
        added = sum_rows(index_sequences(offsets) * width + flat, updates.reshape(-1), x.size)
        return x + added.reshape(x.shape)

    @staticmethod
    def backward(ctx: Context, d_out: Array, ids: Array, updates: Array) -> tuple[Array, Array]:
        rows = index_sequences(read_last_level(ctx, "Ids", len(ids)))
        return d_out, d_out[rows, ids.reshape(-1)].reshape(updates.shape)
