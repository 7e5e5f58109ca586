"""Activations over several elements: softmax, maxout; and prelu, which has weights."""

from __future__ import annotations

import functools

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    REQUIRED,
    Array,
    Bool,
    Gradient,
    Int,
    OpDef,
    Spec,
    String,
    register,
    spares_first,
)
from paddlelike.ops.extremes import take_greater
from paddlelike.ops.kernels.fast import rows as fast
from paddlelike.ops.kernels.nn.softmax import LOWEST, softmax_rows, softmax_rows_dx
from paddlelike.ops.kernels.special import bound_below
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import MKLDNN, normalize_axis


@register
class Softmax(OpDef):
    """``Out = e^X / sum(e^X)`` along ``axis``.

    As in Paddle, a number more than 64 below the greatest counts as 64 below it, so that Out is never 0.
    """

    type = "softmax"
    keeps_dtype = True
    by_row = spares_first("axis")
    attrs = {
        "axis": Int(-1),
        "use_cudnn": Bool(False),
        "data_format": String("AnyLayout"),
        **MKLDNN,
        "is_test": Bool(False),
    }
    lod = "X"
    gradient = Gradient("Out", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, axis: int) -> Spec:
        normalize_axis("softmax", axis, len(x.shape))
        return x

    @staticmethod
    def forward(x: Array, *, axis: int) -> Array:
        if axis in (-1, x.ndim - 1):
            return softmax_rows(x)
        out = np.subtract(x, np.maximum.reduce(x, axis=axis, keepdims=True))
        bound_below(out, LOWEST, out)
        np.exp(out, out=out)
        out /= np.add.reduce(out, axis=axis, keepdims=True)
        return out

    @staticmethod
    def backward(out: Array, d_out: Array, *, axis: int) -> Array:
        if axis in (-1, out.ndim - 1):
            if (kernel := fast.softmax_dx.choose(out.size, out, d_out)) is not None:
                d_x = np.empty_like(out)
                kernel(*(a.reshape(-1, a.shape[-1]) for a in (out, d_out, d_x)))
                return d_x
            return softmax_rows_dx(out, d_out)
        d_x = np.subtract(d_out, np.add.reduce(d_out * out, axis=axis, keepdims=True))
        d_x *= out
        return d_x


@register
class Maxout(OpDef):
    """``Out``: channel c is the maximum of channels ``c groups .. c groups + groups - 1`` of X.

    X is ``(N, C, H, W)`` with the channels at ``axis``; Out has ``C / groups`` channels. The gradient goes to
    the first maximum.
    """

    type = "maxout"
    by_row = True
    attrs = {"groups": Int(REQUIRED), "axis": Int(1)}
    gradient = Gradient("X", "Out", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, groups: int, axis: int) -> Spec:
        axis = normalize_axis("maxout", axis, len(x.shape))
        channels = x.shape[axis]
        if groups < 2 or (channels >= 0 and channels % groups):
            raise ShapeError(
                f"maxout: groups is {groups} and X of shape {x.shape} has {channels} channels "
                f"at axis {axis}; groups must be 2 or more and divide the channels"
            )
        shape = list(x.shape)
        shape[axis] = channels // groups if channels >= 0 else -1
        return Spec(tuple(shape), x.dtype)

    @staticmethod
    def forward(x: Array, *, groups: int, axis: int) -> Array:
        grouped, axis = _group_channels(x, groups, axis)
        least = x.dtype.type(np.finfo(np.float32).min)  # Fluid's, of any dtype
        return functools.reduce(take_greater, np.moveaxis(grouped, axis, 0), least)

    @staticmethod
    def backward(x: Array, out: Array, d_out: Array, *, groups: int, axis: int) -> Array:
        grouped, axis = _group_channels(x, groups, axis)
        equal = grouped == np.expand_dims(out, axis)
        is_first = equal & (np.cumsum(equal, axis) == 1)
        return np.where(is_first, np.expand_dims(d_out, axis), d_out.dtype.type(0)).reshape(x.shape)


def _group_channels(x: Array, groups: int, axis: int) -> tuple[Array, int]:
    """Return X with its channels as dims ``C / groups`` and ``groups``, and the axis of ``groups``."""
    axis %= x.ndim
    shape = (*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :])
    return x.reshape(shape), axis + 1


@register_kernel("log_softmax", "X -> Out", {"axis": Int(-1)}, by_row=spares_first("axis"))
def _log_softmax(x: Array, *, axis: int) -> Array:
    """``X - ln(sum of e^X)`` along an axis."""
    shifted = x - x.max(axis, keepdims=True) if x.ndim else x - x
    return shifted - np.log(np.exp(shifted).sum(axis if x.ndim else None, keepdims=True))
