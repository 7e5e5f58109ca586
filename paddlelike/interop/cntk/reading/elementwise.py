"""Elementwise functions: activations, arithmetic, comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from paddlelike.framework import Variable
from paddlelike.interop.cntk.reading.step import DATA_TYPES, Step, Value, reads
from paddlelike.ops.elementwise.names import ARITHMETIC, COMPARISONS, UNARY_IN_CNTK

_ALSO: Final = {"ELU": "elu", "Sigmoid": "sigmoid", "Tan": "tan"}
_SAME: Final = {cntk: type for type, cntk in UNARY_IN_CNTK.items()} | _ALSO
_FORMULAS: Final[dict[str, Callable[[Step, Variable], Variable]]] = {
    "Asinh": lambda s, x: s.unary("log", s.binary("elementwise_add", x, _root(s, x, 1.0))),
    "Atanh": lambda s, x: s.scale(
        s.unary("log", s.binary("elementwise_div", s.scale(x, 1, 1), s.scale(x, -1, 1))), 0.5
    ),
    "Negate": lambda s, x: s.scale(x, -1),
}
_BINARY: Final = {names.cntk: type for type, names in ARITHMETIC.items() if names.cntk}
_COMPARED: Final = {names.cntk: type for type, names in COMPARISONS.items()}


def _root(step: Step, x: Variable, plus: float) -> Variable:
    return step.unary("sqrt", step.scale(step.unary("square", x), 1, plus))


def compute_binary(step: Step, type_: str, x: Value, y: Value) -> Value:
    """Return the result of an operator with two inputs, broadcast as in CNTK."""
    (left, right), like = step.align(x, y)
    if not x.dynamic and y.sequence and type_ in ("elementwise_add", "elementwise_mul"):
        left, right = right, left  # the result has the LoD of the first
    return step.give(step.binary(type_, left, right), like)


@reads(*_SAME)
def _read_same(step: Step) -> Value:
    return step.give(step.unary(_SAME[step.kind], step.value().variable))


@reads(*_FORMULAS)
def _read_formula(step: Step) -> Value:
    return step.give(_FORMULAS[step.kind](step, step.value().variable))


@reads("NoOp", "Pass", "UnpackBatch")
def _read_nothing(step: Step) -> Value:
    """Do nothing: variables already have the samples as their first dim."""
    value = step.value()
    if step.kind == "UnpackBatch":
        if value.sequence:
            step.refuse("its input holds sequences")
        return value._replace(dynamic=False, rank=value.rank + 1)
    return value


@reads("Assign")
def _read_assign(step: Step) -> Value:
    """Assign a parameter or a constant at each run; the result is its new value."""
    target, value = step.value(), step.value(1)
    if not target.variable.persistable or value.dynamic or target.shape != value.shape:
        step.refuse(
            "it assigns to something other than a parameter or constant, or assigns values of samples"
        )
    block = target.variable.block
    block.append_op(type="assign", inputs={"X": [value.variable]}, outputs={"Out": [target.variable]})
    return target


@reads("ToBatch")
def _read_to_batch(step: Step) -> Value:
    value = step.value()
    return value._replace(dynamic=True, rank=value.rank - 1)


@reads("StopGradient")
def _read_stop(step: Step) -> Value:
    out = step.emit("assign", {"X": step.value().variable})
    out.stop_gradient = True
    return step.give(out)


@reads(*_BINARY)
def _read_binary(step: Step) -> Value:
    return compute_binary(step, _BINARY[step.kind], step.value(), step.value(1))


@reads("LogPlus")
def _read_log_plus(step: Step) -> Value:
    """Compute ``log(e^x + e^y)`` as the larger one plus ``log(1 + e^-|x - y|)``."""
    (x, y), like = step.align(step.value(), step.value(1))
    gap = step.unary("abs", step.binary("elementwise_sub", x, y))
    larger = step.binary("elementwise_max", x, y)
    return step.give(step.binary("elementwise_sub", larger, step.unary("logsigmoid", gap)), like)


@reads(*_COMPARED)
def _read_compared(step: Step) -> Value:
    """Compare two inputs, with 0.0 and 1.0 as results, as in CNTK."""
    (x, y), like = step.align(step.value(), step.value(1))
    return step.give(_compare(step, _COMPARED[step.kind], x, y), like)


def _compare(step: Step, type_: str, x: Variable, y: Variable) -> Variable:
    """Compare two values; Fluid broadcasts only the second one."""
    if len(x.shape) < len(y.shape) or (-1 in y.shape and -1 not in x.shape):
        x, y, type_ = y, x, COMPARISONS[type_].mirrored
    return step.cast(step.binary(type_, x, y, dtype="bool"), x.dtype)


@reads("Equal", "NotEqual")
def _read_equal(step: Step) -> Value:
    """Compare exactly: two numbers are equal if neither is less. Fluid's ``equal`` tolerates differences of
    1e-8.
    """
    (x, y), like = step.align(step.value(), step.value(1))
    other = step.binary(
        "elementwise_add", *(_compare(step, one, x, y) for one in ("less_than", "greater_than"))
    )
    return step.give(other if step.kind == "NotEqual" else step.scale(other, -1, 1), like)


@reads("Clip")
def _read_clip(step: Step) -> Value:
    low = compute_binary(step, "elementwise_max", step.value(), step.value(1))
    return compute_binary(step, "elementwise_min", low, step.value(2))


@reads("Select")
def _read_select(step: Step) -> Value:
    """Return the second input where the flag is not 0, otherwise the third."""
    (flag, x, y), like = step.align(step.value(), step.value(1), step.value(2))
    zeros = step.unary("fill_zeros_like", flag)
    for one in (x, y):
        zeros = step.binary("elementwise_add", zeros, step.unary("fill_zeros_like", one))
    flag, x, y = (step.binary("elementwise_add", zeros, one) for one in (flag, x, y))
    chosen = step.cast(flag, "bool")
    return step.give(step.emit("where", {"Condition": chosen, "X": x, "Y": y}, dtype=x.dtype), like)


@reads("Cast")
def _read_cast(step: Step) -> Value:
    wanted = step.attr("newDataType", int)
    if wanted not in DATA_TYPES:
        step.refuse(f"it casts to the element type {wanted}")
    return step.give(step.cast(step.value().variable, DATA_TYPES[wanted]))


@reads("ConstantOp")
def _read_filled(step: Step) -> Value:
    fill = step.attr("fillValue", float)
    return step.give(step.unary("fill_any_like", step.value().variable, value=fill, dtype=-1))


@reads("StraightThrough")
def _read_straight_through(step: Step) -> Value:
    """Return 1 where the input is above 0, else -1, with the gradient of the identity."""
    x = step.value().variable
    above = step.cast(step.binary("greater_than", x, step.unary("fill_zeros_like", x), dtype="bool"), x.dtype)
    signs = step.scale(above, 2.0, -1.0)
    signs.stop_gradient = True
    held = step.unary("assign", x)
    held.stop_gradient = True
    return step.give(step.binary("elementwise_add", step.binary("elementwise_sub", x, held), signs))
