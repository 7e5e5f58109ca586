"""Elementwise primitives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

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
_FORMULAS: Final[dict[str, Callable[[Equation], str]]] = {
    "atan2": lambda e: _compute_atan2(e),
    "cbrt": lambda e: e.add("Mul", e.add("Sign", e.x), e.add("Pow", e.add("Abs", e.x), e.like(1 / 3))),
    "clamp": lambda e: e.add("Min", e.add("Max", e.inputs[1], e.x), e.inputs[2]),
    "convert_element_type": lambda e: e.cast(e.x, e.dtype),
    "copy": lambda e: e.x,
    "copysign": lambda e: _copy_sign(e),
    "copy_p": lambda e: e.x,
    "erfc": lambda e: e.add("Sub", e.like(1), e.add("Erf", e.x)),
    "exp2": lambda e: e.add("Exp", e.add("Mul", e.x, e.like(math.log(2)))),
    "expm1": lambda e: e.add("Sub", e.add("Exp", e.x), e.like(1)),
    "is_finite": lambda e: e.add("Not", e.add("Or", e.add("IsInf", e.x), e.add("IsNaN", e.x))),
    "log1p": lambda e: e.add("Log", e.add("Add", e.x, e.like(1))),
    "ne": lambda e: e.add("Not", e.add("Equal", *e.inputs)),
    "reduce_precision": lambda e: e.x,
    "rem": lambda e: e.add("Mod", *e.inputs, fmod=1),
    "rsqrt": lambda e: e.add("Reciprocal", e.add("Sqrt", e.x)),
    "shift_left": lambda e: e.add("Mul", e.x, e.add("Pow", e.like(2), e.inputs[1])),
    "shift_right_arithmetic": lambda e: _divide_down(e, e.add("Pow", e.like(2), e.inputs[1])),
    "square": lambda e: e.add("Mul", e.x, e.x),
    "stop_gradient": lambda e: e.x,
}


@translates(*_SAME)
def _translate_same(e: Equation) -> str:
    return e.add(_SAME[e.name], *e.inputs)


@translates(*_LOGICAL)
def _translate_logical(e: Equation) -> str:
    other = e.step.graph.constants.get(e.inputs[-1])
    if e.name == "and" and e.dtypes[0].kind == "i" and other is not None and (other == 1).all():
        return e.add("Mod", e.x, e.like(2))  # which every opset has
    return e.add(_LOGICAL[e.name][e.dtypes[0].kind != "b"], *e.inputs)


@translates(*_FORMULAS)
def _translate_formula(e: Equation) -> str:
    return _FORMULAS[e.name](e)


@translates("integer_pow")
def _translate_integer_pow(e: Equation) -> str:
    power = e.params["y"]
    if power == 2:
        return e.add("Mul", e.x, e.x)
    return e.add("Reciprocal", e.x) if power == -1 else e.add("Pow", e.x, e.like(power))


@translates("round")
def _translate_round(e: Equation) -> str:
    if int(e.params["rounding_method"]) == 1:  # to even
        return e.add("Round", e.x)
    return e.add("Mul", e.add("Sign", e.x), e.add("Floor", e.add("Add", e.add("Abs", e.x), e.like(0.5))))


@translates("select_n")
def _translate_select(e: Equation) -> str:
    which, *cases = e.inputs
    if e.dtypes[0].kind == "b":
        return e.choose(which, cases[1], cases[0])
    chosen = cases[0]
    for number, case in enumerate(cases[1:], 1):
        chosen = e.choose(e.add("Equal", which, e.like(number)), case, chosen)
    return chosen


@translates("optimization_barrier")
def _translate_barrier(e: Equation) -> list[str]:
    return e.inputs


def _copy_sign(e: Equation) -> str:
    size = e.add("Abs", e.x)
    size = size if e.dtypes[0] == e.dtype else e.cast(size, e.dtype)
    return e.add(
        "Where", e.add("Less", e.inputs[1], e.step.constant(0, e.dtypes[1])), e.add("Neg", size), size
    )


def _divide_down(e: Equation, by: str) -> str:
    return e.add("Div", e.add("Sub", e.x, e.add("Mod", e.x, by)), by)


def _compute_atan2(e: Equation) -> str:
    y, x = e.inputs
    angle = e.add("Atan", e.add("Div", y, x))
    behind = e.add("Less", x, e.like(0))
    half = e.add("Where", e.add("Less", y, e.like(0)), e.like(-math.pi), e.like(math.pi))
    both = e.add("And", e.add("Equal", y, e.like(0)), e.add("Equal", x, e.like(0)))
    turned = e.add("Where", behind, e.add("Add", angle, half), angle)
    return e.add("Where", both, e.like(np.zeros(())), turned)
