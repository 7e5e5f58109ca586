"""Arithmetic, comparison and logic of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import find
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.ops.elementwise.binary import TURNED
from paddlelike.ops.elementwise.names import ARITHMETIC, BITS, COMPARISONS, LOGIC

_BINARY: Final = ARITHMETIC | COMPARISONS | {"minus": ARITHMETIC["elementwise_sub"]}
#: ONNX's names of these for truth values.
_OF_TRUTH: Final = {"Add": "Or", "Max": "Or", "Min": "And", "Mul": "And"}


def align(step: Step) -> tuple[Value, Value]:
    """Return X and Y such that ONNX broadcasts them as Paddle does with ``axis``."""
    x, y, axis = step.input(), step.input("Y"), step.attr("axis", -1)
    ranks = step.rank(), step.rank("Y")
    if axis != -1 and ranks[0] != ranks[1]:
        spare = max(ranks) - axis - min(ranks)  # dims of 1 at the end of the shorter one
        axes = range(min(ranks), min(ranks) + spare)
        x, y = (x, y.unsqueeze(*axes)) if ranks[0] > ranks[1] else (x.unsqueeze(*axes), y)
    turned = step.op.type in TURNED and ranks[0] < ranks[1] and not step.graph.later
    return (y, x) if turned and follows_fluid("elementwise_order") else (x, y)


@converts(*_BINARY)
def _convert_binary(step: Step) -> Value:
    kind = _BINARY[step.op.type].onnx
    kind = _OF_TRUTH.get(kind, kind) if step.dtype().kind == "b" else kind
    return step.add(kind, *align(step))


@converts("elementwise_floordiv")
def _convert_floordiv(step: Step) -> Value:
    """Divide integers; Fluid truncates like C, Paddle 2.x rounds down."""
    x, y = align(step)
    quotient = x / y
    if step.dtype().kind == "f":
        size = quotient if step.graph.later else abs(quotient)
        whole = step.add("Floor", size)
        whole = whole if step.graph.later else step.add("Sign", quotient) * whole
    elif step.graph.later:  # x - (x mod y), the remainder with the sign of y
        whole = (x - step.add("Mod", x, y)) / y
    else:
        whole = quotient
    return whole


@converts("elementwise_mod")
def _convert_mod(step: Step) -> Value:
    x, y = align(step)
    if step.dtype().kind == "f":  # the remainder has the sign of Y; ONNX's of real numbers that of X
        whole = step.add("Floor", x / y)
        return x - whole * y
    return step.add("Mod", x, y, fmod=0 if step.graph.later else 1)


@converts("equal", "not_equal")
def _convert_equal(step: Step) -> Value:
    """Compare real numbers as equal when they differ by less than 1e-8."""
    x, y = align(step)
    if step.dtype().kind == "f" and follows_fluid("equal_tolerance"):
        out = abs(x - y) < 1e-08
        if step.graph.later:  # infinities of one sign are equal, too
            out = out | x.equals(y)
    else:
        out = x.equals(y)
    return ~out if step.op.type == "not_equal" else out


@converts(*LOGIC)
def _convert_logic(step: Step) -> Value:
    x, y = align(step)
    return step.add(LOGIC[step.op.type].onnx, _as_bool(step, x, "X"), _as_bool(step, y, "Y"))


@converts("logical_not")
def _convert_not(step: Step) -> Value:
    return ~_as_bool(step, step.input(), "X")


def _as_bool(step: Step, value: Value, slot: str) -> Value:
    return value if step.dtype(slot) == np.bool_ else value.cast("bool")


@converts("scale")
def _convert_scale(step: Step) -> Value:
    number: Callable[[float], float] = float if step.dtype().kind == "f" else int
    by, bias = number(step.attr("scale")), number(step.attr("bias"))
    out, after = step.input(), step.attr("bias_after_scale")
    if bias and not after:
        out = out + step.like(bias)
    if step.has("ScaleTensor"):
        out = out * step.input("ScaleTensor").reshape(1).cast(step.dtype())
    elif by != 1:
        out = out * step.like(by)
    if bias and after:
        out = out + step.like(bias)
    return out


@converts("pow")
def _convert_pow(step: Step) -> Value:
    factor = step.attr("factor") if step.dtype().kind == "f" else int(step.attr("factor"))
    exponent = step.input("FactorTensor").reshape(1) if step.has("FactorTensor") else step.like(factor)
    return step.add("Pow", step.input(), exponent)


@converts("clip")
def _convert_clip(step: Step) -> Value:
    bounds = [
        step.input(slot).reshape() if step.has(slot) else step.like(step.attr(name))
        for slot, name in (("Min", "min"), ("Max", "max"))
    ]
    return step.add("Clip", step.input(), *bounds)


@converts("cast")
def _convert_cast(step: Step) -> Value:
    return step.input().cast(VarType(step.attr("out_dtype")))


@converts(*BITS)
def _convert_bits(step: Step) -> Value:
    kind = BITS[step.op.type]
    kind = kind.removeprefix("Bitwise") if step.dtype() == np.bool_ else kind
    return step.add(kind, *(step.input(slot.name) for slot in find(step.op.type).input_slots))


@converts("atan2")
def _convert_atan2(step: Step) -> Value:
    """Compute ``arctan(y / x)``, plus half a turn where x is negative; 0 at the origin."""
    y, x = step.input("X1"), step.input("X2")
    zero = step.like(0, "X1")
    left, below = x < zero, y < zero
    turn = below.where(step.like(-np.pi, "X1"), step.like(np.pi, "X1"))
    out = step.add("Atan", y / x) + left.where(turn, zero)
    origin = x.equals(zero) & y.equals(zero)
    return origin.where(zero, out)


@converts("lerp")
def _convert_lerp(step: Step) -> Value:
    way = step.input("Weight") * (step.input("Y") - step.input())
    return step.input() + way


@converts("equal_all")
def _convert_equal_all(step: Step) -> Value:
    same = step.input().equals(step.input("Y")).cast("int32")
    out = same.reduce("ReduceMin", *range(step.rank())).cast("bool")
    return out if step.graph.later else out.reshape(1)


@converts("increment")
def _convert_increment(step: Step) -> Value:
    return step.input() + step.like(step.attr("step"))
