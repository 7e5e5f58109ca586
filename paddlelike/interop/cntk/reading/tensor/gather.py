"""One-hot classes, indexes of the largest elements, and rows by index."""

from __future__ import annotations

import math

from paddlelike.framework import Variable
from paddlelike.interop.cntk.reading.step import Step, Value, reads
from paddlelike.layers.emit import emit_all


@reads("OneHot")
def _read_one_hot(step: Step) -> Value:
    value = step.value()
    if step.static_dim(step.axes("onehotAxis")[0], value.rank + 1) != value.rank:
        step.refuse("its classes are not the last dim")
    return step.give(_spread(step, value, step.attr("numClass", int)), rank=value.rank + 1)


def _spread(step: Step, value: Value, depth: int) -> Variable:
    ids = step.cast(value.variable, "int64")
    attrs = {"depth": int(depth), "dtype": int(value.variable.dtype), "allow_out_of_range": True}
    return step.emit("one_hot_v2", {"X": ids}, attrs, dtype=value.variable.dtype)


@reads("Hardmax")
def _read_hardmax(step: Step) -> Value:
    """Return 1 at the first maximum of the whole sample, else 0."""
    value = step.value()
    count = math.prod(value.shape)
    if count < 0:
        step.refuse("a dim of its input is not known")
    flat = step.reshape(value, [count])
    attrs = {"axis": int(value.dynamic), "keepdims": False, "dtype": -1}
    place = step.emit("arg_max", {"X": flat}, attrs, dtype="int64")
    depth = {"depth": count, "dtype": int(flat.dtype), "allow_out_of_range": False}
    spread = step.emit("one_hot_v2", {"X": place}, depth, dtype=flat.dtype)
    return step.give(step.reshape(value._replace(variable=spread, rank=1), value.shape))


@reads("TopK")
def _read_top_k(step: Step) -> tuple[Value, ...]:
    value = step.value()
    if step.static_dim(step.axes("axis")[0], value.rank) != value.rank - 1:
        step.refuse("it does not work along the last dim")
    outputs = {"Out": value.variable.dtype, "Indices": "int64"}
    best, places = emit_all("top_k", {"X": value.variable}, outputs, {"k": step.attr("numItems", int)})
    return step.give(best), step.give(step.cast(places, value.variable.dtype))


@reads("Gather")
def _read_gather(step: Step) -> Value:
    """Return rows of a table by their indexes."""
    ids, table = step.value(), step.value(1)
    if table.dynamic or "axisVec" in step.node.attributes or "axis" in step.node.attributes:
        step.refuse("its table has samples, or it gathers along another dim than the first")
    flat = step.reshape_all(step.cast(ids.variable, "int64"), [-1])
    rows = step.emit("gather", {"X": table.variable, "Index": flat})
    shape = [*ids.shape, *table.shape[1:]]
    if ids.rank:
        rows = step.reshape_all(rows, [-1, *shape] if ids.dynamic else shape)
    return step.give(rows, ids, len(shape))
