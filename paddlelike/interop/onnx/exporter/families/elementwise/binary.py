"""Arithmetic, comparison and logic of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import find
from paddlelike.interop.onnx.exporter.graph import Step, converts
from paddlelike.ops.elementwise.binary import TURNED
from paddlelike.ops.elementwise.names import ARITHMETIC, BITS, COMPARISONS, LOGIC

_BINARY: Final = ARITHMETIC | COMPARISONS | {"minus": ARITHMETIC["elementwise_sub"]}
#: ONNX's names of these for truth values.
_OF_TRUTH: Final = {"Add": "Or", "Max": "Or", "Min": "And", "Mul": "And"}


def align(step: Step) -> tuple[str, str]:
    """Return X and Y such that ONNX broadcasts them as Paddle does with ``axis``."""
    x, y, axis = step.input(), step.input("Y"), step.attr("axis", -1)
    ranks = step.rank(), step.rank("Y")
    if axis != -1 and ranks[0] != ranks[1]:
        spare = max(ranks) - axis - min(ranks)  # dims of 1 at the end of the shorter one
        axes = range(min(ranks), min(ranks) + spare)
        x, y = (x, step.unsqueeze(y, *axes)) if ranks[0] > ranks[1] else (step.unsqueeze(x, *axes), y)
    turned = step.op.type in TURNED and ranks[0] < ranks[1] and not step.graph.later
    return (y, x) if turned and follows_fluid("elementwise_order") else (x, y)


@converts(*_BINARY)
def _convert_binary(step: Step) -> str:
    kind = _BINARY[step.op.type].onnx
    kind = _OF_TRUTH.get(kind, kind) if step.dtype().kind == "b" else kind
    return step.add(kind, *align(step))


@converts("elementwise_floordiv")
def _convert_floordiv(step: Step) -> str:
    """Divide integers; Fluid truncates like C, Paddle 2.x rounds down."""
    x, y = align(step)
    quotient = step.add("Div", x, y)
    if step.dtype().kind == "f":
        size = quotient if step.graph.later else step.add("Abs", quotient)
        whole = step.add("Floor", size)
        whole = whole if step.graph.later else step.add("Mul", step.add("Sign", quotient), whole)
    elif step.graph.later:  # x - (x mod y), the remainder with the sign of y
        whole = step.add("Div", step.add("Sub", x, step.add("Mod", x, y)), y)
    else:
        whole = quotient
    return whole


@converts("elementwise_mod")
def _convert_mod(step: Step) -> str:
    x, y = align(step)
    if step.dtype().kind == "f":  # the remainder has the sign of Y; ONNX's of real numbers that of X
        whole = step.add("Floor", step.add("Div", x, y))
        return step.add("Sub", x, step.add("Mul", whole, y))
    return step.add("Mod", x, y, fmod=0 if step.graph.later else 1)


@converts("equal", "not_equal")
def _convert_equal(step: Step) -> str:
    """Compare real numbers as equal when they differ by less than 1e-8."""
    x, y = align(step)
    if step.dtype().kind == "f" and follows_fluid("equal_tolerance"):
        out = step.add("Less", step.add("Abs", step.add("Sub", x, y)), step.like(1e-8))
        if step.graph.later:  # infinities of one sign are equal, too
            out = step.add("Or", out, step.add("Equal", x, y))
    else:
        out = step.add("Equal", x, y)
    return step.add("Not", out) if step.op.type == "not_equal" else out


@converts(*LOGIC)
def _convert_logic(step: Step) -> str:
    x, y = align(step)
    return step.add(LOGIC[step.op.type].onnx, _as_bool(step, x, "X"), _as_bool(step, y, "Y"))


@converts("logical_not")
def _convert_not(step: Step) -> str:
    return step.add("Not", _as_bool(step, step.input(), "X"))


def _as_bool(step: Step, value: str, slot: str) -> str:
    return value if step.dtype(slot) == np.bool_ else step.cast(value, "bool")


@converts("scale")
def _convert_scale(step: Step) -> str:
    number: Callable[[float], float] = float if step.dtype().kind == "f" else int
    by, bias = number(step.attr("scale")), number(step.attr("bias"))
    out, after = step.input(), step.attr("bias_after_scale")
    if bias and not after:
        out = step.add("Add", out, step.like(bias))
    if step.has("ScaleTensor"):
        out = step.add("Mul", out, step.cast(step.reshape(step.input("ScaleTensor"), 1), step.dtype()))
    elif by != 1:
        out = step.add("Mul", out, step.like(by))
    if bias and after:
        out = step.add("Add", out, step.like(bias))
    return out


@converts("pow")
def _convert_pow(step: Step) -> str:
    factor = step.attr("factor") if step.dtype().kind == "f" else int(step.attr("factor"))
    exponent = step.reshape(step.input("FactorTensor"), 1) if step.has("FactorTensor") else step.like(factor)
    return step.add("Pow", step.input(), exponent)


@converts("clip")
def _convert_clip(step: Step) -> str:
    bounds = [
        step.reshape(step.input(slot)) if step.has(slot) else step.like(step.attr(name))
        for slot, name in (("Min", "min"), ("Max", "max"))
    ]
    return step.add("Clip", step.input(), *bounds)


@converts("cast")
def _convert_cast(step: Step) -> str:
    return step.cast(step.input(), VarType(step.attr("out_dtype")))


@converts(*BITS)
def _convert_bits(step: Step) -> str:
    kind = BITS[step.op.type]
    kind = kind.removeprefix("Bitwise") if step.dtype() == np.bool_ else kind
    return step.add(kind, *(step.input(slot.name) for slot in find(step.op.type).input_slots))


@converts("atan2")
def _convert_atan2(step: Step) -> str:
    """Compute ``arctan(y / x)``, plus half a turn where x is negative; 0 at the origin."""
    y, x = step.input("X1"), step.input("X2")
    zero = step.like(0, "X1")
    left, below = step.add("Less", x, zero), step.add("Less", y, zero)
    turn = step.add("Where", below, step.like(-np.pi, "X1"), step.like(np.pi, "X1"))
    out = step.add("Add", step.add("Atan", step.add("Div", y, x)), step.add("Where", left, turn, zero))
    origin = step.add("And", step.add("Equal", x, zero), step.add("Equal", y, zero))
    return step.add("Where", origin, zero, out)


@converts("lerp")
def _convert_lerp(step: Step) -> str:
    way = step.add("Mul", step.input("Weight"), step.add("Sub", step.input("Y"), step.input()))
    return step.add("Add", step.input(), way)


@converts("equal_all")
def _convert_equal_all(step: Step) -> str:
    same = step.cast(step.add("Equal", step.input(), step.input("Y")), "int32")
    out = step.cast(step.reduce("ReduceMin", same, range(step.rank()), keep=False), "bool")
    return out if step.graph.later else step.reshape(out, 1)


@converts("increment")
def _convert_increment(step: Step) -> str:
    return step.add("Add", step.input(), step.like(step.attr("step")))
