"""Operators that read, select and write by indexes in another tensor."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.node import Node, reads


def _count_from_start(node: Node, axis: int) -> Expression:
    """Return the indexes of input 1 along a dim, with negative ones counted from the front.

    Ids that are fed for a table of the model are not changed, as in the layer ``embedding``.
    """
    size = node.dims()[axis]
    known = node.find_known(1)
    if known is not None and (size >= 0 or (known >= 0).all()):
        counted = np.where(known < 0, known + size, known)
        return node.constant(counted.reshape(counted.shape or (1,)), np.int64)
    places = node.input(1).cast(VarType.INT64)
    table = node.proto.input[0] in node.graph.known and node.rank() == 2
    if table and node.proto.input[1] in node.graph.trusted:
        return places
    end = (
        node.constant([size], np.int64) if size >= 0 else node.input().dims_at_run().slice(0, axis, axis + 1)
    )
    below = node.emit("less_than", places, node.constant([0], np.int64), axis=-1).cast(VarType.INT64)
    return places + below * end


@reads("Gather")
def _read_gather(node: Node) -> Expression:
    """Gather rows; a single index removes the dim."""
    axis, dims, rank = node.axis(0), node.dims(), node.rank(1)
    places = _count_from_start(node, axis)
    x, known = node.input(), node.find_known(1)
    if not rank:
        if known is not None:
            place = int(known)
            end = place + 1 if place != -1 else np.iinfo(np.int32).max
            out = x.slice(axis, place, end)
        else:
            out = node.emit("index_select", {"X": x, "Index": places}, dim=axis)
        return out.reshape(1) if len(dims) == 1 else out.squeeze(axis)
    if axis == 0 and len(dims) == 2 and node.dtype().kind == "f":
        return node.emit("lookup_table_v2", {"W": x, "Ids": places}, padding_idx=-1)
    if rank == 1 and axis == 0:
        return x.gather(places)
    if rank == 1:
        return node.emit("index_select", {"X": x, "Index": places}, dim=axis)
    order = [axis, *(i for i in range(len(dims)) if i != axis)]
    moved = x.transpose(order)
    out = node.emit("gather_nd", {"X": moved, "Index": places.unsqueeze(rank)})
    before = [rank + i for i in range(axis)]
    after = [rank + i for i in range(axis, len(dims) - 1)]
    return out.transpose([*before, *range(rank), *after])


def _count_rows_from_start(node: Node, first: int = 0) -> Expression:
    """Return indices ``(..., k)`` into the dims from ``first`` on, with negative ones resolved."""
    last = first + node.dims(1)[-1]
    if last < first:
        node.refuse(f"its indices have dims {node.dims(1)}")
    sizes, known = np.array(node.dims()[first:last]), node.find_known(1)
    if known is not None and ((known >= 0) | (sizes >= 0)).all():
        return node.constant(np.where(known < 0, known + sizes, known), np.int64)
    places = node.input(1).cast(VarType.INT64)
    end = (
        node.constant(sizes, np.int64)
        if min(sizes, default=0) >= 0
        else node.input().dims_at_run().slice(0, first, last)
    )
    below = compare(node, "less_than", places, node.constant([0], np.int64)).cast(VarType.INT64)
    return places + below * end


@reads("GatherND")
def _read_gather_nd(node: Node) -> Expression:
    """Read GatherND. With ``batch_dims`` each row has its own indexes, so the row's number is prepended."""
    count = node.attr("batch_dims", 0)
    places = _count_rows_from_start(node, count)
    if count:
        dims = node.dims(1)
        if min(dims) < 0:
            node.refuse(f"batch_dims is {count}, and its indices have dims {dims}")
        rows = np.stack(list(np.indices(dims[:-1]))[:count], -1)
        places = node.emit("concat", [node.constant(rows, np.int64), places], axis=len(dims) - 1)
    return node.emit("gather_nd", {"X": node.input(), "Index": places})


@reads("GatherElements")
def _read_gather_elements(node: Node) -> Expression:
    axis = node.axis(0)
    places = _count_from_start(node, axis)
    given = {"Input": node.input(), "Index": places}
    return node.emit("take_along_axis", given, Axis=axis, shaped=node.dims(1))


@reads("ScatterElements", "Scatter")
def _read_scatter_elements(node: Node) -> Expression:
    axis, kind = node.axis(0), node.attr("reduction", "none")
    kinds = {"none": "assign", "max": "amax", "min": "amin"}
    places = _count_from_start(node, axis)
    given = {"Input": node.input(), "Index": places, "Value": node.input(2)}
    return node.emit("put_along_axis", given, Axis=axis, Reduce=kinds.get(kind, kind))


def _reduce_rows(node: Node, kind: str) -> None:
    """Return X as a matrix with its first dims joined, and its rows reduced to one index each."""
    dims, count = node.dims(), node.dims(1)[-1]
    size = math.prod(dims[count:])
    if min(dims) < 0 or count < 0:
        node.refuse(f"X has dims {dims}, the indices {node.dims(1)}")
    steps = node.constant([math.prod(dims[i + 1 : count]) for i in range(count)], np.int64)
    places = _count_rows_from_start(node)
    places = (places * steps).reduce("sum", -1, keep=False)
    rows = node.emit("expand", places.reshape(-1, 1), expand_times=[1, size])
    given = {"Input": node.input().reshape(-1, size), "Value": node.input(2).reshape(-1, size)}
    out = node.emit("put_along_axis", given | {"Index": rows}, Axis=0, Reduce=kind)
    node.give(out.reshape(*dims))


@reads("ScatterND")
def _read_scatter_nd(node: Node) -> None:
    """Read ScatterND. Paddle's operator adds, so the written elements are first set to zero."""
    x, _, updates = node.inputs()
    kind = node.attr("reduction", "none")
    if kind not in ("none", "add"):
        _reduce_rows(node, {"max": "amax", "min": "amin"}.get(kind, kind))
        return
    places = _count_rows_from_start(node)
    if kind == "add":
        node.give(node.emit("scatter_nd_add", {"X": x, "Index": places, "Updates": updates}))
        return
    dtype = node.dtype()
    if dtype.kind != "f":
        x, updates = (each.cast(VarType.FP64) for each in (x, updates))
    ones = updates.zeros().scale(bias=1.0)
    nothing = x.zeros()
    count = node.emit("scatter_nd_add", {"X": nothing, "Index": places, "Updates": ones})
    touched = node.emit("greater_than", count, nothing, axis=-1)
    kept = touched.where(nothing, x)
    out = node.emit("scatter_nd_add", {"X": kept, "Index": places, "Updates": updates})
    node.give(out.cast(dtype))


@reads("TensorScatter")
def _read_tensor_scatter(node: Node) -> Expression:
    """Write an update into a cache, at a different index in each row."""
    axis, rank = node.axis(-2), node.rank()
    size, length = node.dims()[axis], node.dims(1)[axis]
    if size < 0 or length < 0:
        node.refuse(f"the cache has dims {node.dims()}, the update {node.dims(1)}")
    places = node.constant(np.arange(length).reshape([-1 if i == axis else 1 for i in range(rank)]), np.int64)
    if node.has(2):
        start = node.input(2).reshape(-1, *[1] * (rank - 1))
        places = start + places
    if node.attr("mode", "linear") == "circular":
        places = node.emit("elementwise_mod", places, node.constant([size], np.int64))
    nothing = node.input(1).zeros().cast(VarType.INT64)
    given = {"Input": node.input(), "Index": nothing + places}
    return node.emit("put_along_axis", given | {"Value": node.input(1)}, Axis=axis, Reduce="assign")


@reads("NonZero")
def _read_non_zero(node: Node) -> Expression:
    places = node.emit("where_index", {"Condition": node.input()})
    return places.transpose([1, 0])


@reads("Compress")
def _read_compress(node: Node) -> Expression:
    places = node.emit("where_index", {"Condition": node.input(1)}).reshape(-1)
    axis = node.attr("axis")
    x = node.input().reshape(-1) if axis is None else node.input()
    axis = 0 if axis is None else node.axis(0)
    return node.emit("index_select", {"X": x, "Index": places}, dim=axis)


@reads("OneHot")
def _read_one_hot(node: Node) -> Expression:
    """Read OneHot; negative ids count from the end, invalid ones give rows of the off value."""
    dtype, known = node.dtype(2), node.find_known(1)
    if known is None:
        depth = node.input(1).cast(VarType.INT64).reshape(1)
        ends = {"Start": node.constant([0], np.int64), "End": depth, "Step": node.constant([1], np.int64)}
        classes = node.emit("range", ends)
    else:
        depth = node.constant([int(known.reshape(-1)[0])], np.int64)
        classes = node.constant(np.arange(int(known.reshape(-1)[0])), np.int64)
    rank = node.rank() + 1
    axis = node.normalize(node.attr("axis", -1), rank)
    ids = node.input().cast(VarType.INT64)
    wide = ids.unsqueeze(rank - 1) if node.rank() else ids
    found = compare(node, "equal", wide, classes)
    behind = wide + depth
    behind = compare(node, "equal", behind, classes)
    hot = node.emit("logical_or", found, behind).cast(dtype)
    values = node.input(2)
    low, high = values.slice(0, 0, 1), values.slice(0, 1, 2)
    span = high - low
    out = hot * span + low
    if axis != rank - 1:
        out = out.transpose([*range(axis), rank - 1, *range(axis, rank - 1)])
    return out
