"""Elementwise primitives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Value
from paddlelike.interop.onnx.exporter.traced.translation import Equation, translates

_SAME: Final = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "add": "Add", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "div": "Div",
    "eq": "Equal", "erf": "Erf", "exp": "Exp", "floor": "Floor", "ge": "GreaterOrEqual", "gt": "Greater",
    "le": "LessOrEqual", "le_to": "LessOrEqual", "log": "Log", "logistic": "Sigmoid", "lt": "Less",
    "lt_to": "Less", "mul": "Mul", "neg": "Neg",
    "pow": "Pow", "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "sub": "Sub", "tan": "Tan",
    "tanh": "Tanh",
}  # fmt: skip
#: By primitive: the node for booleans, for other elements.
_LOGICAL: Final = {
    "add_any": ("Or", "Add"),
    "and": ("And", "BitwiseAnd"),
    "max": ("Or", "Max"),
    "min": ("And", "Min"),
    "not": ("Not", "BitwiseNot"),
    "or": ("Or", "BitwiseOr"),
    "xor": ("Xor", "BitwiseXor"),
}
_FORMULAS: Final[dict[str, Callable[[Equation], Value]]] = {
    "atan2": lambda e: _compute_atan2(e),
    "cbrt": lambda e: e.add("Sign", e.x) * e.add("Pow", abs(e.x), e.like(1 / 3)),
    "clamp": lambda e: e.inputs[1].maximum(e.x).minimum(e.inputs[2]),
    "convert_element_type": lambda e: e.cast(e.x, e.dtype),
    "copy": lambda e: e.x,
    "copysign": lambda e: _copy_sign(e),
    "copy_p": lambda e: e.x,
    "erfc": lambda e: e.like(1) - e.add("Erf", e.x),
    "exp2": lambda e: e.add("Exp", e.x * e.like(math.log(2))),
    "expm1": lambda e: e.add("Exp", e.x) - e.like(1),
    "is_finite": lambda e: ~(e.add("IsInf", e.x) | e.add("IsNaN", e.x)),
    "log1p": lambda e: e.add("Log", e.x + e.like(1)),
    "ne": lambda e: ~e.add("Equal", *e.inputs),
    "reduce_precision": lambda e: e.x,
    "rem": lambda e: e.add("Mod", *e.inputs, fmod=1),
    "rsqrt": lambda e: e.add("Reciprocal", e.add("Sqrt", e.x)),
    "shift_left": lambda e: e.x * e.add("Pow", e.like(2), e.inputs[1]),
    "shift_right_arithmetic": lambda e: _divide_down(e, e.add("Pow", e.like(2), e.inputs[1])),
    "square": lambda e: e.x * e.x,
    "stop_gradient": lambda e: e.x,
}


@translates(*_SAME)
def _translate_same(e: Equation) -> Value:
    return e.add(_SAME[e.name], *e.inputs)


@translates(*_LOGICAL)
def _translate_logical(e: Equation) -> Value:
    other = e.step.graph.constants.get(e.inputs[-1].name)
    if e.name == "and" and e.dtypes[0].kind == "i" and other is not None and (other == 1).all():
        return e.add("Mod", e.x, e.like(2))  # which every opset has
    return e.add(_LOGICAL[e.name][e.dtypes[0].kind != "b"], *e.inputs)


@translates(*_FORMULAS)
def _translate_formula(e: Equation) -> Value:
    return _FORMULAS[e.name](e)


@translates("integer_pow")
def _translate_integer_pow(e: Equation) -> Value:
    power = e.params["y"]
    if power == 2:
        return e.x * e.x
    return e.add("Reciprocal", e.x) if power == -1 else e.add("Pow", e.x, e.like(power))


@translates("round")
def _translate_round(e: Equation) -> Value:
    if int(e.params["rounding_method"]) == 1:  # to even
        return e.add("Round", e.x)
    return e.add("Sign", e.x) * e.add("Floor", abs(e.x) + e.like(0.5))


@translates("select_n")
def _translate_select(e: Equation) -> Value:
    which, *cases = e.inputs
    if e.dtypes[0].kind == "b":
        return e.choose(which, cases[1], cases[0])
    chosen = cases[0]
    for number, case in enumerate(cases[1:], 1):
        chosen = e.choose(which.equals(e.like(number)), case, chosen)
    return chosen


@translates("optimization_barrier")
def _translate_barrier(e: Equation) -> list[Value]:
    return e.inputs


def _copy_sign(e: Equation) -> Value:
    size = abs(e.x)
    size = size if e.dtypes[0] == e.dtype else e.cast(size, e.dtype)
    return (e.inputs[1] < e.step.constant(0, e.dtypes[1])).where(-size, size)


def _divide_down(e: Equation, by: Value) -> Value:
    return (e.x - e.add("Mod", e.x, by)) / by


def _compute_atan2(e: Equation) -> Value:
    y, x = e.inputs
    angle = e.add("Atan", y / x)
    behind = x < e.like(0)
    half = (y < e.like(0)).where(e.like(-math.pi), e.like(math.pi))
    both = y.equals(e.like(0)) & x.equals(e.like(0))
    turned = behind.where(angle + half, angle)
    return both.where(e.like(np.zeros(())), turned)
