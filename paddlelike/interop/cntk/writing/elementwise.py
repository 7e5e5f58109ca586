"""Elementwise functions: activations, arithmetic, comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from paddlelike.core import numpy_dtype
from paddlelike.framework import follows_fluid
from paddlelike.interop.cntk.writing.graph import Ref, Step, as_real, writes
from paddlelike.ops.elementwise.names import ARITHMETIC, COMPARISONS, FORMULAS, UNARY_IN_CNTK


def _leaky(step: Step, x: Ref) -> Ref:
    return (x > 0).choose(x, x.scale(step.attr("alpha")))


def _elu(step: Step, x: Ref) -> Ref:
    alpha = step.attr("alpha")
    below = x.unary("ELU").scale(alpha)
    return (x > 0).choose(x, below) if alpha != 1 else x.unary("ELU")


def _power(step: Step, x: Ref) -> Ref:
    step.refuse_inputs("FactorTensor")
    step.refuse_integers()
    return x.binary("Pow", step.attr("factor"))


def _between(x: Ref, bound: float, inside: Ref, outside: Ref) -> Ref:
    """Return ``inside`` where ``-bound <= x <= bound``, else ``outside``."""
    return (abs(x) > bound).choose(outside, inside)


def _selu(step: Step, x: Ref) -> Ref:
    scale, alpha = float(step.attr("scale")), float(step.attr("alpha"))
    below = x.unary("ELU").scale(scale * alpha)
    return (x > 0).choose(x.scale(scale), below)


def _sign(step: Step, x: Ref) -> Ref:
    return (x > 0) - (x < 0)


def _soft_shrink(step: Step, x: Ref) -> Ref:
    bound = float(step.attr("lambda"))
    return x - x.clip(-bound, bound)


_FORMULAS: Final[dict[str, Callable[[Step, Ref], Ref]]] = {
    "ceil": lambda s, x: -(-x).unary("Floor"),
    "elu": _elu,
    "hard_sigmoid": lambda s, x: x.scale(s.attr("slope"), s.attr("offset")).clip(0, 1),
    "hard_shrink": lambda s, x: _between(x, s.attr("threshold"), x.scale(0), x),
    "leaky_relu": _leaky,
    "pow": _power,
    "selu": _selu,
    "sign": _sign,
    "softshrink": _soft_shrink,
    "softplus": lambda s, x: x.softplus(),
    "softsign": lambda s, x: x / abs(x).scale(1, 1),
    "thresholded_relu": lambda s, x: (x > s.attr("threshold")).choose(x, x.scale(0)),
}


_BINARY: Final = ARITHMETIC | COMPARISONS | {"minus": ARITHMETIC["elementwise_sub"]}


def align(step: Step) -> tuple[Ref, Ref]:
    """Return X and Y such that CNTK broadcasts them as Paddle does with ``axis``."""
    x, y, axis = step.ref(), step.ref("Y"), step.attr("axis", -1)
    if x.rank + x.dynamic < y.rank + y.dynamic:
        y, x = _align(step, y, x, axis)
        return x, y
    return _align(step, x, y, axis)


def _align(step: Step, x: Ref, y: Ref, axis: int) -> tuple[Ref, Ref]:
    """Add the missing dims to ``y``. The batch is not a dim in CNTK."""
    if y.dynamic and not x.dynamic:
        step.refuse("one input has samples, and the other has more dims, but no samples")
    whole, own = x.rank + x.dynamic, y.rank + y.dynamic
    start = whole - own if axis == -1 else axis
    dims = [1] * start + [0] * y.dynamic + list(y.shape)
    dims += [1] * (whole - len(dims))
    if x.dynamic and dims[0] > 1:
        step.refuse("Y has a row for each sample")
    static = dims[1:] if x.dynamic else dims
    while len(static) > y.rank and static[0] == 1 and not y.dynamic:
        static = static[1:]
    return x, y.reshape(static)


@writes(*UNARY_IN_CNTK)
def _write_same(step: Step) -> Ref:
    return step.ref().apply(step.op.type)


@writes(*FORMULAS)
def _write_shared_formula(step: Step) -> Ref:
    return FORMULAS[step.op.type](step.ref(), step.attr)  # type: ignore[no-any-return]


@writes(*_FORMULAS)
def _write_formula(step: Step) -> Ref:
    return _FORMULAS[step.op.type](step, step.ref())


@writes("scale")
def _write_scale(step: Step) -> Ref:
    step.refuse_inputs("ScaleTensor")
    if any(float(step.attr(name)) % 1 for name in ("scale", "bias")):
        step.refuse_integers()
    x, by, plus = step.ref(), float(step.attr("scale")), float(step.attr("bias"))
    out = x.scale(by, plus if step.attr("bias_after_scale") else by * plus)
    return x.unary("NoOp") if out is x else out


@writes(*(type for type, names in _BINARY.items() if names.cntk))
def _write_binary(step: Step) -> Ref:
    if step.op.type == "elementwise_pow":
        step.refuse_integers()
    x, y = align(step)
    return x.binary(_BINARY[step.op.type].cntk, y)


@writes("elementwise_div")
def _write_divide(step: Step) -> Ref:
    step.refuse_integers()
    x, y = align(step)
    return x / y


@writes("elementwise_max", "elementwise_min")
def _write_extreme(step: Step) -> Ref:
    x, y = align(step)
    first, second = (x, y) if step.op.type == "elementwise_max" else (y, x)
    chosen = x > y
    return step.graph.add("Select", [chosen, first, second], shape=chosen.shape)


@writes("equal", "not_equal")
def _write_equal(step: Step) -> Ref:
    """Compare real numbers as equal when they differ by less than 1e-8."""
    x, y = align(step)
    same = step.op.type == "equal"
    if step.is_real() and follows_fluid("equal_tolerance"):
        gap = abs(x - y)
        out = gap.binary("Less" if same else "GreaterEqual", 1e-08)
    else:
        out = x.binary("Equal" if same else "NotEqual", y)
    return out


@writes("logical_not")
def _write_not(step: Step) -> Ref:
    x = step.ref()
    return x.binary("Equal", 0)


@writes("logical_and", "logical_or")
def _write_logic(step: Step) -> Ref:
    x, y = align(step)
    made = x.binary("ElementTimes" if step.op.type == "logical_and" else "Plus", y)
    return made > 0


@writes("clip")
def _write_clip(step: Step) -> Ref:
    step.refuse_inputs("Min", "Max")
    return step.ref().clip(step.attr("min"), step.attr("max"))


@writes("cast")
def _write_cast(step: Step) -> Ref:
    """Cast a value. CNTK computes with real numbers, which also represent integers and flags."""
    x, wanted = step.ref(), numpy_dtype(step.out().dtype)
    real = as_real(wanted)
    if real != x.dtype:
        numbers = {"float32": 1, "float64": 2, "float16": 4}
        out = replace(x.unary("Cast", newDataType=numbers[real.name]), dtype=real)
    elif wanted.kind == "b":
        out = x.binary("NotEqual", 0)
    elif wanted.kind != "f" and step.is_real():  # towards 0
        down = x.unary("Floor")
        up = -(-x).unary("Floor")
        out = (x > 0).choose(down, up)
    else:
        out = x.unary("NoOp")
    return out


@writes("prelu")
def _write_prelu(step: Step) -> Ref:
    x, alpha = step.ref(), step.ref("Alpha")
    shapes = {"all": [], "channel": [x.shape[0]] + [1] * (x.rank - 1)}
    slope = alpha.reshape(shapes.get(step.attr("mode"), x.shape))
    return (x > 0).choose(x, x * slope)
