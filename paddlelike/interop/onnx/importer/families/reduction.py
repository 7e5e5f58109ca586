"""Reductions, and the indexes of the largest and smallest elements."""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.node import Node, reads
from paddlelike.ops.reduction.reduce import REDUCTIONS

#: The operator before the reduction, the reduction, and the operator after it.
_REDUCTIONS: Final = {
    **{row.onnx: ("", row.type.removeprefix("reduce_"), "") for row in REDUCTIONS.values() if row.slope},
    "ReduceL1": ("abs", "sum", ""),
    "ReduceL2": ("square", "sum", "sqrt"),
    "ReduceLogSum": ("", "sum", "log"),
    "ReduceSumSquare": ("square", "sum", ""),
}


def _find_axes(node: Node) -> list[int] | None:
    """Return the dims to reduce, or None if the input is returned unchanged."""
    given = node.numbers(1, "axes")
    if not given:
        return None if node.attr("noop_with_empty_axes", 0) else list(range(node.rank()))
    return sorted({node.normalize(axis, node.rank()) for axis in given})


@reads(*_REDUCTIONS, "ReduceLogSumExp")
def _read_reduction(node: Node) -> None:
    axes, keep, x = _find_axes(node), bool(node.attr("keepdims", 1)), node.input()
    if not node.rank():
        axes = None
    if node.type == "ReduceLogSumExp":
        node.give(_add_exponentials(node, x, axes, keep=keep))
        return
    before, kind, after = _REDUCTIONS[node.type]
    truth = node.dtype().kind == "b"
    out = x.cast(VarType.INT32) if truth else x
    out = node.emit(before, out) if before else out
    if axes is not None:
        out = out.reduce(kind, *axes, keep=keep)
    out = node.emit(after, out) if after else out
    if out == x:
        node.alias(node.value())
    else:
        node.give(out.cast(VarType.BOOL) if truth else out)


def _add_exponentials(node: Node, x: Expression, axes: list[int] | None, *, keep: bool) -> Expression:
    """Return ``log(sum(exp(x)))``, computed without the largest element so that nothing overflows."""
    if axes is None:
        return x.scale()
    most = x.reduce("max", *axes)
    most = most.maximum(node.like(np.finfo(node.dtype()).min))  # not -inf less -inf
    total = node.emit("exp", x - most).reduce("sum", *axes)
    out = node.emit("log", total) + most
    if keep:
        return out
    return out.reshape(1) if len(axes) == node.rank() else out.squeeze(*axes)


@reads("ArgMax", "ArgMin")
def _read_arg(node: Node) -> Expression:
    kind, keep = "arg_max" if node.type == "ArgMax" else "arg_min", bool(node.attr("keepdims", 1))
    x = node.input() if node.rank() > 1 or keep else node.input().unsqueeze(1)
    axis, last = node.axis(0), bool(node.attr("select_last_index", 0))
    if last:
        x = node.emit("flip", x, dims=[axis])
        if node.dims()[axis] < 0:
            node.refuse("it takes the last of equal elements, along a dim of unknown size")
    out = node.emit(kind, x, axis=axis, keepdims=keep, dtype=int(VarType.INT64))
    return out.scale(-1.0, float(node.dims()[axis] - 1)) if last else out


@reads("CumProd")
def _read_cumprod(node: Node) -> Expression:
    axes = node.numbers(1)
    axis = node.normalize((axes or [0])[0], node.rank())
    x = node.input()
    if node.attr("reverse", 0):
        x = node.emit("flip", x, dims=[axis])
    if node.attr("exclusive", 0):
        if node.dims()[axis] < 0:
            node.refuse("the size of the dim is not known")
        first = x.slice(axis, 0, 1).zeros().scale(1.0, 1.0)
        x = node.emit("concat", [first, x.slice(axis, 0, node.dims()[axis] - 1)], axis=axis)
    out = node.emit("cumprod", x, dim=axis)
    return node.emit("flip", out, dims=[axis]) if node.attr("reverse", 0) else out


@reads("TopK")
def _read_top_k(node: Node) -> None:
    """Read TopK; the result is always sorted. Equal numbers come in Fluid's order, not by index as in
    ONNX.
    """
    axis, largest = node.axis(-1), bool(node.attr("largest", 1))
    known = node.find_known(1) if node.opset >= 10 else np.array(node.attr("k"))
    k, last = -1 if known is None else int(known.reshape(-1)[0]), axis == node.rank() - 1
    graph = node.graph
    dims = [k if i == axis else dim for i, dim in enumerate(node.dims())]
    if known is None:
        given = {"X": node.input(), "K": node.input(1)}
        attrs = {"k": 1, "axis": axis, "largest": largest, "sorted": True}
        (values,) = graph.emit("top_k_v2", given, attrs, shaped=dims)
    elif last and largest:
        (values,) = graph.emit("top_k", {"X": node.input()}, {"k": k})
    else:
        attrs = {"k": k, "axis": axis, "largest": largest, "sorted": True}
        (values,) = graph.emit("top_k_v2", {"X": node.input()}, attrs, shaped=dims)
    places = node.last_output("Indices")
    places.variable.shape, places.variable.dtype = tuple(dims), VarType.INT64
    node.give(Expression(graph, values))
    node.give(places, 1)


@reads("Size")
def _read_size(node: Node) -> Expression:
    return node.emit("size", {"Input": node.input()})
