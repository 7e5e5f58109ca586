"""Names in ONNX and CNTK of elementwise operators that compute the same there."""

from __future__ import annotations

from typing import Final, NamedTuple

_ALIKE: Final = """
    abs acos acosh asin asinh atan atanh ceil cos cosh erf exp floor log reciprocal relu sigmoid sign sin sinh
    softsign sqrt tan tanh
"""
_ALIKE_IN_CNTK: Final = "abs acos asin atan cos cosh exp floor log reciprocal sin sinh sqrt tanh"


class Names(NamedTuple):
    """The names of an operator of two operands, "" for none; ``mirrored``: the name for swapped operands."""

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
