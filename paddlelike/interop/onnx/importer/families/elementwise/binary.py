"""Arithmetic, comparison and logic of tensors; casts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.file import ELEMENT_TYPES
from paddlelike.interop.onnx.importer.node import Node, reads
from paddlelike.ops.elementwise.names import BITS, COMPARISONS, LOGIC

_BINARY: Final = {"Add": "elementwise_add", "Mul": "elementwise_mul", "Sub": "elementwise_sub"}
_SEVERAL: Final = {
    "Max": "elementwise_max",
    "Mean": "elementwise_add",
    "Min": "elementwise_min",
    "Sum": "elementwise_add",
}
_PAIRS: Final = {**{names.onnx: type for type, names in LOGIC.items()}, **{BITS[type]: type for type in BITS}}
_COMPARISONS: Final = {names.onnx: type for type, names in COMPARISONS.items()}


def find_number(node: Node, index: int) -> Any:
    """Return the number in an input, or None unless the input is a single number that is known."""
    found = node.find_known(index)
    return found.item() if found is not None and found.size == 1 and found.ndim <= 1 else None


@reads(*_BINARY)
def _read_binary(node: Node) -> Expression:
    return node.emit(_BINARY[node.type], *_align(node))


def _align(node: Node) -> tuple[Expression, Expression]:
    """Return both inputs; before version 7, the second is aligned with dims from ``axis`` of the first."""
    x, y = node.input(), node.input(1)
    if node.opset < 7 and node.attr("broadcast") and node.attr("axis") is not None:
        spare = node.rank() - node.axis(0) - node.rank(1)
        y = y.unsqueeze(*range(node.rank(1), node.rank(1) + spare))
    elif node.type in ("Div", "Mod", "Pow"):  # Fluid exchanges the inputs where the first has fewer dims
        x = x.unsqueeze(*range(len(y.shape) - len(x.shape)))
    return x, y


@reads("Div")
def _read_div(node: Node) -> Expression:
    """Divide; integer division truncates, as in C."""
    kind = "elementwise_div" if node.dtype().kind == "f" else "elementwise_floordiv"
    return node.emit(kind, *_align(node))


@reads("Mod")
def _read_mod(node: Node) -> Expression:
    """Compute the remainder, with the sign of the divisor or, with fmod, of the dividend."""
    x, y = _align(node)
    whole, as_c = node.dtype().kind != "f", bool(node.attr("fmod", 0))
    if not whole and as_c:
        rest = node.emit("elementwise_mod", abs(x), abs(y))
        return node.emit("sign", x) * rest
    rest = node.emit("elementwise_mod", x, y)  # of whole numbers as in C
    if whole and not as_c:
        rest = node.emit("elementwise_mod", rest + y, y)
    if not whole:  # for infinite divisors, where Fluid's gives NaN
        x, y, rest = node.broadcast(x, y, rest)
        signs = x * node.emit("sign", y)
        apart = compare(node, "less_than", signs, node.like(0.0))
        far = apart.where(y, x)
        is_far = node.emit("logical_and", node.emit("isinf_v2", y), node.emit("isfinite_v2", x))
        rest = is_far.where(far, rest)
    return rest


@reads("Pow")
def _read_pow(node: Node) -> None:
    x, exponent = node.input(), find_number(node, 1)
    if exponent is not None and node.dtype().kind == "f":
        if exponent == 2:
            node.give(node.emit("square", x))
        elif exponent == 0.5:
            node.give(node.emit("sqrt", x))
        else:
            node.give(node.emit("pow", x, factor=float(exponent)))
        return
    x, exponent = _align(node)
    node.give(node.emit("elementwise_pow", x, exponent.cast(node.dtype())))


@reads(*_SEVERAL)
def _read_several(node: Node) -> Expression:
    out, *others = node.inputs()
    for other in others:
        out = node.emit(_SEVERAL[node.type], out, other)
    return out.scale(1 / node.count) if node.type == "Mean" else out


@reads(*_COMPARISONS)
def _read_comparison(node: Node) -> Expression:
    return compare(node, _COMPARISONS[node.type], *_align(node))


def compare(node: Node, kind: str, x: Expression, y: Expression) -> Expression:
    """Compare tensors of any broadcastable shapes; Fluid broadcasts only the second one."""
    shapes = x.shape, y.shape
    if _covers(*shapes):
        return node.emit(kind, x, y, axis=-1)
    if _covers(*reversed(shapes)):
        return node.emit(kind if kind == "equal" else COMPARISONS[kind].mirrored, y, x, axis=-1)
    return node.emit(kind, *node.broadcast(x, y), axis=-1)


def _covers(x: Sequence[int], y: Sequence[int]) -> bool:
    """Return whether Y is broadcast over X and X is not broadcast over Y."""
    if len(x) < len(y):
        return False
    tail = x[len(x) - len(y) :]
    return all(b == 1 or a == b for a, b in zip(tail, y, strict=True))


@reads("Equal")
def _read_equal(node: Node) -> Expression:
    """Compare exactly; Fluid's equal tolerates small differences, and does not accept bools."""
    x, y = node.input(), node.input(1)
    if node.dtype().kind == "b":
        x, y = x.cast(VarType.INT32), y.cast(VarType.INT32)
    if node.dtype().kind != "f":
        return compare(node, "equal", x, y)
    least, most = (compare(node, kind, x, y) for kind in ("less_equal", "greater_equal"))
    return node.emit("logical_and", least, most)


@reads("Not", "BitwiseNot")
def _read_not(node: Node) -> Expression:
    return node.emit("logical_not" if node.type == "Not" else "bitwise_not", node.input())


@reads("And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _read_pair(node: Node) -> Expression:
    return node.emit(_PAIRS[node.type], *node.broadcast(node.input(), node.input(1)))


@reads("BitShift")
def _read_bit_shift(node: Node) -> Expression:
    kind = f"bitwise_{node.attr('direction', '').lower()}_shift"
    return node.emit(kind, *node.broadcast(node.input(), node.input(1)))


@reads("Clip")
def _read_clip(node: Node) -> None:
    """Limit elements to bounds, which are inputs since version 11."""
    x, whole = node.input(), node.dtype().kind != "f"
    for index, name, kind in ((1, "min", "elementwise_max"), (2, "max", "elementwise_min")):
        if node.has(index):
            x = node.emit(kind, x, node.input(index))
        elif node.attr(name) is not None:
            x = node.emit(kind, x, node.constant([node.attr(name)], np.int64 if whole else np.float32))
    if x.name == node.value().name:
        node.alias(node.value())
    else:
        node.give(x)


@reads("Cast")
def _read_cast(node: Node) -> None:
    target = node.attr("to")
    if target not in ELEMENT_TYPES:
        node.refuse(f"it casts to ONNX type {target}, which no Paddle variable has")
    x = node.input()
    if node.proto.input[0] in node.graph.trusted:
        node.graph.trusted.update(node.proto.output)
    if ELEMENT_TYPES[target] == VarType.BF16 or node.variable().dtype == VarType.BF16:
        node.refuse("programs can store bfloat16, but not compute with it")
    if node.variable().dtype == ELEMENT_TYPES[target]:
        node.alias(node.value())
    else:
        node.give(x.cast(ELEMENT_TYPES[target]))


@reads("CastLike")
def _read_cast_like(node: Node) -> None:
    known = node.find_known(0)
    if known is not None and known.size == 1:  # a fill value, which must be known
        node.graph.known[node.proto.output[0]] = known.astype(node.dtype(1))
        return
    node.give(node.input().cast(node.dtype(1)))


@reads("Identity")
def _read_identity(node: Node) -> None:
    node.alias(node.value())


@reads("Dropout")
def _read_dropout(node: Node) -> None:
    """Return the input: dropout does nothing in prediction."""
    if node.has(2) and find_number(node, 2) in (None, True):
        node.refuse("it is in training mode")
    if node.wants(1):
        ones = node.input().zeros().scale(1.0, 1.0)
        node.give(ones.cast(VarType.BOOL), 1)
    node.alias(node.value())


@reads("CumSum")
def _read_cumsum(node: Node) -> Expression:
    axis = node.normalize(int(node.known(1).reshape(-1)[0]), node.rank())
    options = {name: bool(node.attr(name, 0)) for name in ("exclusive", "reverse")}
    return node.emit("cumsum", node.input(), axis=axis, **options)


@reads("Where")
def _read_where(node: Node) -> Expression:
    condition, x, y = node.broadcast(*node.inputs())
    return condition.where(x, y)
