"""Operators that depend on the position of a row in its sequence: add_position_encoding, row_conv."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Context, Float, Gradient, OpDef, Spec, register
from paddlelike.ops.kernels.lod import read_last_level
from paddlelike.ops.operands import can_be_equal


@register
class AddPositionEncoding(OpDef):
    """``Out = alpha X + beta encoding``: half the columns are sines, half cosines of the position.

    For position ``t`` and column ``k`` of ``h`` in a half, the angle is ``t / 10000^(k / (h - 1))``. X is
    ``(N, T, C)``, or ``(rows, C)`` with LoD. Vaswani et al., 2017.
    """

    type = "add_position_encoding"
    attrs = {"alpha": Float(1.0), "beta": Float(1.0)}
    gradient = Gradient("Out@GRAD")
    lod = "X"
    lods_only = True

    @staticmethod
    def infer(x: Spec) -> Spec:
        if len(x.shape) not in (2, 3) or (x.shape[-1] % 2 and x.shape[-1] > 0):
            raise ShapeError(
                f"add_position_encoding: X has shape {x.shape}; it needs (N, T, C), or (rows, C) with LoD, "
                "and an even C"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, *, alpha: float, beta: float) -> Array:
        out = x * alpha
        if x.ndim == 3:
            out += beta * _compute_encoding(np.arange(x.shape[1]), x.shape[2], x.dtype)
            return out
        if not x.size:
            return out
        offsets = read_last_level(ctx, "X", len(x))
        places = np.arange(len(x)) - np.repeat(offsets[:-1], np.diff(offsets))
        out += beta * _compute_encoding(places, x.shape[1], x.dtype)
        return out

    @staticmethod
    def backward(ctx: Context, d_out: Array, *, alpha: float) -> Array:
        return d_out * alpha


def _compute_encoding(places: Array, columns: int, dtype: np.dtype[np.generic]) -> Array:
    half = columns // 2
    steps = 10000.0 ** (np.arange(half) / (half - 1)) if half > 1 else np.array([10000.0])
    angles = places[:, None] / steps
    return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(dtype)


@register
class RowConv(OpDef):
    """``Out[t] = sum over j of Filter[j] * X[t + j]``, per column and within a sequence.

    X is ``(rows, C)`` with LoD, or ``(N, T, C)``; Filter ``(future + 1, C)``. Amodei et al., Deep Speech 2.
    """

    type = "row_conv"
    inputs = ("X", "Filter")
    gradient = Gradient("X", "Filter", "Out@GRAD")
    lod = "X"

    @staticmethod
    def infer(x: Spec, w: Spec) -> Spec:
        if len(w.shape) != 2 or not can_be_equal(x.shape[-1], w.shape[1]):
            raise ShapeError(
                f"row_conv: X has shape {x.shape} and Filter {w.shape}; it needs (rows ahead, {x.shape[-1]})"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, w: Array) -> Array:
        out = np.zeros_like(x)
        left = _count_rows_left(ctx, x)
        for ahead, factor in enumerate(w):
            here = left > ahead
            out[here] += factor * np.roll(x, -ahead, -2)[here]
        return out

    @staticmethod
    def backward(ctx: Context, x: Array, w: Array, d_out: Array) -> tuple[Array, Array]:
        dx, dw = np.zeros_like(x), np.zeros_like(w)
        left = _count_rows_left(ctx, x)
        for ahead, factor in enumerate(w):
            shown = np.where((left > ahead)[..., None], d_out, 0)
            dw[ahead] = (shown * np.roll(x, -ahead, -2)).reshape(-1, w.shape[1]).sum(0)
            dx += np.roll(shown * factor, ahead, -2)
        return dx, dw


def _count_rows_left(ctx: Context, x: Array) -> Array:
    """Return the number of rows from each row to the end of its sequence, itself included."""
    if x.ndim == 3:
        return np.broadcast_to(np.arange(x.shape[1], 0, -1), x.shape[:2])
    offsets = read_last_level(ctx, "X", len(x))
    return np.repeat(offsets[1:], np.diff(offsets)) - np.arange(len(x))
