"""Operators that join, cut, repeat and reshape tensors."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import (
    MOST,
    Expression,
    count,
    spread,
)
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.file import ELEMENT_TYPES, read_array
from paddlelike.interop.onnx.importer.node import Node, reads


@reads("Concat")
def _read_concat(node: Node) -> Expression:
    return node.emit("concat", node.inputs(), axis=node.axis(1))


@reads("Split")
def _read_split(node: Node) -> None:
    """Split; the last part may be smaller if only the number of parts is given."""
    axis, count = node.axis(0), len(node.proto.output)
    if node.has(1) and node.find_known(1) is None:
        given = node.input(1).cast(VarType.INT32)
        lengths = [given.slice(0, index, index + 1) for index in range(count)]
        inputs = {"X": node.input(), "SectionsTensorList": lengths}
        parts = node.split(inputs, count, axis=axis, num=0, sections=[-1] * count)
        for index, part in enumerate(parts):
            node.give(part, index)
        return
    sizes, size = node.numbers(1, "split"), node.dims()[axis]
    if sizes is None and size < 0:
        parts = node.split(node.input(), count, axis=axis, num=count, sections=[])
    else:
        if sizes is None:
            each = -(-size // count)
            sizes = [each] * (count - 1) + [size - each * (count - 1)]
        parts = node.split(node.input(), count, axis=axis, num=0, sections=sizes)
    for index, part in enumerate(parts):
        node.give(part, index)


@reads("Reshape")
def _read_reshape(node: Node) -> None:
    """Reshape; one unknown dim of the new shape is inferred."""
    if not node.has(1):
        dims = list(node.attr("shape", []))
    else:
        known = node.find_known(1)
        partial = node.graph.partial.get(node.proto.input[1])
        typed = node.graph.typed.get(node.proto.output[0])
        if known is not None:
            dims = [int(dim) for dim in known.reshape(-1)]
        elif typed is not None and typed.dims and typed.dims.count(-1) <= 1 and 0 not in typed.dims:
            dims = list(typed.dims)
        elif partial is not None and np.isnan(partial).sum() == 1 and -1 not in partial:
            dims = [-1 if np.isnan(dim) else int(dim) for dim in partial]
        else:
            _reshape_at_run(node)
            return
    if node.attr("allowzero", 0) and 0 in dims:
        node.refuse(f"its shape is {dims}, which has no elements")
    node.give(node.input().reshape(*(dims or [1])))


def _reshape_at_run(node: Node) -> None:
    dims = node.find_output_dims()
    if dims is None:
        partial = node.graph.partial.get(node.proto.input[1])
        count = node.dims(1)[0] if partial is None else partial.size
        dims = (-1,) * count if count > 0 else None
    if dims is None:
        node.refuse("the number of its dims is computed at run time")
    size = node.input(1).cast(VarType.INT32)
    node.give(node.emit("reshape2", {"X": node.input(), "Shape": size}, shape=[], shaped=dims))


@reads("Flatten")
def _read_flatten(node: Node) -> Expression:
    axis = node.attr("axis", 1)
    return node.emit("flatten2", node.input(), axis=axis + node.rank() if axis < 0 else axis)


@reads("Squeeze")
def _read_squeeze(node: Node) -> Expression:
    axes = node.numbers(1, "axes")
    if axes is None:
        axes = [axis for axis, dim in enumerate(node.dims()) if dim == 1]
    axes = [node.normalize(axis, node.rank()) for axis in axes]
    if len(axes) == node.rank():
        return node.input().reshape(1)
    return node.input().squeeze(*axes)


@reads("Unsqueeze")
def _read_unsqueeze(node: Node) -> Expression:
    axes = node.numbers(1, "axes") or []
    rank = node.rank() + len(axes)
    places = sorted(node.normalize(axis, rank) for axis in axes)
    if not node.rank():  # it has one dim here already
        return node.input().reshape(*(1,) * rank)
    return node.input().unsqueeze(*places)


@reads("Transpose")
def _read_transpose(node: Node) -> Expression:
    perm = node.attr("perm", list(reversed(range(node.rank()))))
    return node.emit("transpose2", node.input(), axis=list(perm))


@reads("Slice")
def _read_slice(node: Node) -> None:
    """Slice; starts and ends are inputs since version 10."""
    fed = [node.has(index) and node.find_known(index) is None for index in range(1, 5)]
    if any(fed[2:]):
        node.give(_slice_by_places(node))
        return
    axes = node.numbers(3, "axes")
    if any(fed[:2]):
        if min(node.numbers(4) or [1]) < 1:
            node.give(_slice_by_places(node))
        else:
            _slice_at_run(node, axes)
        return
    starts, ends = node.numbers(1, "starts"), node.numbers(2, "ends")
    assert starts is not None
    assert ends is not None
    axes = list(range(len(starts))) if axes is None else [node.normalize(axis, node.rank()) for axis in axes]
    steps = node.numbers(4) or [1] * len(axes)
    out, forward = node.input(), []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 0:
            out = _step_back(node, out, axis, (start, end, step))
        else:
            forward.append((axis, _limit(start), _limit(end), step))
    if not forward:
        node.give(out)
        return
    columns = [list(column) for column in zip(*forward, strict=True)]
    options = dict(zip(("axes", "starts", "ends"), columns, strict=False))
    if set(columns[3]) == {1}:
        node.give(node.emit("slice", {"Input": out}, **options))
    else:
        node.give(node.emit("strided_slice", {"Input": out}, **options, strides=columns[3]))


def _limit(number: int) -> int:
    return max(min(number, MOST), -MOST)


def _step_back(node: Node, x: Expression, axis: int, cut: tuple[int, int, int]) -> Expression:
    """Return a dim in reverse order, or the indexes of a slice with a negative step."""
    start, end, step = cut
    size = x.shape[axis]
    whole = (start == -1 or start >= MOST or 0 <= size - 1 <= start) and (end <= -MOST or (0 <= size < -end))
    if whole and step == -1:
        return node.emit("reverse", x, axis=[axis])
    if size < 0:
        node.refuse(f"it runs backwards along dim {axis}, whose size is not known")
    stop = None if end < -size else end
    places = node.constant(np.arange(size)[slice(start, stop, step)], np.int64)
    return node.emit("index_select", {"X": x, "Index": places}, dim=axis)


def _slice_at_run(node: Node, axes: list[int] | None) -> None:
    steps = node.numbers(4)
    if axes is None:
        count = (node.dims(1) or (1,))[0]
        axes = list(range(max(count, 1)))  # unknown: assumed to be one; with more the run fails
    axes = [node.normalize(axis, node.rank()) for axis in axes]
    dims = [-1 if axis in axes else dim for axis, dim in enumerate(node.dims())]
    lowest, most = node.constant([-MOST], node.dtype(1)), node.constant([MOST], node.dtype(1))
    bounds = []
    for index in (1, 2):
        bound = node.input(index).reshape(len(axes)).maximum(lowest)
        bounds.append(bound.minimum(most).cast(VarType.INT32))
    given = {"Input": node.input(), "StartsTensor": bounds[0], "EndsTensor": bounds[1]}
    flags = [-1] * len(axes)
    options = {"axes": axes, "starts": flags, "ends": flags, "infer_flags": flags}
    if set(steps or []) <= {1}:
        node.give(node.emit("slice", given, **options, shaped=dims))
    else:
        node.give(node.emit("strided_slice", given, **options, strides=steps, shaped=dims))


def _slice_by_places(node: Node) -> Expression:
    """Return a slice along any axes and by any steps, by the indexes that numpy would select in each dim."""
    x, rank, parts = node.input(), node.rank(), []
    axes = node.find_axes(3, len(node.row(1)))
    for index, default in ((1, 0), (2, MOST), (4, 1)):
        given = node.row(index) if node.has(index) else node.row(1) * 0 + 1
        parts.append(spread(given, axes, rank, default))
    for axis, (start, end, step) in enumerate(zip(*parts, strict=True)):
        size, forward = node.size(axis), 1 - (step < 0)
        start, end = (each + (each < 0) * size for each in (start, end))
        lowest, highest = forward - 1, size - 1 + forward
        start, end, sign = start.clip(lowest, highest), end.clip(lowest, highest), forward * 2 - 1
        length = np.maximum((end - start) * sign, 0)  # none where it ends before it starts
        x = x.take(count(start, start + length * sign, step), axis)
    return x


@reads("Expand")
def _read_expand(node: Node) -> Expression:
    """Broadcast X to the common shape of X and the given shape."""
    dims, known = node.dims() or (1,), node.find_known(1)
    if known is not None and -1 not in dims:
        wanted = [int(dim) for dim in known.reshape(-1)]
        rank = max(len(wanted), len(dims))
        ours, theirs = [1] * (rank - len(dims)) + list(dims), [1] * (rank - len(wanted)) + wanted
        x = node.input().unsqueeze(*range(rank - len(dims)))
        times = [other if dim == 1 else 1 for dim, other in zip(ours, theirs, strict=True)]
        return node.emit("expand", x, expand_times=times)
    shape = node.input(1).cast(VarType.INT32)
    truth = node.dtype().kind == "b"
    dtype = VarType.INT32 if truth else node.variable().dtype
    wide = node.find_output_dims()
    if wide is None and node.dims(1)[0] > 0:
        wide = (-1,) * max(node.dims(1)[0], node.rank())
    zeros = node.emit(
        "fill_constant", {"ShapeTensor": shape}, shape=[], value=0.0, dtype=int(dtype), shaped=wide or dims
    )
    out = node.emit("elementwise_add", node.input().cast(dtype), zeros, shaped=wide)
    return out.cast(VarType.BOOL) if truth else out


@reads("Tile")
def _read_tile(node: Node) -> Expression:
    known = node.find_known(1)
    if known is not None:
        return node.emit("expand", node.input(), expand_times=[int(one) for one in known.reshape(-1)])
    times = node.input(1).cast(VarType.INT32)
    dims = [-1] * node.rank()
    return node.emit("expand", {"X": node.input(), "ExpandTimes": times}, expand_times=dims, shaped=dims)


@reads("Shape")
def _read_shape(node: Node) -> Expression:
    rank, start, end = node.rank(), node.attr("start", 0), node.attr("end")
    if not rank:
        node.refuse("its input has no dims")
    out = node.input().dims_at_run()
    if start or end is not None:
        out = out.slice(0, start, MOST if end is None else end)
    return out


@reads("ConstantOfShape")
def _read_constant_of_shape(node: Node) -> Expression:
    given = node.attr("value")
    value = np.zeros(1, np.float32) if given is None else read_array(given, None)
    dtype = ELEMENT_TYPES[1 if given is None else given.data_type]
    number = value.item()
    options = {
        "value": float(number),
        "str_value": str(number) if value.dtype.kind == "i" else "",
        "dtype": int(dtype),
    }
    known = node.find_known(0)
    if known is not None:
        dims = [int(dim) for dim in known.reshape(-1)] or [1]
        return node.emit("fill_constant", shape=dims, **options)
    wide = node.find_output_dims()
    if wide is None and node.dims(0)[0] > 0:
        wide = (-1,) * node.dims(0)[0]
    shape = node.input().cast(VarType.INT32)
    return node.emit("fill_constant", {"ShapeTensor": shape}, shape=[], **options, shaped=wide)


@reads("Range")
def _read_range(node: Node) -> Expression:
    bounds = {slot: node.input(index) for index, slot in enumerate(("Start", "End", "Step"))}
    return node.emit("range", bounds, shaped=[-1])


@reads("Trilu")
def _read_trilu(node: Node) -> Expression:
    dtype, known = node.dtype(), node.find_known(1)
    if node.has(1) and known is None:
        rows, columns = node.dims()[-2:]
        if min(rows, columns) < 0:
            node.known(1)  # raises the error
        places = node.constant(np.subtract.outer(-np.arange(rows), -np.arange(columns)), np.int64)
        kind = "greater_equal" if node.attr("upper", 1) else "less_equal"
        x = node.input().cast(VarType.INT32) if dtype.kind == "b" else node.input()
        zero = x.zeros()
        kept = compare(node, kind, places, node.input(1)).cast(x.variable.dtype)
        mask = (zero + kept).cast(VarType.BOOL)
        return mask.where(x, zero).cast(dtype)
    diagonal = 0 if known is None else int(known.reshape(-1)[0])
    x = node.input().cast(VarType.INT32) if dtype.kind == "b" else node.input()
    out = node.emit("tril_triu", x, diagonal=diagonal, lower=not node.attr("upper", 1))
    return out.cast(dtype)


@reads("EyeLike")
def _read_eye(node: Node) -> Expression:
    rows, columns = node.dims()
    if min(rows, columns) < 0:
        node.refuse(f"its input has dims {node.dims()}")
    target = node.attr("dtype")
    dtype = node.dtype() if target is None else ELEMENT_TYPES[target]
    return node.constant(np.eye(rows, columns, node.attr("k", 0)), np.float32).cast(dtype)


@reads("DepthToSpace", "SpaceToDepth")
def _read_depth(node: Node) -> Expression:
    """Turn the blocks of an image into channels, or channels into blocks."""
    size, (n, c, h, w), x = node.attr("blocksize"), node.dims(), node.input()
    blocks_first = node.attr("mode", "DCR") == "DCR"  # among the channels; Paddle's come last
    if node.type == "SpaceToDepth" and min(h, w) >= 0 and (n >= 0 or c >= 0):
        x = x.reshape(-1 if n < 0 else n, c, h // size, size, w // size, size)
        x = x.transpose([0, 3, 5, 1, 2, 4] if blocks_first else [0, 1, 3, 5, 2, 4])
        return x.reshape(n, c * size * size if c >= 0 else -1, h // size, w // size)
    if c < 0:
        node.refuse(f"its input has dims {node.dims()}")
    deepens = node.type == "SpaceToDepth"
    if deepens:
        x = node.emit("pixel_unshuffle", x, downscale_factor=size)
    if blocks_first:
        first, last = (c, size * size) if deepens else (size * size, c // (size * size))
        order = np.arange(first * last).reshape(first, last).T.reshape(-1)
        index = node.constant(order, np.int64)
        x = node.emit("index_select", {"X": x, "Index": index}, dim=1)
    return x if deepens else node.emit("pixel_shuffle", x, upscale_factor=size)
