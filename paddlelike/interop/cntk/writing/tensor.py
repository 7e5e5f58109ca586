"""Tensors as functions of CNTK: constants, shapes, parts, rows by index."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from paddlelike.core import numpy_dtype
from paddlelike.formats.cntk.dictionary import SizeT
from paddlelike.interop.cntk.writing.graph import Ref, Step, static_axis, writes


@writes("assign")
def _write_assign(step: Step) -> Ref:
    return step.ref().unary("NoOp")


@writes("fill_constant")
def _write_constant(step: Step) -> None:
    step.refuse_inputs("ShapeTensor", "ShapeTensorList", "ValueTensor")
    shape, variable = step.attr("shape"), step.out()
    text = step.attr("str_value", "")
    value = float(text) if text else float(step.attr("value"))
    if min(shape, default=1) < 1:
        step.refuse(f"its shape is {list(shape)}")
    filled = np.full(shape, value).astype(numpy_dtype(variable.dtype))
    step.graph.values[variable.name] = step.graph.add_constant(filled, filled.dtype)


@writes("fill_any_like", "fill_zeros_like")
def _write_filled(step: Step) -> Ref:
    x = step.ref()
    value = float(step.attr("value", 0.0)) if step.op.type == "fill_any_like" else 0.0
    value = float(np.array(value).astype(numpy_dtype(step.out().dtype)))
    return x.unary("ConstantOp", fillValue=value)


def gather_rows(step: Step, ids: Ref, table: Ref) -> Ref:
    return step.graph.add("Gather", [ids, table], shape=[*ids.shape, *table.shape[1:]], like=ids)


@writes("one_hot", "one_hot_v2")
def _write_one_hot(step: Step) -> Ref:
    step.refuse_inputs("depth_tensor")
    ids, depth = step.ref(), int(step.attr("depth"))
    shape = list(ids.shape)
    if step.op.type == "one_hot" and shape[-1:] == [1]:
        ids = ids.reshape(shape[:-1] or [1])
    wide = ids if ids.rank else ids.reshape([1])
    attributes = {
        "numClass": SizeT(depth),
        "oneHotOutputSparse": False,
        "onehotAxis": static_axis(wide.rank, wide.rank + 1),
    }
    out = step.graph.add("OneHot", [wide], attributes, shape=[*wide.shape, depth])
    static = shape[:-1] if step.op.type == "one_hot" and shape[-1:] == [1] else shape
    return out.reshape([*static, depth])


@writes("gather")
def _write_gather(step: Step) -> Ref:
    step.refuse_inputs("Axis")
    table, ids = step.ref(), step.ref("Index")
    if table.dynamic:
        step.refuse("it gathers samples")
    wide = ids if ids.rank else ids.reshape([1])
    out = gather_rows(step, wide, table)
    static = ids.shape if ids.rank < 2 else ids.shape[:-1]  # (rows, 1) has as many elements as (rows,)
    return out.reshape([*([] if ids.dynamic else static), *table.shape[1:]])


@writes("where")
def _write_where(step: Step) -> Ref:
    flag, x, y = step.ref("Condition"), step.ref(), step.ref("Y")
    return step.graph.add("Select", [flag, x, y], shape=x.shape, like=x)


def _give_reshaped(step: Step, shape: Sequence[int]) -> None:
    """Set the output to X, reshaped to the static shape of the output."""
    x = step.ref()
    out = x.reshape(shape)
    step.give("Out", x.unary("NoOp") if out is x else out)


def _find_static(step: Step) -> list[int]:
    """Return the static shape of the output, as the program declares it."""
    x, shape = step.ref(), list(step.out("Out").shape)
    static = shape[1:] if x.dynamic else shape
    if x.dynamic and shape[:1] != [-1]:
        step.refuse(f"its result of shape {shape} has no dim of samples")
    if static.count(-1) == 1:
        rest = -math.prod(static)
        static[static.index(-1)] = math.prod(x.shape) // rest if rest else 0
    if -1 in static:
        step.refuse(f"its result of shape {shape} has dims that are not known")
    return static


@writes("reshape", "reshape2", "squeeze", "squeeze2", "unsqueeze", "unsqueeze2", "flatten", "flatten2",
        "flatten_contiguous_range")  # fmt: skip
def _write_reshape(step: Step) -> None:
    step.refuse_inputs("Shape", "ShapeTensor", "AxesTensor", "AxesTensorList")
    _give_reshaped(step, _find_static(step))


@writes("transpose", "transpose2")
def _write_transpose(step: Step) -> Ref:
    x, perm = step.ref(), list(step.attr("axis"))
    if x.dynamic:
        if perm[0] != 0:
            step.refuse("it moves the dim of the samples")
        perm = [dim - 1 for dim in perm[1:]]
    out = x.transpose(perm)
    return x.unary("NoOp") if out is x else out


def concat(step: Step, parts: Sequence[Ref], dim: int) -> Ref:
    """Return values joined along a static dim."""
    first = parts[0]
    shape = [*first.shape[:dim], sum(one.shape[dim] for one in parts), *first.shape[dim + 1 :]]
    return step.graph.add("Splice", list(parts), {"axis": static_axis(dim, first.rank)}, shape=shape)


@writes("concat")
def _write_concat(step: Step) -> Ref:
    step.refuse_inputs("AxisTensor")
    parts = step.refs("X")
    if len({one.dynamic for one in parts}) > 1:
        step.refuse("some of its inputs have samples, and others not")
    return concat(step, parts, step.static_dim(step.attr("axis"), parts[0]))


@writes("stack")
def _write_stack(step: Step) -> Ref:
    parts = step.refs("X")
    count = parts[0].rank + parts[0].dynamic
    dim = step.attr("axis") % (count + 1) - parts[0].dynamic
    if dim < 0:
        step.refuse("it stacks before the samples")
    wide = [one.reshape([*one.shape[:dim], 1, *one.shape[dim:]]) for one in parts]
    return concat(step, wide, dim)


@writes("split")
def _write_split(step: Step) -> None:
    step.refuse_inputs("AxisTensor", "SectionsTensorList")
    x = step.ref()
    dim, at = step.static_dim(step.attr("axis"), x), 0
    for index in range(len(step.op.output("Out"))):
        size = step.out("Out", index).shape[dim + x.dynamic]
        if size < 1:
            step.refuse(f"the size of a part is {size}")
        step.give("Out", x.slice(dim, at, at + size), index)
        at += size


@writes("unstack", "unbind")
def _write_unstack(step: Step) -> None:
    x, slot = step.ref(), "Y" if step.op.type == "unstack" else "Out"
    dim = step.static_dim(step.attr("axis"), x)
    shape = [size for at, size in enumerate(x.shape) if at != dim]
    for index in range(len(step.op.output(slot))):
        step.give(slot, x.slice(dim, index, index + 1).reshape(shape), index)


@writes("slice", "strided_slice")
def _write_slice(step: Step) -> Ref:
    step.refuse_inputs("StartsTensor", "EndsTensor", "StartsTensorList", "EndsTensorList", "StridesTensor")
    x = step.ref("Input")
    strides = step.attr("strides", None) or [1] * len(step.attr("axes"))
    for axis, begin, end, stride in zip(
        step.attr("axes"), step.attr("starts"), step.attr("ends"), strides, strict=True
    ):
        dim = step.static_dim(axis, x)
        if stride < 1:
            step.refuse("it runs backwards")
        start, stop, _ = slice(begin, end).indices(x.shape[dim])
        x = x.slice(dim, start, stop, stride)
    gone = {step.static_dim(axis, step.ref("Input")) for axis in step.attr("decrease_axis", None) or []}
    x = x.reshape([size for dim, size in enumerate(x.shape) if dim not in gone])
    return x.unary("NoOp") if x is step.ref("Input") else x


@writes("pad")
def _write_pad(step: Step) -> Ref:
    x, paddings = step.ref(), list(step.attr("paddings"))
    if x.dynamic:
        if any(paddings[:2]):
            step.refuse("it pads the samples")
        paddings = paddings[2:]
    return pad(step, x, paddings[::2], paddings[1::2], float(step.attr("pad_value")))


@writes("pad2d")
def _write_pad2d(step: Step) -> Ref:
    step.refuse_inputs("Paddings")
    x = step.ref()
    if step.attr("mode") != "constant" or step.attr("data_format") != "NCHW" or not x.dynamic:
        step.refuse(f"its mode is {step.attr('mode')}, or its channels are the last dim")
    top, bottom, left, right = step.attr("paddings")
    return pad(step, x, [0, top, left], [0, bottom, right], float(step.attr("pad_value")))


def pad(step: Step, x: Ref, head: Sequence[int], foot: Sequence[int], value: float) -> Ref:
    """Return a value with more elements before and after each static dim."""
    from paddlelike.formats.cntk.dictionary import SizeT

    attributes = {
        "paddingMode": SizeT(0),
        "paddingConstantValue": value,
        "paddingHead": [SizeT(one) for one in reversed(head)],
        "paddingFoot": [SizeT(one) for one in reversed(foot)],
    }
    shape = [low + size + high for low, size, high in zip(head, x.shape, foot, strict=True)]
    return step.graph.add("Pad", [x], attributes, shape=shape)


@writes("expand")
def _write_expand(step: Step) -> Ref:
    step.refuse_inputs("ExpandTimes", "expand_times_tensor")
    x, counts = step.ref(), list(step.attr("expand_times"))
    if x.dynamic and counts.pop(0) != 1:
        step.refuse("it repeats the samples")
    source = x
    for dim, count in enumerate(counts):
        if count > 1:
            x = concat(step, [x] * count, dim)
    return x.unary("NoOp") if x is source else x
