"""Functions of a single element."""

from __future__ import annotations

import math
from typing import Final

from paddlelike.framework.environment import PADDLE3_VERSION
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.ops.elementwise.names import FORMULAS, UNARY_IN_ONNX

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
_FORMULAS: Final = FORMULAS | {
    "expm1": lambda x, attr: x.apply("exp") - 1.0,
    "isfinite_v2": lambda x, attr: ~(x.apply("isinf_v2") | x.apply("isnan_v2")),
    "trunc": lambda x, attr: x.apply("sign") * abs(x).apply("floor"),
}


@converts(*UNARY_IN_ONNX)
def _convert_same(step: Step) -> Value:
    return step.input().apply(step.op.type)


@converts(*_RENAMED)
def _convert_renamed(step: Step) -> Value:
    kind, names = _RENAMED[step.op.type]
    attrs = {name: float(step.attr(theirs)) for name, theirs in names.items()}
    return step.add(kind, step.input(), **attrs)


@converts(*_FORMULAS)
def _convert_formula(step: Step) -> Value:
    return _FORMULAS[step.op.type](step.input(), step.attr)  # type: ignore[no-any-return]


@converts("softplus")
def _convert_softplus(step: Step) -> Value:
    """Compute ``ln(1 + e^(beta X)) / beta``, and X itself where ``beta X`` is over the threshold."""
    x = step.input()
    if not step.graph.later:
        return x.softplus()
    beta = step.attr("beta")
    scaled = x.scale(beta)
    out = scaled.softplus().scale(1 / beta)
    large = scaled > step.like(step.attr("threshold"))
    return large.where(x, out)


@converts("leaky_relu")
def _convert_leaky_relu(step: Step) -> Value:
    alpha, x = step.attr("alpha"), step.input()
    if 0 <= alpha <= 1:
        return step.add("LeakyRelu", x, alpha=float(alpha))
    # Paddle: max(X, alpha X)
    return x.maximum(x.scale(alpha))


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
        bent = square.scale(0.044715) + 1.0
        u = x * bent.scale(2 * math.sqrt(2 / math.pi))
        return x * u.apply("sigmoid")
    part = x.scale(math.sqrt(0.5)).apply("erf")
    part = part + 1.0
    return x * part.scale(0.5)


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
