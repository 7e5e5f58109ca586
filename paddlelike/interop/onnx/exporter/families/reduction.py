"""Reductions, and the places of extremes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paddlelike.core.dtypes import VarType
from paddlelike.interop.onnx.exporter.converters import converts
from paddlelike.interop.onnx.exporter.graph import Step

_REDUCTIONS: Final = {
    "frobenius_norm": "ReduceL2",
    "logsumexp": "ReduceLogSumExp",
    "reduce_all": "ReduceMin",
    "reduce_amax": "ReduceMax",
    "reduce_amin": "ReduceMin",
    "reduce_any": "ReduceMax",
    "reduce_max": "ReduceMax",
    "reduce_mean": "ReduceMean",
    "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
    "reduce_sum": "ReduceSum",
}


def _find_axes(step: Step, given: Sequence[int]) -> list[int]:
    """Return the dims to reduce; none given are all, as Paddle 2.x has it."""
    rank = step.rank()
    if step.attr("reduce_all") or not given:
        return list(range(rank))
    return sorted({axis % rank for axis in given})


@converts(*_REDUCTIONS)
def _convert_reduction(step: Step) -> None:
    kind, x = step.op.type, step.input()
    axes = _find_axes(step, step.attr("axis" if kind == "logsumexp" else "dim", []))
    keep = bool(step.attr("keepdim" if kind == "logsumexp" else "keep_dim"))
    if step.attr("out_dtype", -1) >= 0:
        x = step.cast(x, VarType(step.attr("out_dtype")))
    logical = kind in ("reduce_all", "reduce_any")
    if logical:
        x = step.cast(x, "int32")
    out = step.reduce(_REDUCTIONS[kind], x, axes, keep=keep) if axes else x
    if logical:
        out = step.cast(out, "bool")
    whole = len(axes) == step.rank() and not keep and not step.graph.later
    step.give("Out", step.reshape(out, 1) if whole else out)


@converts("mean")
def _convert_mean(step: Step) -> None:
    out = step.reduce("ReduceMean", step.input(), range(step.rank()), keep=False)
    step.give("Out", out if step.graph.later else step.reshape(out, 1))


@converts("arg_max", "arg_min")
def _convert_arg(step: Step) -> None:
    step.refuse_inputs("Axis")
    x, axis, keep = step.input(), step.attr("axis", -1), int(bool(step.attr("keepdims")))
    if step.attr("flatten"):
        x, axis = step.reshape(x, -1), 0
        if keep:
            x = step.reshape(x, -1, *(1,) * (step.rank() - 1))
    out = step.add("ArgMax" if step.op.type == "arg_max" else "ArgMin", x, axis=axis, keepdims=keep)
    step.give("Out", step.cast(out, "int32") if step.attr("dtype") == VarType.INT32 else out)


@converts("top_k", "top_k_v2")
def _convert_top_k(step: Step) -> None:
    k = step.cast(step.reshape(step.input("K"), 1), "int64") if step.has("K") else step.ints(step.attr("k"))
    axis = step.attr("axis", -1) if step.op.type == "top_k_v2" else -1
    _give_top(step, k, axis, largest=step.attr("largest", True) is not False)


@converts("argsort")
def _convert_argsort(step: Step) -> None:
    axis = step.attr("axis") % step.rank()
    _give_top(step, step.dims(step.input(), axis, axis + 1), axis, largest=bool(step.attr("descending")))


def _give_top(step: Step, k: str, axis: int, *, largest: bool) -> None:
    values, places = step.add_several("TopK", step.input(), k, count=2, axis=axis, largest=int(largest))
    step.give("Out", values)
    step.give("Indices", places)


@converts("size")
def _convert_size(step: Step) -> None:
    size = step.add("Size", step.input("Input"))
    step.give("Out", size if step.graph.later else step.reshape(size, 1))


@converts("sum")
def _convert_sum(step: Step) -> None:
    first, *others = step.inputs("X")
    for other in others:
        first = step.add("Add", first, other)
    step.give("Out", first)


@converts("where_index")
def _convert_where_index(step: Step) -> None:
    step.give("Out", step.transpose(step.add("NonZero", step.input("Condition")), [1, 0]))
