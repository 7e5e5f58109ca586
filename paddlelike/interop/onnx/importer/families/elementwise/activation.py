"""Functions of a single element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.node import Node, reads
from paddlelike.ops.elementwise.names import UNARY_IN_ONNX

_SAME: Final = {onnx: type for type, onnx in UNARY_IN_ONNX.items() if onnx != "IsInf"}
_SAME["Softplus"] = "softplus"
#: Paddle's operator, and its attributes with ONNX's names and defaults.
_RENAMED: Final[dict[str, tuple[str, dict[str, tuple[str, float]]]]] = {
    "Celu": ("celu", {"alpha": ("alpha", 1.0)}),
    "Elu": ("elu", {"alpha": ("alpha", 1.0)}),
    "HardSigmoid": ("hard_sigmoid", {"slope": ("alpha", 0.2), "offset": ("beta", 0.5)}),
    "Selu": (
        "selu",
        {"alpha": ("alpha", 1.67326319217681884765625), "scale": ("gamma", 1.05070102214813232)},
    ),
    "ThresholdedRelu": ("thresholded_relu", {"threshold": ("alpha", 1.0)}),
}
_FORMULAS: Final[dict[str, Callable[[Node, Expression], Expression]]] = {
    "HardSwish": lambda n, x: n.emit("hard_swish", x),
    "Mish": lambda n, x: x * n.emit("tanh", n.emit("softplus", x)),
    "Neg": lambda n, x: x.scale(-1),
    "Swish": lambda n, x: n.emit("swish", x, beta=float(n.attr("alpha", 1.0))),
}


@reads(*_SAME)
def _read_same(node: Node) -> Expression:
    dtype = "bool" if node.type == "IsNaN" else None
    return node.emit(_SAME[node.type], node.input(), typed=dtype)


@reads(*_RENAMED)
def _read_renamed(node: Node) -> Expression:
    kind, names = _RENAMED[node.type]
    attrs = {ours: float(node.attr(theirs, default)) for ours, (theirs, default) in names.items()}
    return node.emit(kind, node.input(), **attrs)


@reads(*_FORMULAS)
def _read_formula(node: Node) -> Expression:
    return _FORMULAS[node.type](node, node.input())


@reads("Gelu")
def _read_gelu(node: Node) -> Expression:
    return node.emit("gelu", node.input(), approximate=node.attr("approximate", "none") == "tanh")


@reads("LeakyRelu")
def _read_leaky_relu(node: Node) -> Expression:
    """Read LeakyRelu. Paddle's is ``max(X, alpha X)``, which differs if alpha is above 1."""
    alpha, x = float(node.attr("alpha", 0.01)), node.input()
    if alpha <= 1:
        return node.emit("leaky_relu", x, alpha=alpha)
    below = node.emit("relu", x.scale(-1)).scale(-alpha)
    return node.emit("relu", x) + below


@reads("PRelu")
def _read_prelu(node: Node) -> Expression:
    """Compute ``max(X, 0) + slope min(X, 0)``; Paddle's prelu has one slope, or one per channel."""
    x, slope = node.input(), node.input(1)
    dims, rank = node.dims(1), node.rank()
    if math.prod(dims) == 1:
        return node.emit("prelu", {"X": x, "Alpha": slope.reshape(1)}, mode="all")
    if len(dims) == rank - 1 and rank == 4 and dims[0] > 0 and set(dims[1:]) <= {1}:
        alpha = slope.reshape(1, dims[0], 1, 1)
        return node.emit("prelu", {"X": x, "Alpha": alpha}, mode="channel")
    below = node.emit("relu", x.scale(-1)).scale(-1)
    below = below * slope
    return node.emit("relu", x) + below


@reads("Shrink")
def _read_shrink(node: Node) -> Expression:
    """Move X by the bias towards zero if it is beyond lambd, otherwise return zero."""
    x, bias, limit = node.input(), float(node.attr("bias", 0.0)), float(node.attr("lambd", 0.5))
    out = node.emit("hard_shrink", x, threshold=limit)
    if bias:
        part = node.emit("sign", out)
        out = out - part.scale(bias)
    return out


@reads("Round")
def _read_round(node: Node) -> Expression:
    """Round halves to the even number. Paddle's round takes them away from zero."""
    x = node.input()
    whole = node.emit("floor", x)
    rest = x - whole
    odd = whole - node.emit("floor", whole.scale(0.5)).scale(2.0)
    half = node.like(0.5)
    over = node.emit("greater_than", rest, half, axis=-1).cast(node.dtype())
    tied = node.emit("greater_equal", rest, half, axis=-1).cast(node.dtype())
    up = over.maximum(tied * odd)
    return whole + up


@reads("IsInf")
def _read_is_inf(node: Node) -> Expression:
    x = node.input()
    signs = [n for n in (1, -1) if node.attr("detect_positive" if n > 0 else "detect_negative", 1)]
    if len(signs) == 2:
        return node.emit("isinf_v2", x, typed="bool")
    found = node.emit("isinf_v2", x, typed="bool")
    kind = "greater_than" if signs == [1] else "less_than" if signs else "not_equal"
    beyond = node.emit(kind, x, node.like(0) if signs else x, axis=-1)
    return node.emit("logical_and", found, beyond)


@reads("Hardmax")
def _read_hardmax(node: Node) -> Expression:
    rank = node.rank()
    axis = node.axis(-1 if node.opset >= 13 else 1)
    size = node.dims()[axis]
    if size < 0:
        node.refuse("the size of its dim is not known")
    place = node.emit("arg_max", node.input(), axis=axis, keepdims=True, dtype=3)
    classes = node.constant(np.arange(size).reshape(-1, *[1] * (rank - 1 - axis)), np.int64)
    return compare(node, "equal", place, classes).cast(node.dtype())
