"""Elementwise activations: relu and its variants, sigmoid, tanh, gelu, swish, ...

Where a formula bends, the gradient at the bend is the one that Paddle's kernels give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import (
    Array,
    Attr,
    Bool,
    Context,
    Float,
    Gradient,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.elementwise.unary import Function, register_function_row
from paddlelike.ops.kernels.special import bound_below, complement, erf, sigmoid, softplus
from paddlelike.ops.operands import BACKENDS, MKLDNN, can_be_equal, count_elements, keep_spec

_ROOT_2_BY_PI: Final = math.sqrt(2 / math.pi)


def _sigmoid_slope(out: Array, d_out: Array) -> Array:
    d_x = np.subtract(1, out)
    d_x *= out
    d_x *= d_out
    return d_x


def _tanh_slope(out: Array, d_out: Array) -> Array:
    d_x = complement(np.square(out))
    d_x *= d_out
    return d_x


def _leaky_relu_slope(out: Array, d_out: Array, *, alpha: float) -> Array:
    below = (out <= 0).astype(out.dtype)
    return d_out * ((out > 0) + alpha * below)


def _elu(x: Array, *, alpha: float) -> Array:
    if alpha < 0:
        return np.maximum(x, 0) + np.minimum(alpha * np.expm1(x), 0)
    return np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0))


def _elu_slope(x: Array, d_out: Array, *, alpha: float) -> Array:
    power = np.exp(x if follows_fluid("elu_gradient") else np.minimum(x, 0))  # infinity x 0 is NaN
    return d_out * ((x > 0) + (x <= 0) * (alpha * power))


def _selu(x: Array, *, alpha: float, scale: float) -> Array:
    return scale * np.where(x <= 0, alpha * np.exp(np.minimum(x, 0)) - alpha, x)


def _selu_slope(out: Array, d_out: Array, *, alpha: float, scale: float) -> Array:
    below = (out + alpha * scale).astype(np.float32).astype(out.dtype)  # Fluid's factor is float32
    return d_out * np.where(out <= 0, below, scale)


def _gelu(x: Array, *, approximate: bool) -> Array:
    if approximate:
        return x * sigmoid(_gelu_bent(x))
    out = erf(x * math.sqrt(0.5))
    out += 1
    out *= x
    out *= 0.5
    return out


def _gelu_bent(x: Array) -> Array:
    """Return ``2 u`` of the approximation ``X (1 + tanh u) / 2``, which is ``X sigmoid(2 u)``."""
    return 2 * _ROOT_2_BY_PI * x * (1 + 0.044715 * x * x)


def _gelu_slope(x: Array, d_out: Array, *, approximate: bool) -> Array:
    if approximate:
        s = sigmoid(_gelu_bent(x))
        bend = s * (1 - s) * x * (2 * _ROOT_2_BY_PI * (1 + 3 * 0.044715 * x * x))
        return d_out * (s + bend)
    bend = x * np.exp(-0.5 * x * x) * _ROOT_2_BY_PI
    return d_out * (0.5 * (1 + erf(x * math.sqrt(0.5)) + bend))


def _swish(x: Array, *, beta: float) -> Array:
    return x * sigmoid(beta * x)


def _swish_slope(x: Array, d_out: Array, *, beta: float) -> Array:
    s = sigmoid(beta * x)
    y = beta * (x * s)
    return d_out * (y + s * (1 - y))


def _hard_swish(x: Array, *, offset: float, scale: float, threshold: float) -> Array:
    return x * np.clip(x + offset, 0, threshold) / scale


def _hard_swish_slope(x: Array, d_out: Array, *, offset: float, scale: float, threshold: float) -> Array:
    moved = x + offset
    between = (moved > 0) & (moved < threshold)
    return d_out * (between * (2 * x + offset) / scale + (moved >= threshold))


def _stanh_slope(x: Array, d_out: Array, *, scale_a: float, scale_b: float) -> Array:
    return scale_a * scale_b * _tanh_slope(np.tanh(scale_a * x), d_out)


def _soft_relu_slope(out: Array, d_out: Array, *, threshold: float) -> Array:
    return d_out * ((out > -threshold) & (out < threshold)) * -np.expm1(-out)


def _count_beyond(x: Array, bound: float) -> Array:
    """Return 1 where X is beyond one of +-bound and 0 between them; 2 beyond both if the bound is
    negative.
    """
    return (x > bound).astype(x.dtype) + (x < -bound).astype(x.dtype)


def _mish_gate(x: Array, threshold: float) -> tuple[Array, Array]:
    """Return softplus(x), with its ends replaced as in Paddle, and the tanh of it."""
    inside = softplus(x)
    if threshold > 0:
        inside = np.where(x > threshold, x, np.where(x < -threshold, np.exp(np.minimum(x, 0)), inside))
    return inside, np.tanh(inside)


def _mish(x: Array, *, threshold: float) -> Array:
    return x * _mish_gate(x, threshold)[1]


def _mish_slope(x: Array, d_out: Array, *, threshold: float) -> Array:
    inside, gate = _mish_gate(x, threshold)
    return d_out * (gate + x * (1 - gate * gate) * -np.expm1(-inside))


def _floats(**defaults: float) -> Mapping[str, Attr]:
    return {name: Float(default) for name, default in defaults.items()}


# Type, formula, value, slope, attributes; by the slot that the slope reads.
_Row = tuple[str, str, Function, Function, Mapping[str, Attr]]
_FROM_OUT: Final[list[_Row]] = [
    (
        "relu",
        "max(X, 0)",
        lambda x: bound_below(x, 0),
        lambda out, d: d * (out > 0).astype(d.dtype),  # in one dtype it takes two thirds of the time
        BACKENDS,
    ),
    (
        "relu6",
        "min(max(X, 0), threshold)",
        lambda x, *, threshold: np.clip(x, 0, threshold),
        lambda out, d, *, threshold: d * ((out > 0) & (out < threshold)),
        _floats(threshold=6.0),
    ),
    (
        "leaky_relu",
        "max(X, alpha X)",
        lambda x, *, alpha: np.maximum(x, alpha * x),
        _leaky_relu_slope,
        {"alpha": Float(0.02), **MKLDNN},
    ),
    (
        "selu",
        "scale (max(X, 0) + min(alpha (e^X - 1), 0))",
        _selu,
        _selu_slope,
        _floats(scale=1.050701, alpha=1.6732632),
    ),
    ("sigmoid", "1 / (1 + e^-X)", lambda x: sigmoid(x), _sigmoid_slope, BACKENDS),
    ("tanh", "tanh(X)", lambda x: np.tanh(x), _tanh_slope, BACKENDS),
    (
        "hard_sigmoid",
        "min(max(slope X + offset, 0), 1)",
        lambda x, *, slope, offset: np.clip(slope * x + offset, 0, 1),
        lambda out, d, *, slope: d * ((out > 0) & (out < 1)) * slope,
        _floats(slope=0.2, offset=0.5),
    ),
    (
        "soft_relu",
        "ln(1 + e^X) with X held within +-threshold",
        lambda x, *, threshold: softplus(np.clip(x, -threshold, threshold)),
        _soft_relu_slope,
        _floats(threshold=40.0),
    ),
]
_FROM_X: Final[list[_Row]] = [
    ("elu", "max(X, 0) + min(alpha (e^X - 1), 0)", _elu, _elu_slope, _floats(alpha=1.0)),
    (
        "gelu",
        "X Phi(X), Phi the normal distribution, or its tanh approximation",
        _gelu,
        _gelu_slope,
        {"approximate": Bool(False), **BACKENDS},
    ),
    ("logsigmoid", "-ln(1 + e^-X)", lambda x: -softplus(-x), lambda x, d: d * sigmoid(-x), BACKENDS),
    ("tanh_shrink", "X - tanh(X)", lambda x: x - np.tanh(x), lambda x, d: d * np.tanh(x) ** 2, BACKENDS),
    (
        "hard_shrink",
        "X where \\|X\\| > threshold, else 0",
        lambda x, *, threshold: x * _count_beyond(x, threshold),
        lambda x, d, *, threshold: d * _count_beyond(x, threshold),
        _floats(threshold=0.5),
    ),
    ("softplus", "ln(1 + e^X)", softplus, lambda x, d: d * sigmoid(x), BACKENDS),
    (
        "softsign",
        "X / (1 + \\|X\\|)",
        lambda x: x / (1 + np.abs(x)),
        lambda x, d: d / (1 + np.abs(x)) ** 2,
        BACKENDS,
    ),
    ("swish", "X / (1 + e^(-beta X))", _swish, _swish_slope, {"beta": Float(1.0), **MKLDNN}),
    (
        "hard_swish",
        "X min(max(X + offset, 0), threshold) / scale",
        _hard_swish,
        _hard_swish_slope,
        _floats(threshold=6.0, scale=6.0, offset=3.0),
    ),
    (
        "brelu",
        "min(max(X, t_min), t_max)",
        lambda x, *, t_min, t_max: np.clip(x, t_min, t_max),
        lambda x, d, *, t_min, t_max: d * ((x > t_min) & (x < t_max)),
        _floats(t_min=0.0, t_max=24.0),
    ),
    (
        "stanh",
        "scale_b tanh(scale_a X)",
        lambda x, *, scale_a, scale_b: scale_b * np.tanh(scale_a * x),
        _stanh_slope,
        _floats(scale_a=0.67, scale_b=1.7159),
    ),
    (
        "thresholded_relu",
        "X where X > threshold, else 0",
        lambda x, *, threshold: x * (x > threshold),
        lambda x, d, *, threshold: d * (x > threshold),
        _floats(threshold=1.0),
    ),
    ("mish", "X tanh(ln(1 + e^X))", _mish, _mish_slope, _floats(threshold=20.0)),
]

for _row in _FROM_OUT:
    register_function_row(*_row[:4], reads="Out", attrs=_row[4])
for _row in _FROM_X:
    register_function_row(*_row[:4], reads="X", attrs=_row[4])


@register
class Softshrink(OpDef):
    """``Out``: X moved by lambda towards 0, and 0 within +-lambda."""

    type = "softshrink"
    keeps_dtype = True
    by_row = True
    attrs = {"lambda": Float(0.5)}  # no name in Python, so the kernels ask the operator for it
    lods_only = True
    lod = "X"
    gradient = Gradient("X", "Out@GRAD", lod="Out@GRAD")

    infer = staticmethod(keep_spec)

    @staticmethod
    def forward(ctx: Context, x: Array) -> Array:
        bound = ctx.op.attrs["lambda"]
        return (x > bound) * (x - bound) + (x < -bound) * (x + bound)

    @staticmethod
    def backward(ctx: Context, x: Array, d_out: Array) -> Array:
        return d_out * _count_beyond(x, ctx.op.attrs["lambda"])


@register
class Prelu(OpDef):
    """``Out = max(X, 0) + Alpha min(X, 0)``.

    Alpha holds one number (``mode`` "all"), one for each channel of X ``(N, C, ...)`` ("channel"), or
    one for each element of a sample ("element").
    """

    type = "prelu"
    by_row = True
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
        d_x = d_out * np.where(x > 0, np.ones((), x.dtype), spread)
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
