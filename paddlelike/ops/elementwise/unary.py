"""Elementwise functions: exp, log, sqrt, abs, floor, sin, erf, pow, sign, ...

Each function is a row of a table, from which :func:`register_function_row` makes the operator. The
activations are rows of the same kind.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import (
    Array,
    Attr,
    Float,
    Gradient,
    GradOp,
    OpDef,
    OpView,
    Spec,
    derive_grad_op,
    register,
)
from paddlelike.framework.opdef.registry import LATER
from paddlelike.ops.elementwise.binary import power
from paddlelike.ops.elementwise.overwriting import make_slope, make_value
from paddlelike.ops.extremes import sign
from paddlelike.ops.kernels.pieces import LARGE, in_pieces
from paddlelike.ops.kernels.rounding import round_packets
from paddlelike.ops.kernels.special import erf
from paddlelike.ops.operands import BACKENDS

Function = Callable[..., Array]


#: Functions and gradients that need few arrays besides the result, or none.
_ONE_ARRAY: Final = frozenset(
    {"exp", "sqrt", "log", "log1p", "square", "abs", "ceil", "floor", "tanh", "relu", "relu6", "sigmoid"}
)
#: Functions whose gradients have no LoD in a run.
_WITHOUT_LOD: Final = frozenset({"mish", "selu"})
#: Functions whose results get no dtype from X where Fluid creates them without one.
_DECLARES_DTYPE: Final = frozenset({"erf", "gelu", "mish"})
#: From this many bytes on, a function of many passes is faster in pieces.
_LEAST: Final = {"gelu": 4 << 20, "mish": 4 << 20}


def _infer_like(x: Spec) -> Spec:
    return x


def register_function_row(
    name: str,
    formula: str,
    value: Function,
    slope: Function,
    *,
    reads: str | None,
    attrs: Mapping[str, Attr] = BACKENDS,
) -> None:
    """Register the operator ``name``: ``Out = value(X)``, element by element.

    ``slope`` computes the gradient of X from the gradient of Out and the array of the slot ``reads`` (X, Out,
    or None when it needs neither). Both functions take the attributes that they name as keywords.
    """
    body: dict[str, Any] = {
        "__doc__": f"``Out = {formula}``, element by element.",
        "__module__": __name__,
        "type": name,
        "attrs": attrs,
        "lod": "X",
        "any_order": True,
        "by_element": True,
        "keeps_dtype": name not in _DECLARES_DTYPE,
        "gradient": Gradient(
            *([] if reads is None else [reads]),
            "Out@GRAD",
            lod="Out@GRAD",
            lod_in_run="" if name in _WITHOUT_LOD else None,
        ),
        "infer": staticmethod(_infer_like),
        "forward": staticmethod(value if name in _ONE_ARRAY else in_pieces(value, _LEAST.get(name, LARGE))),
        "backward": staticmethod(slope if name in _ONE_ARRAY else in_pieces(slope, _LEAST.get(name, LARGE))),
    }
    overwriting = functools.partial(make_value, name)
    overwriting_grad = functools.partial(make_slope, name) if reads == "Out" else lambda keywords: None
    body["make_overwriting_kernel"] = staticmethod(overwriting)
    body["make_overwriting_grad_kernel"] = staticmethod(overwriting_grad)
    register(type(name.title().replace("_", ""), (OpDef,), body))


def _exp(x: Array) -> Array:
    return np.exp(x) if x.dtype.kind == "f" else np.exp(x).astype(x.dtype)


def _sqrt_slope(out: Array, d_out: Array) -> Array:
    d_x = np.divide(d_out, out)
    d_x *= 0.5
    return d_x


def _square_slope(x: Array, d_out: Array) -> Array:
    d_x = np.multiply(x, d_out)
    d_x += d_x  # twice as fast as by the number 2 where arrays are small
    return d_x


def _zero_slope(d_out: Array) -> Array:
    return np.zeros_like(d_out)


# Type, formula, value, slope; by the slot that the slope reads.
_Row = tuple[str, str, Function, Function]
_FROM_OUT: Final[list[_Row]] = [
    ("exp", "e^X", _exp, lambda out, d: d * out),
    ("sqrt", "sqrt(X)", lambda x: np.sqrt(x), _sqrt_slope),
    ("rsqrt", "1 / sqrt(X)", lambda x: 1 / np.sqrt(x), lambda out, d: d * out * out * out * -0.5),
    ("reciprocal", "1 / X", lambda x: 1 / x, lambda out, d: -d * out * out),
]
_FROM_X: Final[list[_Row]] = [
    ("log", "ln(X)", lambda x: np.log(x), lambda x, d: d * (1 / x)),
    ("log1p", "ln(1 + X)", lambda x: np.log1p(x), lambda x, d: d / (x + 1)),
    ("square", "X^2", lambda x: np.square(x), _square_slope),
    ("abs", "\\|X\\|", lambda x: np.abs(x), lambda x, d: d * np.sign(x)),
    ("sin", "sin(X)", lambda x: np.sin(x), lambda x, d: d * np.cos(x)),
    ("cos", "cos(X)", lambda x: np.cos(x), lambda x, d: -d * np.sin(x)),
]
_FROM_X_PLAIN: Final[list[_Row]] = [  # without BACKENDS
    ("asin", "arcsin(X)", lambda x: np.arcsin(x), lambda x, d: d / np.sqrt(1 - x * x)),
    ("acos", "arccos(X)", lambda x: np.arccos(x), lambda x, d: -d / np.sqrt(1 - x * x)),
    ("atan", "arctan(X)", lambda x: np.arctan(x), lambda x, d: d / (1 + x * x)),
    ("erf", "erf(X)", erf, lambda x, d: d * np.exp(-x * x) * (2 / math.sqrt(math.pi))),
]
_STEPS: Final[list[_Row]] = [
    ("ceil", "the least integer >= X", lambda x: np.ceil(x), _zero_slope),
    ("floor", "the greatest integer <= X", lambda x: np.floor(x), _zero_slope),
    ("round", "the nearest integer", round_packets, _zero_slope),
]

for _row in _FROM_OUT:
    register_function_row(*_row, reads="Out")
for _row in _FROM_X:
    register_function_row(*_row, reads="X")
for _row in _FROM_X_PLAIN:
    register_function_row(*_row, reads="X", attrs={})
for _row in _STEPS:
    register_function_row(*_row, reads=None)


@register
class Sign(OpDef):
    """``Out`` is -1, 0 or 1; 0 for NaN. Its gradient is a ``scale`` by 0."""

    type = "sign"
    by_row = True
    lod = "X"
    infer = staticmethod(_infer_like)

    @staticmethod
    def forward(x: Array) -> Array:
        return sign(x)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        return [derive_grad_op(op, "scale", scale=0.0)]


@register
class LaterSign(Sign):
    """``Sign`` of later versions, where NaN stays NaN."""

    type = "sign" + LATER
    since = "2"

    @staticmethod
    def forward(x: Array) -> Array:
        return np.sign(x)


@register
class Pow(OpDef):
    """``Out = X ^ factor``; FactorTensor, of shape (1,), replaces the attribute.

    For integers the factor is truncated to an integer.
    """

    type = "pow"
    keeps_dtype = True
    by_row = True
    inputs = ("X", "FactorTensor?")
    attrs = {"factor": Float(1.0)}
    lod = "X"
    gradient = Gradient("X", "FactorTensor", "Out@GRAD", outputs=("X@GRAD",), lod="Out@GRAD")

    @staticmethod
    def infer(x: Spec, factor_tensor: Spec | None) -> Spec:
        return x

    @staticmethod
    def forward(x: Array, factor_tensor: Array | None, *, factor: float) -> Array:
        return x ** _exponent(x, factor_tensor, factor)

    @staticmethod
    def backward(x: Array, factor_tensor: Array | None, d_out: Array, *, factor: float) -> Array:
        exponent = _exponent(x, factor_tensor, factor)
        return d_out * (exponent * power(x, exponent - 1))


def _exponent(x: Array, tensor: Array | None, factor: float) -> float:
    value = factor if tensor is None else float(tensor.reshape(-1)[0])
    return value if x.dtype.kind == "f" else int(value)
