"""Conversion between sequences and padded batches: sequence_pad, sequence_unpad, sequence_mask."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import OWN, Array, Context, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.kernels.lod import (
    check_equal_counts,
    check_level,
    make_lod,
    make_offsets,
    read_last_level,
)


def _find_places(lengths: Array, width: int) -> Array:
    """Return, for each row of the sequences, its index among the rows of a batch padded to ``width``."""
    starts = np.arange(len(lengths)) * width
    return np.arange(lengths.sum()) + np.repeat(starts - make_offsets(lengths)[:-1], lengths)


@register
class SequencePad(OpDef):
    """``Out[i, t]``: row t of sequence i of X; then PadValue up to ``padded_length`` (-1: the longest
    sequence).

    PadValue is one number, or as many as a row has. Length holds the lengths, int64 (sequences,).
    """

    type = "sequence_pad"
    inputs = ("X", "PadValue")
    outputs = ("Out", "Length")
    attrs = {"padded_length": Int(-1)}
    gradient = Gradient("Out@GRAD", "X", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, value: Spec, *, padded_length: int) -> tuple[Spec, Spec]:
        check_level("sequence_pad", x)
        step = x.shape[1:]
        if tuple(value.shape) not in ((1,), tuple(step)):
            raise ShapeError(
                f"sequence_pad: PadValue is {list(value.shape)}, expected (1,) or a row of X {list(x.shape)}"
            )
        width = 1 if padded_length == -1 else padded_length  # not known yet, but Paddle declares it so
        return Spec((-1, width, *step), x.dtype), Spec((-1,), VarType.INT64)

    @staticmethod
    def forward(ctx: Context, x: Array, value: Array, *, padded_length: int) -> tuple[Array, Array]:
        lengths = np.diff(read_last_level(ctx, "X", len(x)))
        longest = int(lengths.max(initial=0))
        width = longest if padded_length < 0 else padded_length
        if longest > width:
            raise EnforceNotMet(
                f"sequence_pad: padded_length is {width}, but a sequence of X has {longest} rows",
                hint="raise maxlen, or leave it out to pad to the longest sequence",
            )
        out = np.empty((len(lengths) * width, *x.shape[1:]), x.dtype)
        out[...] = value.reshape(x.shape[1:]) if value.size > 1 else value.reshape(-1)[0]
        out[_find_places(lengths, width)] = x
        return out.reshape(len(lengths), width, *x.shape[1:]), lengths

    @staticmethod
    def backward(ctx: Context, d_out: Array, x: Array) -> Array:
        lengths = np.diff(read_last_level(ctx, "X", len(x)))
        flat = d_out.reshape(math.prod(d_out.shape[:2]), *x.shape[1:])
        return flat.take(_find_places(lengths, d_out.shape[1]), axis=0)


@register
class SequenceUnpad(OpDef):
    """``Out``: the first ``Length[i]`` steps of each row i of the padded batch X (N, width, ...), as
    sequences.
    """

    type = "sequence_unpad"
    inputs = ("X", "Length")
    gradient = Gradient("Out@GRAD", "X", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: Spec, length: Spec) -> Spec:
        if len(x.shape) < 2:
            raise ShapeError(f"sequence_unpad: X is {list(x.shape)}, expected (N, width, ...)")
        return Spec((-1, *(x.shape[2:] or (1,))), x.dtype, 1)

    @staticmethod
    def forward(ctx: Context, x: Array, length: Array) -> Array:
        lengths = length.reshape(-1)
        check_equal_counts("sequence_unpad", ("rows of X", "Length"), (len(x), len(lengths)))
        if lengths.size and (lengths.min() < 0 or lengths.max() > x.shape[1]):
            raise EnforceNotMet(
                f"sequence_unpad: Length goes from {lengths.min()} to {lengths.max()}, X is {list(x.shape)}"
            )
        ctx.set_lod("Out", [make_lod(lengths)])
        flat = x.reshape(math.prod(x.shape[:2]), *(x.shape[2:] or (1,)))
        return flat.take(_find_places(lengths, x.shape[1]), axis=0)

    @staticmethod
    def backward(ctx: Context, d_out: Array, x: Array) -> Array:
        offsets = read_last_level(ctx, "Out@GRAD", len(d_out))
        d_x = np.zeros((math.prod(x.shape[:2]), *d_out.shape[1:]), d_out.dtype)
        d_x[_find_places(np.diff(offsets), x.shape[1])] = d_out
        return d_x.reshape(x.shape)


@register
class SequenceMask(OpDef):
    """``Y[..., j] = j < X[...]``, for j below ``maxlen`` (-1: the largest element of X), as ``out_dtype``."""

    type = "sequence_mask"
    inputs = ("X", "MaxLenTensor?")
    outputs = ("Y",)
    attrs = {"maxlen": Int(-1), "out_dtype": Int()}

    @staticmethod
    def infer(x: Spec, max_len: Spec | None, *, maxlen: int, out_dtype: int) -> Spec:
        width = maxlen if maxlen > 0 and max_len is None else -1
        return Spec((*x.shape, width), VarType(out_dtype))

    @staticmethod
    def forward(x: Array, max_len: Array | None, *, maxlen: int, out_dtype: int) -> Array:
        width = maxlen if max_len is None else int(max_len.reshape(-1)[0])
        if width < 0:
            width = int(x.max(initial=0))
        return (np.arange(width) < x[..., None]).astype(numpy_dtype(VarType(out_dtype)))
