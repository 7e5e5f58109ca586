"""Functions of a single element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from paddlelike.framework.environment import PADDLE3_VERSION
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.ops.elementwise.names import UNARY_IN_ONNX

#: The ONNX operator, and its attributes by Paddle's names.
_RENAMED: Final = {
    "celu": ("Celu", {"alpha": "alpha"}),
    "elu": ("Elu", {"alpha": "alpha"}),
    "hard_shrink": ("Shrink", {"lambd": "threshold"}),
    "hard_sigmoid": ("HardSigmoid", {"alpha": "slope", "beta": "offset"}),
    "selu": ("Selu", {"alpha": "alpha", "gamma": "scale"}),
    "softshrink": ("Shrink", {"lambd": "lambda", "bias": "lambda"}),
    "thresholded_relu": ("ThresholdedRelu", {"alpha": "threshold"}),
}
_FORMULAS: Final[dict[str, Callable[[Step, Value], Value]]] = {
    "brelu": lambda s, x: clip(s, x, s.attr("t_min"), s.attr("t_max")),
    "expm1": lambda s, x: s.add("Exp", x) - 1.0,
    "isfinite_v2": lambda s, x: ~(s.add("IsInf", x) | s.add("IsNaN", x)),
    "log10": lambda s, x: s.add("Log", x) / s.like(math.log(10)),
    "log1p": lambda s, x: s.add("Log", x + 1.0),
    "log2": lambda s, x: s.add("Log", x) / s.like(math.log(2)),
    "logsigmoid": lambda s, x: -s.add("Softplus", -x),
    "mish": lambda s, x: x * s.add("Tanh", s.add("Softplus", x)),
    "relu6": lambda s, x: clip(s, x, 0, s.attr("threshold", 6.0)),
    "rsqrt": lambda s, x: s.add("Reciprocal", s.add("Sqrt", x)),
    "silu": lambda s, x: x * s.add("Sigmoid", x),
    "soft_relu": lambda s, x: s.add("Softplus", clip(s, x, -s.attr("threshold"), s.attr("threshold"))),
    "square": lambda s, x: x * x,
    "stanh": lambda s, x: scale(s, s.add("Tanh", scale(s, x, s.attr("scale_a"))), s.attr("scale_b")),
    "swish": lambda s, x: x * s.add("Sigmoid", scale(s, x, s.attr("beta"))),
    "trunc": lambda s, x: s.add("Sign", x) * s.add("Floor", abs(x)),
    "tanh_shrink": lambda s, x: x - s.add("Tanh", x),
}


def clip(step: Step, x: Value, low: float, high: float) -> Value:
    """Return a value within bounds."""
    return step.add("Clip", x, step.like(low), step.like(high))


def scale(step: Step, x: Value, by: float) -> Value:
    """Return a value times a number."""
    return x if by == 1 else x * step.like(by)


@converts(*UNARY_IN_ONNX)
def _convert_same(step: Step) -> Value:
    return step.add(UNARY_IN_ONNX[step.op.type], step.input())


@converts(*_RENAMED)
def _convert_renamed(step: Step) -> Value:
    kind, names = _RENAMED[step.op.type]
    attrs = {name: float(step.attr(theirs)) for name, theirs in names.items()}
    return step.add(kind, step.input(), **attrs)


@converts(*_FORMULAS)
def _convert_formula(step: Step) -> Value:
    return _FORMULAS[step.op.type](step, step.input())


@converts("softplus")
def _convert_softplus(step: Step) -> Value:
    """Compute ``ln(1 + e^(beta X)) / beta``, and X itself where ``beta X`` is over the threshold."""
    x = step.input()
    if not step.graph.later:
        return step.add("Softplus", x)
    beta = step.attr("beta")
    scaled = scale(step, x, beta)
    out = scale(step, step.add("Softplus", scaled), 1 / beta)
    large = scaled > step.like(step.attr("threshold"))
    return large.where(x, out)


@converts("leaky_relu")
def _convert_leaky_relu(step: Step) -> Value:
    alpha, x = step.attr("alpha"), step.input()
    if 0 <= alpha <= 1:
        return step.add("LeakyRelu", x, alpha=float(alpha))
    # Paddle: max(X, alpha X)
    return x.maximum(scale(step, x, alpha))


@converts("round")
def _convert_round(step: Step) -> Value:
    """Round halves away from zero. ONNX's Round, like Paddle 3, rounds them to the even number."""
    x = step.input()
    if step.op.block.program.paddle_version >= PADDLE3_VERSION and not step.attr("decimals", 0):
        return step.add("Round", x)
    size = abs(x)
    whole = step.add("Floor", size)
    up = size - whole >= 0.5
    whole = whole + up.cast(step.dtype())
    return step.add("Sign", x) * whole


@converts("gelu")
def _convert_gelu(step: Step) -> Value:
    x = step.input()
    if step.attr("approximate"):
        square = x * x
        bent = scale(step, square, 0.044715) + 1.0
        u = x * scale(step, bent, 2 * math.sqrt(2 / math.pi))
        return x * step.add("Sigmoid", u)
    part = step.add("Erf", scale(step, x, math.sqrt(0.5)))
    part = part + 1.0
    return x * scale(step, part, 0.5)


@converts("hard_swish")
def _convert_hard_swish(step: Step) -> Value:
    x = step.input()
    gate = clip(step, x + step.like(step.attr("offset", 3.0)), 0, step.attr("threshold", 6.0))
    return x * gate / step.like(step.attr("scale", 6.0))


@converts("prelu")
def _convert_prelu(step: Step) -> Value:
    mode, alpha = step.attr("mode"), step.input("Alpha")
    if mode == "all":
        alpha = alpha.reshape(1)
    elif mode == "channel":
        last = step.attr("data_format") == "NHWC"
        alpha = alpha.reshape(-1, *(1,) * (0 if last else step.rank() - 2))
    elif -1 in step.shape()[1:]:
        step.refuse(f"mode 'element' for X of shape {step.shape()}")
    else:
        alpha = alpha.reshape(*step.shape()[1:])
    return step.add("PRelu", step.input(), alpha)
