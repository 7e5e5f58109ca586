"""Reductions, and the indexes of the largest and smallest elements."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.ops.reduction.reduce import REDUCTIONS, find_axes


@converts(*REDUCTIONS)
def _convert_reduction(step: Step) -> Value:
    row, x = REDUCTIONS[step.op.type], step.input()
    given = tuple(step.attr("dim", step.attr("axis", [])))  # as in Paddle 2.x, no dims means all dims
    axes = find_axes(step.op.type, None if step.attr("reduce_all") else given or None, step.rank())
    keep = bool(step.attr("keep_dim", step.attr("keepdim")))
    if step.attr("out_dtype", -1) >= 0:
        x = x.cast(VarType(step.attr("out_dtype")))
    if row.is_logical:
        x = x.cast("int32")
    out = x.reduce(row.onnx, *axes, keep=keep) if axes else x
    if row.is_logical:
        out = out.cast("bool")
    whole = len(axes) == step.rank() and not keep and not step.graph.later
    return out.reshape(1) if whole else out


@converts("mean")
def _convert_mean(step: Step) -> Value:
    out = step.input().reduce("ReduceMean", *range(step.rank()))
    return out if step.graph.later else out.reshape(1)


@converts("arg_max", "arg_min")
def _convert_arg(step: Step) -> Value:
    step.refuse_inputs("Axis")
    x, axis, keep = step.input(), step.attr("axis", -1), int(bool(step.attr("keepdims")))
    if step.attr("flatten"):
        x, axis = x.reshape(-1), 0
        if keep:
            x = x.reshape(-1, *(1,) * (step.rank() - 1))
    out = step.add("ArgMax" if step.op.type == "arg_max" else "ArgMin", x, axis=axis, keepdims=keep)
    return out.cast("int32") if step.attr("dtype") == VarType.INT32 else out


@converts("top_k", "top_k_v2")
def _convert_top_k(step: Step) -> None:
    k = step.input("K").reshape(1).cast("int64") if step.has("K") else step.ints(step.attr("k"))
    axis = step.attr("axis", -1) if step.op.type == "top_k_v2" else -1
    _give_top(step, k, axis, largest=step.attr("largest", True) is not False)


@converts("kthvalue")
def _convert_kthvalue(step: Step) -> None:
    axis = step.attr("axis") % step.rank()
    k, last = step.ints(step.attr("k")), step.scalar(step.attr("k") - 1)
    last = last.reshape(1) if step.attr("keepdim") else last
    found = step.add_several("TopK", step.input(), k, count=2, axis=axis, largest=0)
    for slot, value in zip(("Out", "Indices"), found, strict=True):
        step.give(slot, value.take(last, axis))


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
            step.give(slot, value.cast(number))


@converts("bincount")
def _convert_bincount(step: Step) -> Value:
    x = step.input().cast("int64")
    most = x.reduce("ReduceMax", 0, keep=True) + 1
    most = most.maximum(step.attr("minlength")).reshape()
    numbers = most.range()
    hits = x.unsqueeze(1).equals(numbers)
    if step.has("Weights"):
        weights = hits.where(step.input("Weights").unsqueeze(1), 0.0)
        return weights.reduce("ReduceSum", 0)
    return hits.cast("int64").reduce("ReduceSum", 0)


@converts("argsort")
def _convert_argsort(step: Step) -> None:
    axis = step.attr("axis") % step.rank()
    _give_top(step, step.input().dims(axis, axis + 1), axis, largest=bool(step.attr("descending")))


def _give_top(step: Step, k: Value, axis: int, *, largest: bool) -> None:
    values, places = step.add_several("TopK", step.input(), k, count=2, axis=axis, largest=int(largest))
    step.give("Out", values)
    step.give("Indices", places)


@converts("size")
def _convert_size(step: Step) -> Value:
    size = step.add("Size", step.input("Input"))
    return size if step.graph.later else size.reshape(1)


@converts("is_empty")
def _convert_is_empty(step: Step) -> Value:
    empty = step.add("Size", step.input()).equals(step.scalar(0))
    return empty if step.graph.later else empty.reshape(1)


@converts("sum")
def _convert_sum(step: Step) -> Value:
    first, *others = step.inputs("X")
    for other in others:
        first = first + other
    return first


@converts("where_index")
def _convert_where_index(step: Step) -> Value:
    return step.add("NonZero", step.input("Condition")).transpose([1, 0])


@converts("segment_pool")
def _convert_segment_pool(step: Step) -> Value:
    """Combine the rows of each id; absent ids give zeros."""
    kind = {"SUM": "add", "MEAN": "add", "MAX": "max", "MIN": "min"}[step.attr("pooltype")]
    if step.graph.opset < (16 if kind == "add" else 18):
        step.refuse(f"pooltype is {step.attr('pooltype')}, which needs opset {16 if kind == 'add' else 18}")
    ids, x = step.input("SegmentIds").cast("int64"), step.input()
    count = ids.reduce("ReduceMax", 0, keep=True) + 1
    shape = step.concat(count, x.dims(1, step.rank()))
    places, ones = ids.unsqueeze(1), step.like(1).expand(ids.dims())
    hits = step.add("ScatterND", step.like(0).expand(count), places, ones, reduction="add")
    hits = hits.unsqueeze(*range(1, step.rank()))
    extreme = {"add": 0.0, "max": -np.inf, "min": np.inf}[kind]
    blank = step.like(extreme).expand(shape)
    out = step.add("ScatterND", blank, places, x, reduction=kind)
    if step.attr("pooltype") == "MEAN":
        out = out / hits.maximum(1.0)
    if kind != "add":
        out = hits.equals(0.0).where(0.0, out)
    return out


@converts("mode")
def _convert_mode(step: Step) -> None:
    """Find the most frequent element, the smallest if there are several, and its last index."""
    axis, last = step.attr("axis") % step.rank(), step.rank() - 1
    order = [each for each in range(step.rank()) if each != axis] + [axis]
    rows = step.input().transpose(order)
    equal = rows.unsqueeze(last + 1).equals(rows.unsqueeze(last))
    counts = equal.cast("int64").reduce("ReduceSum", last + 1)
    frequent = counts.equals(counts.reduce("ReduceMax", last, keep=True))
    candidates = frequent.where(rows, step.like(np.inf))
    best = candidates.reduce("ReduceMin", last, keep=True)
    end = rows.dims(last, last + 1).squeeze(0)
    numbers = end.range()
    hits = rows.equals(best).where(numbers, step.scalar(-1))
    place = hits.reduce("ReduceMax", last, keep=True)
    for slot, value in (("Out", best), ("Indices", place)):
        kept = value.transpose(np.argsort(order).tolist())
        step.give(slot, kept if step.attr("keepdim") else kept.squeeze(axis))


@converts("unique_consecutive")
def _convert_unique_consecutive(step: Step) -> None:
    if step.attr("axis"):
        step.refuse("it compares slices along a dim")
    x, end = step.input().reshape(-1), step.ints(np.iinfo(np.int64).max)
    later, before = (x[a:b] for a, b in ((1, end), (0, step.ints(-1))))
    changes = ~later.equals(before)
    starts = step.concat(step.constant([True], np.bool_), changes)
    step.give("Out", x[starts])
    number = VarType(step.attr("dtype"))
    each = step.add("CumSum", starts.cast("int64"), step.scalar(0))
    step.give("Index", (each - 1).cast(number))
    places = step.add("NonZero", starts).reshape(-1)
    ends = step.concat(places[1:end], x.dims())
    step.give("Counts", (ends - places).cast(number))


@converts("histogram")
def _convert_histogram(step: Step) -> Value:
    low, high, bins = step.attr("min"), step.attr("max"), step.attr("bins")
    if low == high == 0:
        step.refuse("its bounds depend on the elements")
    edges = np.linspace(low, high, bins + 1)
    x = step.input().cast("float64").reshape(-1).unsqueeze(1)
    above = x >= step.constant(edges[:-1], "float64")
    below = x < step.constant([*edges[1:-1], np.nextafter(edges[-1], np.inf)], "float64")
    return (above & below).cast("int64").reduce("ReduceSum", 0)


@converts("cumsum")
def _convert_cumsum(step: Step) -> Value:
    flat = step.attr("flatten")
    x = step.input().reshape(-1) if flat else step.input()
    axis = step.scalar(0 if flat else step.attr("axis"))
    options = {name: int(bool(step.attr(name))) for name in ("exclusive", "reverse")}
    return step.add("CumSum", x, axis, **options)
