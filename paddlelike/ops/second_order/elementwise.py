"""Second gradients of arithmetic and activations.

In the names of arguments ``dd_x`` is the gradient of the gradient of X.
"""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.elementwise import activation, binary, unary  # noqa: F401  (they register the operators)
from paddlelike.ops.kernels.broadcasting import align, sum_to
from paddlelike.ops.second_order.registration import Slots, register_second_order

Maybe = Array | None


def _combine(dd_x: Maybe, dd_y: Maybe, like: Array, axis: int, sign: int) -> Array:
    """Return ``dd_x + sign dd_y`` in the shape of the output; a missing operand counts as zeros."""
    out = np.zeros_like(like)
    for part, factor in ((dd_x, 1), (dd_y, sign)):
        if part is not None:
            out = out + factor * align(out, part, axis)[1]
    return out


def _add(dd_x: Maybe, dd_y: Maybe, d_out: Array, y: Array, *, axis: int) -> Array:
    return _combine(dd_x, dd_y, d_out, axis, 1)


def _sub(dd_x: Maybe, dd_y: Maybe, d_out: Array, y: Array, *, axis: int) -> Array:
    return _combine(dd_x, dd_y, d_out, axis, -1)


def _mul(
    dd_x: Maybe, dd_y: Maybe, d_out: Array, x: Array, y: Array, *, axis: int
) -> tuple[Array, Array, Array]:
    a, b = align(x, y, axis)
    dd_a, dd_b = _align_pair(dd_x, dd_y, x, y, axis)
    return (
        dd_a * b + a * dd_b,
        sum_to(x.shape, np.broadcast_to(d_out * dd_b, d_out.shape), axis),
        sum_to(y.shape, np.broadcast_to(d_out * dd_a, d_out.shape), axis),
    )


def _div(
    dd_x: Maybe, dd_y: Maybe, d_x: Maybe, out: Array, y: Array, *, axis: int
) -> tuple[Array, Array, Array]:
    x_like = out if d_x is None else d_x
    dd_a, dd_b = _align_pair(dd_x, dd_y, x_like, y, axis)
    _, b = align(x_like, y, axis)
    slope = np.zeros_like(out) if d_x is None else d_x
    d_y = np.broadcast_to(slope * (out * dd_b - dd_a) / b, out.shape)
    return (dd_a - out * dd_b) / b, -slope * dd_b, sum_to(y.shape, d_y, axis)


def _align_pair(dd_x: Maybe, dd_y: Maybe, x: Array, y: Array, axis: int) -> tuple[Array, Array]:
    return align(np.zeros_like(x) if dd_x is None else dd_x, np.zeros_like(y) if dd_y is None else dd_y, axis)


_BOTH: Slots = {"DDX": "X@GRAD", "DDY": "Y@GRAD"}
register_second_order("elementwise_add", {**_BOTH, "DOut": "Out@GRAD", "Y": "Y"}, {"DDOut": "Out@GRAD"}, _add)
register_second_order("elementwise_sub", {**_BOTH, "DOut": "Out@GRAD", "Y": "Y"}, {"DDOut": "Out@GRAD"}, _sub)
register_second_order(
    "elementwise_mul",
    {**_BOTH, "DOut": "Out@GRAD", "X": "X", "Y": "Y"},
    {"DDOut": "Out@GRAD", "X@GRAD": "X", "Y@GRAD": "Y"},
    _mul,
)


def _relu(dd_x: Array, out: Array) -> Array:
    return dd_x * (out > 0)


def _leaky_relu(dd_x: Array, out: Array, *, alpha: float) -> Array:
    return dd_x * np.where(out > 0, 1, alpha).astype(out.dtype)


def _elu(dd_x: Array, d_out: Array, x: Array, *, alpha: float) -> tuple[Array, Array]:
    bend = np.where(x > 0, 0, alpha * np.exp(np.minimum(x, 0))).astype(x.dtype)
    return dd_x * ((x > 0) + bend), dd_x * d_out * bend


def _sqrt(dd_x: Array, d_x: Array, out: Array) -> tuple[Array, Array]:
    slope = dd_x / out
    return slope / 2, -d_x * slope


def _square(dd_x: Array, d_out: Array, x: Array) -> tuple[Array, Array]:
    return 2 * x * dd_x, 2 * dd_x * d_out


_FROM_OUT: Slots = {"DDX": "X@GRAD", "Out": "Out"}
_FROM_X: Slots = {"DDX": "X@GRAD", "DOut": "Out@GRAD", "X": "X"}
register_second_order("relu", _FROM_OUT, {"DDOut": "Out@GRAD"}, _relu)
register_second_order("leaky_relu", _FROM_OUT, {"DDOut": "Out@GRAD"}, _leaky_relu)
register_second_order("elu", _FROM_X, {"DDOut": "Out@GRAD", "DX": "X"}, _elu)
register_second_order("square", _FROM_X, {"DDOut": "Out@GRAD", "DX": "X"}, _square)
# These also read the value of X@GRAD, which the gradient operator computes: "DX" below.
register_second_order(
    "sqrt", {"DDX": "X@GRAD", "DX": "=X@GRAD", "Out": "Out"}, {"DDOut": "Out@GRAD", "DOut": "Out"}, _sqrt
)
register_second_order(
    "elementwise_div",
    {**_BOTH, "DX": "=X@GRAD", "Out": "Out", "Y": "Y"},
    {"DDOut": "Out@GRAD", "DOut": "Out", "Y@GRAD": "Y"},
    _div,
)
