"""Activations over several elements: softmax, maxout; and prelu, which has weights."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import REQUIRED, Array, Bool, Gradient, Int, OpDef, Spec, String, register
from paddlelike.ops.backends import BACKENDS
from paddlelike.ops.kernels.fast import rows as fast
from paddlelike.ops.kernels.nn.softmax import LOWEST, softmax_rows, softmax_rows_dx
from paddlelike.ops.kernels.special import bound_below
from paddlelike.ops.operands import can_be_equal, count_elements, normalize_axis

__all__ = ["Maxout", "Prelu", "Softmax"]


@register
class Softmax(OpDef):
    """``Out = e^X / sum(e^X)`` along ``axis``.

    As in Paddle, a number more than 64 below the greatest counts as 64 below it, so that no
    element of Out is 0 and its logarithm is finite.
    """

    type = "softmax"
    attrs = {
        "axis": Int(-1),
        "data_format": String("AnyLayout"),
        "is_test": Bool(False),
        **BACKENDS,
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
class Prelu(OpDef):
    """``Out = max(X, 0) + Alpha min(X, 0)``.

    Alpha holds one number (``mode`` "all"), one for each channel of X ``(N, C, ...)`` ("channel"), or
    one for each element of a sample ("element").
    """

    type = "prelu"
    inputs = ("X", "Alpha")
    any_order = True
    attrs = {"mode": String("all")}
    lod = "X"
    gradient = Gradient("X", "Alpha", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, alpha: Spec, *, mode: str) -> Spec:
        wants = {"all": 1, "channel": count_elements(x.shape[1:2]), "element": count_elements(x.shape[1:])}
        if mode not in wants:
            raise ShapeError(f"prelu: mode is {mode!r}, expected one of {', '.join(wants)}")
        have = count_elements(alpha.shape)
        if not can_be_equal(have, wants[mode]):
            raise ShapeError(
                f"prelu: Alpha of shape {alpha.shape} holds {have} numbers; "
                f"mode {mode!r} for X of shape {x.shape} needs {wants[mode]}"
            )
        return x

    @staticmethod
    def forward(x: Array, alpha: Array, *, mode: str) -> Array:
        return bound_below(x, 0) + _spread_maxima(alpha, x, mode) * np.minimum(x, 0)

    @staticmethod
    def backward(x: Array, alpha: Array, d_out: Array, *, mode: str) -> tuple[Array, Array]:
        spread = _spread_maxima(alpha, x, mode)
        d_x = d_out * ((x > 0) + (x <= 0) * spread)
        over = tuple(axis for axis, dim in enumerate(spread.shape) if dim == 1)
        d_alpha = np.add.reduce(np.minimum(x, 0) * d_out, axis=over)
        return d_x, d_alpha.reshape(alpha.shape)


def _spread_maxima(alpha: Array, x: Array, mode: str) -> Array:
    """Return Alpha with as many dims as X, to be broadcast over it."""
    if mode == "all":
        return alpha.reshape((1,) * x.ndim)
    if mode == "channel":
        return alpha.reshape(1, -1, *(1,) * (x.ndim - 2))
    return alpha.reshape(1, *x.shape[1:])


@register
class Maxout(OpDef):
    """Out's channel c is the greatest of X's channels ``c groups .. c groups + groups - 1``.

    X is ``(N, C, H, W)`` with the channels at ``axis``; Out has ``C / groups`` of them. Of equal
    greatest elements the first gets the gradient.
    """

    type = "maxout"
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
        return np.maximum.reduce(grouped, axis=axis)

    @staticmethod
    def backward(x: Array, out: Array, d_out: Array, *, groups: int, axis: int) -> Array:
        grouped, axis = _group_channels(x, groups, axis)
        first = np.expand_dims(np.argmax(grouped, axis=axis), axis)
        d_x = np.zeros_like(grouped)
        np.put_along_axis(d_x, first, np.expand_dims(d_out, axis), axis)
        return d_x.reshape(x.shape)


def _group_channels(x: Array, groups: int, axis: int) -> tuple[Array, int]:
    """Return X with its channels as two dims ``C / groups`` and ``groups``, and the axis of the latter."""
    axis %= x.ndim
    shape = (*x.shape[:axis], x.shape[axis] // groups, groups, *x.shape[axis + 1 :])
    return x.reshape(shape), axis + 1
