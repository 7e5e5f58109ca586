"""Reductions, and the indexes of the largest and smallest elements."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.exporter.graph import Step, converts
from paddlelike.ops.reduction.reduce import REDUCTIONS, find_axes


@converts(*REDUCTIONS)
def _convert_reduction(step: Step) -> str:
    row, x = REDUCTIONS[step.op.type], step.input()
    given = tuple(step.attr("dim", step.attr("axis", [])))  # as in Paddle 2.x, no dims means all dims
    axes = find_axes(step.op.type, None if step.attr("reduce_all") else given or None, step.rank())
    keep = bool(step.attr("keep_dim", step.attr("keepdim")))
    if step.attr("out_dtype", -1) >= 0:
        x = step.cast(x, VarType(step.attr("out_dtype")))
    if row.is_logical:
        x = step.cast(x, "int32")
    out = step.reduce(row.onnx, x, axes, keep=keep) if axes else x
    if row.is_logical:
        out = step.cast(out, "bool")
    whole = len(axes) == step.rank() and not keep and not step.graph.later
    return step.reshape(out, 1) if whole else out


@converts("mean")
def _convert_mean(step: Step) -> str:
    out = step.reduce("ReduceMean", step.input(), range(step.rank()), keep=False)
    return out if step.graph.later else step.reshape(out, 1)


@converts("arg_max", "arg_min")
def _convert_arg(step: Step) -> str:
    step.refuse_inputs("Axis")
    x, axis, keep = step.input(), step.attr("axis", -1), int(bool(step.attr("keepdims")))
    if step.attr("flatten"):
        x, axis = step.reshape(x, -1), 0
        if keep:
            x = step.reshape(x, -1, *(1,) * (step.rank() - 1))
    out = step.add("ArgMax" if step.op.type == "arg_max" else "ArgMin", x, axis=axis, keepdims=keep)
    return step.cast(out, "int32") if step.attr("dtype") == VarType.INT32 else out


@converts("top_k", "top_k_v2")
def _convert_top_k(step: Step) -> None:
    k = step.cast(step.reshape(step.input("K"), 1), "int64") if step.has("K") else step.ints(step.attr("k"))
    axis = step.attr("axis", -1) if step.op.type == "top_k_v2" else -1
    _give_top(step, k, axis, largest=step.attr("largest", True) is not False)


@converts("kthvalue")
def _convert_kthvalue(step: Step) -> None:
    axis = step.attr("axis") % step.rank()
    k, last = step.ints(step.attr("k")), step.constant(step.attr("k") - 1, "int64")
    last = step.reshape(last, 1) if step.attr("keepdim") else last
    found = step.add_several("TopK", step.input(), k, count=2, axis=axis, largest=0)
    for slot, value in zip(("Out", "Indices"), found, strict=True):
        step.give(slot, step.add("Gather", value, last, axis=axis))


@converts("unique", "unique_with_counts")
def _convert_unique(step: Step) -> None:
    """Find unique elements, in order of appearance (Fluid) or sorted (Paddle 2.x, which also compares
    slices).
    """
    attrs = {"axis": step.attr("axis")[0]} if step.attr("axis") else {}
    found, first, each, counts = step.add_several(
        "Unique", step.input(), count=4, sorted=int(step.graph.later), **attrs
    )
    number = VarType(step.attr("dtype"))
    step.give("Out", found)
    for slot, value in (("Indices", first), ("Index", each), ("Counts", counts), ("Count", counts)):
        if step.op.output(slot):
            step.give(slot, step.cast(value, number))


@converts("bincount")
def _convert_bincount(step: Step) -> str:
    x = step.cast(step.input(), "int64")
    most = step.add("Add", step.reduce("ReduceMax", x, [0], keep=True), step.ints(1))
    most = step.reshape(step.add("Max", most, step.ints(step.attr("minlength"))))
    numbers = step.add("Range", step.constant(0, "int64"), most, step.constant(1, "int64"))
    hits = step.add("Equal", step.unsqueeze(x, 1), numbers)
    if step.has("Weights"):
        weights = step.add("Where", hits, step.unsqueeze(step.input("Weights"), 1), step.like(0, "Weights"))
        return step.reduce("ReduceSum", weights, [0], keep=False)
    return step.reduce("ReduceSum", step.cast(hits, "int64"), [0], keep=False)


@converts("argsort")
def _convert_argsort(step: Step) -> None:
    axis = step.attr("axis") % step.rank()
    _give_top(step, step.dims(step.input(), axis, axis + 1), axis, largest=bool(step.attr("descending")))


def _give_top(step: Step, k: str, axis: int, *, largest: bool) -> None:
    values, places = step.add_several("TopK", step.input(), k, count=2, axis=axis, largest=int(largest))
    step.give("Out", values)
    step.give("Indices", places)


@converts("size")
def _convert_size(step: Step) -> str:
    size = step.add("Size", step.input("Input"))
    return size if step.graph.later else step.reshape(size, 1)


@converts("is_empty")
def _convert_is_empty(step: Step) -> str:
    empty = step.add("Equal", step.add("Size", step.input()), step.constant(0, "int64"))
    return empty if step.graph.later else step.reshape(empty, 1)


@converts("sum")
def _convert_sum(step: Step) -> str:
    first, *others = step.inputs("X")
    for other in others:
        first = step.add("Add", first, other)
    return first


@converts("where_index")
def _convert_where_index(step: Step) -> str:
    return step.transpose(step.add("NonZero", step.input("Condition")), [1, 0])


@converts("segment_pool")
def _convert_segment_pool(step: Step) -> str:
    """Combine the rows of each id; absent ids give zeros."""
    kind = {"SUM": "add", "MEAN": "add", "MAX": "max", "MIN": "min"}[step.attr("pooltype")]
    if step.graph.opset < (16 if kind == "add" else 18):
        step.refuse(f"pooltype is {step.attr('pooltype')}, which needs opset {16 if kind == 'add' else 18}")
    ids, x = step.cast(step.input("SegmentIds"), "int64"), step.input()
    count = step.add("Add", step.reduce("ReduceMax", ids, [0], keep=True), step.ints(1))
    shape = step.add("Concat", count, step.dims(x, 1, step.rank()), axis=0)
    places, ones = step.unsqueeze(ids, 1), step.add("Expand", step.like(1), step.add("Shape", ids))
    hits = step.add("ScatterND", step.add("Expand", step.like(0), count), places, ones, reduction="add")
    hits = step.unsqueeze(hits, *range(1, step.rank()))
    extreme = {"add": 0.0, "max": -np.inf, "min": np.inf}[kind]
    blank = step.add("Expand", step.like(extreme), shape)
    out = step.add("ScatterND", blank, places, x, reduction=kind)
    if step.attr("pooltype") == "MEAN":
        out = step.add("Div", out, step.add("Max", hits, step.like(1)))
    if kind != "add":
        out = step.add("Where", step.add("Equal", hits, step.like(0)), step.like(0), out)
    return out


@converts("mode")
def _convert_mode(step: Step) -> None:
    """Find the most frequent element, the smallest if there are several, and its last index."""
    axis, last = step.attr("axis") % step.rank(), step.rank() - 1
    order = [each for each in range(step.rank()) if each != axis] + [axis]
    rows = step.transpose(step.input(), order)
    equal = step.add("Equal", step.unsqueeze(rows, last + 1), step.unsqueeze(rows, last))
    counts = step.reduce("ReduceSum", step.cast(equal, "int64"), [last + 1], keep=False)
    frequent = step.add("Equal", counts, step.reduce("ReduceMax", counts, [last], keep=True))
    candidates = step.add("Where", frequent, rows, step.like(np.inf))
    best = step.reduce("ReduceMin", candidates, [last], keep=True)
    end = step.squeeze(step.dims(rows, last, last + 1), 0)
    numbers = step.add("Range", step.constant(0, "int64"), end, step.constant(1, "int64"))
    hits = step.add("Where", step.add("Equal", rows, best), numbers, step.constant(-1, "int64"))
    place = step.reduce("ReduceMax", hits, [last], keep=True)
    for slot, value in (("Out", best), ("Indices", place)):
        kept = step.transpose(value, np.argsort(order).tolist())
        step.give(slot, kept if step.attr("keepdim") else step.squeeze(kept, axis))


@converts("unique_consecutive")
def _convert_unique_consecutive(step: Step) -> None:
    if step.attr("axis"):
        step.refuse("it compares slices along a dim")
    x, end = step.reshape(step.input(), -1), step.ints(np.iinfo(np.int64).max)
    later, before = (step.add("Slice", x, step.ints(a), b) for a, b in ((1, end), (0, step.ints(-1))))
    changes = step.add("Not", step.add("Equal", later, before))
    starts = step.add("Concat", step.constant([True], np.bool_), changes, axis=0)
    step.give("Out", step.add("Compress", x, starts, axis=0))
    number = VarType(step.attr("dtype"))
    each = step.add("CumSum", step.cast(starts, "int64"), step.constant(0, "int64"))
    step.give("Index", step.cast(step.add("Sub", each, step.ints(1)), number))
    places = step.reshape(step.add("NonZero", starts), -1)
    ends = step.add("Concat", step.add("Slice", places, step.ints(1), end), step.add("Shape", x), axis=0)
    step.give("Counts", step.cast(step.add("Sub", ends, places), number))


@converts("histogram")
def _convert_histogram(step: Step) -> str:
    low, high, bins = step.attr("min"), step.attr("max"), step.attr("bins")
    if low == high == 0:
        step.refuse("its bounds depend on the elements")
    edges = np.linspace(low, high, bins + 1)
    x = step.unsqueeze(step.reshape(step.cast(step.input(), "float64"), -1), 1)
    above = step.add("GreaterOrEqual", x, step.constant(edges[:-1], "float64"))
    below = step.add("Less", x, step.constant([*edges[1:-1], np.nextafter(edges[-1], np.inf)], "float64"))
    return step.reduce("ReduceSum", step.cast(step.add("And", above, below), "int64"), [0], keep=False)


@converts("cumsum")
def _convert_cumsum(step: Step) -> str:
    flat = step.attr("flatten")
    x = step.reshape(step.input(), -1) if flat else step.input()
    axis = step.constant(0 if flat else step.attr("axis"), np.int64)
    options = {name: int(bool(step.attr(name))) for name in ("exclusive", "reverse")}
    return step.add("CumSum", x, axis, **options)
