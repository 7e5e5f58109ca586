"""Names in ONNX and CNTK of elementwise operators, and formulas of those that have no name in either."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

_ALIKE: Final = """
    abs acos acosh asin asinh atan atanh ceil cos cosh erf exp floor log reciprocal relu sigmoid sign sin sinh
    softsign sqrt tan tanh
"""
_ALIKE_IN_CNTK: Final = "abs acos asin atan cos cosh exp floor log reciprocal sin sinh sqrt tanh"


class Names(NamedTuple):
    """The names of an operator of two operands, "" for none. ``mirrored`` is for swapped operands."""

    onnx: str
    cntk: str = ""
    mirrored: str = ""


#: Operators of one operand without attributes, by type.
UNARY_IN_ONNX: Final = {type: type.title() for type in _ALIKE.split()} | {
    "isinf_v2": "IsInf",
    "isnan_v2": "IsNaN",
}
UNARY_IN_CNTK: Final = {type: type.title() for type in _ALIKE_IN_CNTK.split()} | {
    "relu": "ReLU",
    "sigmoid": "StableSigmoid",
}
ARITHMETIC: Final = {
    "elementwise_add": Names("Add", "Plus"),
    "elementwise_div": Names("Div"),
    "elementwise_max": Names("Max"),
    "elementwise_min": Names("Min"),
    "elementwise_mul": Names("Mul", "ElementTimes"),
    "elementwise_pow": Names("Pow", "Pow"),
    "elementwise_sub": Names("Sub", "Minus"),
}
COMPARISONS: Final = {
    "greater_equal": Names("GreaterOrEqual", "GreaterEqual", "less_equal"),
    "greater_than": Names("Greater", "Greater", "less_than"),
    "less_equal": Names("LessOrEqual", "LessEqual", "greater_equal"),
    "less_than": Names("Less", "Less", "greater_than"),
}
LOGIC: Final = {"logical_and": Names("And"), "logical_or": Names("Or"), "logical_xor": Names("Xor")}
#: Their names in ONNX, of integers.
BITS: Final = {f"bitwise_{kind}": f"Bitwise{kind.title()}" for kind in ("and", "or", "xor", "not")}

#: Operators that neither has, as functions of X and a function that gives attributes. X is an
#: ``Exported`` value (``interop/arithmetic.py``).
FORMULAS: Final[dict[str, Callable[[Any, Callable[..., Any]], Any]]] = {
    "brelu": lambda x, attr: x.clip(attr("t_min"), attr("t_max")),
    "hard_swish": lambda x, attr: (
        x * x.scale(1, attr("offset", 3.0)).clip(0, attr("threshold", 6.0)) / float(attr("scale", 6.0))
    ),
    "log10": lambda x, attr: x.apply("log") / math.log(10),
    "log1p": lambda x, attr: x.scale(1, 1).apply("log"),
    "log2": lambda x, attr: x.apply("log") / math.log(2),
    "logsigmoid": lambda x, attr: -(-x).softplus(),
    "mish": lambda x, attr: x * x.softplus().apply("tanh"),
    "relu6": lambda x, attr: x.clip(0, attr("threshold", 6.0)),
    "rsqrt": lambda x, attr: x.apply("sqrt").apply("reciprocal"),
    "silu": lambda x, attr: x * x.apply("sigmoid"),
    "soft_relu": lambda x, attr: x.clip(-attr("threshold"), attr("threshold")).softplus(),
    "square": lambda x, attr: x * x,
    "stanh": lambda x, attr: x.scale(attr("scale_a")).apply("tanh").scale(attr("scale_b")),
    "swish": lambda x, attr: x * x.scale(attr("beta")).apply("sigmoid"),
    "tanh_shrink": lambda x, attr: x - x.apply("tanh"),
}
