"""Elementwise functions: activations, arithmetic, comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from paddlelike.core import numpy_dtype
from paddlelike.framework import follows_fluid
from paddlelike.interop.cntk.writing.graph import Ref, Step, as_real, writes
from paddlelike.ops.elementwise.names import ARITHMETIC, COMPARISONS, UNARY_IN_CNTK


def clip(step: Step, x: Ref, low: float, high: float) -> Ref:
    """Return a value within bounds."""
    return step.graph.add("Clip", [x, step.number(low, x), step.number(high, x)], shape=x.shape)


def softplus(step: Step, x: Ref) -> Ref:
    """Return ``log(1 + e^x)``."""
    return step.binary("LogPlus", x, step.number(0, x))


def choose(step: Step, where: Ref, x: Ref, y: Ref) -> Ref:
    """Return ``x`` where a flag is not 0, and ``y`` elsewhere."""
    return step.graph.add("Select", [where, x, y], shape=where.shape)


def _above(step: Step, x: Ref, bound: float) -> Ref:
    return step.binary("Greater", x, step.number(bound, x))


def _leaky(step: Step, x: Ref) -> Ref:
    return choose(step, _above(step, x, 0), x, step.scale(x, step.attr("alpha")))


def _elu(step: Step, x: Ref) -> Ref:
    alpha = step.attr("alpha")
    below = step.scale(step.unary("ELU", x), alpha)
    return choose(step, _above(step, x, 0), x, below) if alpha != 1 else step.unary("ELU", x)


def _power(step: Step, x: Ref) -> Ref:
    step.refuse_inputs("FactorTensor")
    step.refuse_integers()
    return step.binary("Pow", x, step.number(step.attr("factor"), x))


def _between(step: Step, x: Ref, bound: float, inside: Ref, outside: Ref) -> Ref:
    """Return ``inside`` where ``-bound <= x <= bound``, else ``outside``."""
    return choose(step, _above(step, step.unary("Abs", x), bound), outside, inside)


def _selu(step: Step, x: Ref) -> Ref:
    scale, alpha = float(step.attr("scale")), float(step.attr("alpha"))
    below = step.scale(step.unary("ELU", x), scale * alpha)
    return choose(step, _above(step, x, 0), step.scale(x, scale), below)


def _sign(step: Step, x: Ref) -> Ref:
    return step.binary("Minus", _above(step, x, 0), step.binary("Less", x, step.number(0, x)))


def _soft_shrink(step: Step, x: Ref) -> Ref:
    bound = float(step.attr("lambda"))
    return step.binary("Minus", x, clip(step, x, -bound, bound))


def _hard_swish(step: Step, x: Ref) -> Ref:
    gate = clip(step, step.scale(x, 1, step.attr("offset")), 0, step.attr("threshold"))
    return step.scale(step.binary("ElementTimes", x, gate), 1 / float(step.attr("scale")))


_FORMULAS: Final[dict[str, Callable[[Step, Ref], Ref]]] = {
    "brelu": lambda s, x: clip(s, x, s.attr("t_min"), s.attr("t_max")),
    "ceil": lambda s, x: s.unary("Negate", s.unary("Floor", s.unary("Negate", x))),
    "elu": _elu,
    "hard_sigmoid": lambda s, x: clip(s, s.scale(x, s.attr("slope"), s.attr("offset")), 0, 1),
    "hard_shrink": lambda s, x: _between(s, x, s.attr("threshold"), s.scale(x, 0), x),
    "hard_swish": _hard_swish,
    "leaky_relu": _leaky,
    "log10": lambda s, x: s.scale(s.unary("Log", x), 1 / math.log(10)),
    "log1p": lambda s, x: s.unary("Log", s.scale(x, 1, 1)),
    "log2": lambda s, x: s.scale(s.unary("Log", x), 1 / math.log(2)),
    "logsigmoid": lambda s, x: s.unary("Negate", softplus(s, s.unary("Negate", x))),
    "mish": lambda s, x: s.binary("ElementTimes", x, s.unary("Tanh", softplus(s, x))),
    "pow": _power,
    "relu6": lambda s, x: clip(s, x, 0, s.attr("threshold", 6.0)),
    "rsqrt": lambda s, x: s.unary("Reciprocal", s.unary("Sqrt", x)),
    "selu": _selu,
    "sign": _sign,
    "silu": lambda s, x: s.binary("ElementTimes", x, s.unary("StableSigmoid", x)),
    "softshrink": _soft_shrink,
    "soft_relu": lambda s, x: softplus(s, clip(s, x, -s.attr("threshold"), s.attr("threshold"))),
    "softplus": softplus,
    "softsign": lambda s, x: divide(s, x, s.scale(s.unary("Abs", x), 1, 1)),
    "square": lambda s, x: s.binary("ElementTimes", x, x),
    "stanh": lambda s, x: s.scale(s.unary("Tanh", s.scale(x, s.attr("scale_a"))), s.attr("scale_b")),
    "swish": lambda s, x: s.binary("ElementTimes", x, s.unary("StableSigmoid", s.scale(x, s.attr("beta")))),
    "thresholded_relu": lambda s, x: choose(s, _above(s, x, s.attr("threshold")), x, s.scale(x, 0)),
    "tanh_shrink": lambda s, x: s.binary("Minus", x, s.unary("Tanh", x)),
}


_BINARY: Final = ARITHMETIC | COMPARISONS | {"minus": ARITHMETIC["elementwise_sub"]}


def divide(step: Step, x: Ref, y: Ref) -> Ref:
    """Return ``x / y``, which CNTK stores as the product of x and the reciprocal of y."""
    return step.binary("ElementTimes", x, step.unary("Reciprocal", y))


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
    return x, step.reshape(y, static)


@writes(*UNARY_IN_CNTK)
def _write_same(step: Step) -> Ref:
    return step.unary(UNARY_IN_CNTK[step.op.type], step.ref())


@writes(*_FORMULAS)
def _write_formula(step: Step) -> Ref:
    return _FORMULAS[step.op.type](step, step.ref())


@writes("scale")
def _write_scale(step: Step) -> Ref:
    step.refuse_inputs("ScaleTensor")
    if any(float(step.attr(name)) % 1 for name in ("scale", "bias")):
        step.refuse_integers()
    x, by, plus = step.ref(), float(step.attr("scale")), float(step.attr("bias"))
    out = step.scale(x, by, plus if step.attr("bias_after_scale") else by * plus)
    return step.unary("NoOp", x) if out is x else out


@writes(*(type for type, names in _BINARY.items() if names.cntk))
def _write_binary(step: Step) -> Ref:
    if step.op.type == "elementwise_pow":
        step.refuse_integers()
    return step.binary(_BINARY[step.op.type].cntk, *align(step))


@writes("elementwise_div")
def _write_divide(step: Step) -> Ref:
    step.refuse_integers()
    return divide(step, *align(step))


@writes("elementwise_max", "elementwise_min")
def _write_extreme(step: Step) -> Ref:
    x, y = align(step)
    first, second = (x, y) if step.op.type == "elementwise_max" else (y, x)
    chosen = step.binary("Greater", x, y)
    return step.graph.add("Select", [chosen, first, second], shape=chosen.shape)


@writes("equal", "not_equal")
def _write_equal(step: Step) -> Ref:
    """Compare real numbers as equal when they differ by less than 1e-8."""
    x, y = align(step)
    same = step.op.type == "equal"
    if step.is_real() and follows_fluid("equal_tolerance"):
        gap = step.unary("Abs", step.binary("Minus", x, y))
        out = step.binary("Less" if same else "GreaterEqual", gap, step.number(1e-8, gap))
    else:
        out = step.binary("Equal" if same else "NotEqual", x, y)
    return out


@writes("logical_not")
def _write_not(step: Step) -> Ref:
    x = step.ref()
    return step.binary("Equal", x, step.number(0, x))


@writes("logical_and", "logical_or")
def _write_logic(step: Step) -> Ref:
    x, y = align(step)
    made = step.binary("ElementTimes" if step.op.type == "logical_and" else "Plus", x, y)
    return _above(step, made, 0)


@writes("clip")
def _write_clip(step: Step) -> Ref:
    step.refuse_inputs("Min", "Max")
    return clip(step, step.ref(), step.attr("min"), step.attr("max"))


@writes("cast")
def _write_cast(step: Step) -> Ref:
    """Cast a value. CNTK computes with real numbers, which also represent integers and flags."""
    x, wanted = step.ref(), numpy_dtype(step.out().dtype)
    real = as_real(wanted)
    if real != x.dtype:
        numbers = {"float32": 1, "float64": 2, "float16": 4}
        out = step.unary("Cast", x, newDataType=numbers[real.name])._replace(dtype=real)
    elif wanted.kind == "b":
        out = step.binary("NotEqual", x, step.number(0, x))
    elif wanted.kind != "f" and step.is_real():  # towards 0
        down = step.unary("Floor", x)
        up = step.unary("Negate", step.unary("Floor", step.unary("Negate", x)))
        out = choose(step, _above(step, x, 0), down, up)
    else:
        out = step.unary("NoOp", x)
    return out


@writes("prelu")
def _write_prelu(step: Step) -> Ref:
    x, alpha = step.ref(), step.ref("Alpha")
    shapes = {"all": [], "channel": [x.shape[0]] + [1] * (x.rank - 1)}
    slope = step.reshape(alpha, shapes.get(step.attr("mode"), x.shape))
    return choose(step, _above(step, x, 0), x, step.binary("ElementTimes", x, slope))
