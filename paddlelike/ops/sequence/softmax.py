"""sequence_softmax: a softmax over each sequence of numbers."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import OWN, Array, Bool, Context, Gradient, OpDef, String, register
from paddlelike.ops.kernels.lod import read_last_level
from paddlelike.ops.operands import same_shape


@register
class SequenceSoftmax(OpDef):
    """``Out[t] = e^X[t] / sum of e^X over the sequence of t``; X is (T, 1) or (T,)."""

    type = "sequence_softmax"
    attrs = {"use_cudnn": Bool(False), "data_format": String("AnyLayout")}
    lod = "X"
    gradient = Gradient("Out", "Out@GRAD", "X", lod_in_run=OWN)

    infer = same_shape("X")

    @staticmethod
    def forward(ctx: Context, x: Array) -> Array:
        if x.size != len(x):
            raise ShapeError(
                f"sequence_softmax: X is {list(x.shape)}, expected (T, 1)",
                hint="layers.softmax normalises the columns of each row",
            )
        starts, lengths = _find_full(read_last_level(ctx, "X", len(x)))
        flat = x.reshape(-1)
        if not len(flat):
            return x.copy()
        out = flat - np.repeat(np.maximum.reduceat(flat, starts), lengths)
        np.exp(out, out=out)
        out /= np.repeat(np.add.reduceat(out, starts), lengths)
        return out.reshape(x.shape)

    @staticmethod
    def backward(ctx: Context, out: Array, d_out: Array, x: Array) -> Array:
        starts, lengths = _find_full(read_last_level(ctx, "X", len(x)))
        if not len(x):
            return d_out.copy()
        y, d_y = out.reshape(-1), d_out.reshape(-1)
        inner = np.repeat(np.add.reduceat(y * d_y, starts), lengths)
        return ((d_y - inner) * y).reshape(x.shape)


def _find_full(offsets: Array) -> tuple[Array, Array]:
    """Return starts and lengths of the nonempty sequences."""
    lengths = np.diff(offsets)
    return offsets[:-1][lengths > 0], lengths[lengths > 0]
