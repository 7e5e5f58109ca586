"""Shapes, copies and padding of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Step, Value, converts
from paddlelike.ops.kernels.nn.image.windows import is_channels_last

_END: Final = np.iinfo(np.int64).max


@converts("concat")
def _convert_concat(step: Step) -> Value:
    step.refuse_inputs("AxisTensor")
    return step.concat(*step.inputs("X"), axis=step.attr("axis"))


@converts("stack")
def _convert_stack(step: Step) -> Value:
    axis = step.attr("axis") % (step.rank() + 1)
    parts = [x.unsqueeze(axis) for x in step.inputs("X")]
    return step.concat(*parts, axis=axis)


@converts("unstack", "unbind")
def _convert_unstack(step: Step) -> None:
    slot = "Y" if step.op.type == "unstack" else "Out"
    axis, count = step.attr("axis"), len(step.op.output(slot))
    for index, part in enumerate(_split(step, [1] * count, axis)):
        step.give(slot, part.squeeze(axis), index)


@converts("split")
def _convert_split(step: Step) -> None:
    step.refuse_inputs("AxisTensor", "SectionsTensorList")
    axis, count = step.attr("axis"), len(step.op.output("Out"))
    size, sections = step.shape()[axis], list(step.attr("sections") or [])
    if step.attr("num"):
        sections = [size // count] * count
    elif -1 in sections:
        sections[sections.index(-1)] = size - sum(part for part in sections if part >= 0)
    if size < 0 and (step.attr("num") or -1 in step.attr("sections")):
        step.refuse(f"dim {axis} of X of shape {step.shape()} is not known")
    for index, part in enumerate(_split(step, sections, axis)):
        step.give("Out", part, index)


def _split(step: Step, sizes: list[int], axis: int) -> list[Value]:
    return step.add_several("Split", step.input(), step.ints(*sizes), count=len(sizes), axis=axis)


@converts("reshape", "reshape2")
def _convert_reshape(step: Step) -> Value:
    return step.input().reshape(step.numbers("shape", "Shape", "ShapeTensor"))


@converts("squeeze", "squeeze2")
def _convert_squeeze(step: Step) -> Value:
    """Squeeze dims; Paddle 2.x keeps dims in ``axes`` that are not 1."""
    shape = step.shape()
    axes = [axis % len(shape) for axis in step.attr("axes") or []]
    ones = [axis for axis in axes if shape[axis] in (1, -1)] if step.graph.later else axes
    if axes:
        return step.input().squeeze(*ones)
    return step.add("Squeeze", step.input())


@converts("unsqueeze", "unsqueeze2")
def _convert_unsqueeze(step: Step) -> Value:
    """Insert dims; Paddle inserts them one by one, ONNX all at once."""
    step.refuse_inputs("AxesTensor", "AxesTensorList")
    dims = [False] * step.rank()
    for axis in step.attr("axes"):
        dims.insert(axis % (len(dims) + 1), True)
    return step.input().unsqueeze(*(axis for axis, new in enumerate(dims) if new))


@converts("flatten", "flatten2")
def _convert_flatten(step: Step) -> Value:
    return step.add("Flatten", step.input(), axis=step.attr("axis"))


@converts("flatten_contiguous_range")
def _convert_flatten_range(step: Step) -> Value:
    rank, x = step.rank(), step.input()
    if not rank:
        return x.reshape(1)
    start, stop = step.attr("start_axis") % rank, step.attr("stop_axis") % rank + 1
    dims = step.ints(*[0] * start, -1)
    if stop < rank:
        dims = step.concat(dims, x.dims(stop, rank))
    return x.reshape(dims)


@converts("transpose", "transpose2")
def _convert_transpose(step: Step) -> Value:
    return step.add("Transpose", step.input(), perm=step.attr("axis"))


@converts("slice", "strided_slice")
def _convert_slice(step: Step) -> Value:
    """Slice a tensor; ``x[-1]`` is a slice from -1 to 0."""
    axes, gone = step.attr("axes"), list(step.attr("decrease_axis") or [])
    starts = step.numbers("starts", "StartsTensor", "StartsTensorList")
    if step.has("EndsTensor") or step.has("EndsTensorList"):
        ends = step.numbers("ends", "EndsTensor", "EndsTensorList")
    else:
        ends = step.ints(*_find_ends(step, axes, gone))
    more = []
    if step.op.type == "strided_slice":
        more = [step.numbers("strides", "StridesTensor", "StridesTensorList")]
    out = step.add("Slice", step.input("Input"), starts, ends, step.ints(*axes), *more)
    return out.reshape(1) if len(gone) == step.rank("Input") and not step.graph.later else out.squeeze(*gone)


def _find_ends(step: Step, axes: list[int], gone: list[int]) -> list[int]:
    """Return the ends of a slice. With a negative step, an end of -1 includes element 0; a lower end stops at
    element 1 in Paddle 2.
    """
    starts, ends = step.attr("starts") or [0] * len(axes), list(step.attr("ends"))
    strides = (
        (step.attr("strides") or [1] * len(axes)) if step.op.type == "strided_slice" else [1] * len(axes)
    )
    shape = step.shape("Input")
    for index, (axis, start, stride) in enumerate(zip(axes, starts, strides, strict=True)):
        if (start, ends[index]) == (-1, 0) and axis in gone:
            ends[index] = _END
        elif stride < 0 and ends[index] == -1:
            ends[index] = -_END
        elif step.graph.later and stride < 0 and ends[index] < -shape[axis] <= 0:
            ends[index] = 0
    return ends


@converts("expand")
def _convert_expand(step: Step) -> Value:
    times = step.numbers("expand_times", "ExpandTimes", "expand_times_tensor")
    return step.add("Tile", step.input(), times)


@converts("expand_as")
def _convert_expand_as(step: Step) -> Value:
    x, target = step.input(), step.input("target_tensor")
    times = target.dims() / x.dims()
    return step.add("Tile", x, times)


@converts("expand_v2")
def _convert_expand_v2(step: Step) -> Value:
    """Expand a tensor; -1 keeps a dim, which ONNX writes as 1."""
    if step.has("Shape") or step.has("expand_shapes_tensor"):
        dims = step.numbers("shape", "Shape", "expand_shapes_tensor")
        dims = dims.maximum(1)
    else:
        dims = step.ints(*(max(dim, 1) for dim in step.attr("shape")))
    return step.input().expand(dims)


@converts("expand_as_v2")
def _convert_expand_as_v2(step: Step) -> Value:
    if step.has("Y"):
        dims = step.input("Y").dims()
    else:
        dims = step.ints(*(max(dim, 1) for dim in step.attr("target_shape")))
    return step.input().expand(dims)


@converts("tile")
def _convert_tile(step: Step) -> Value:
    step.refuse_inputs("RepeatTimes", "repeat_times_tensor")
    times, rank = list(step.attr("repeat_times")), step.rank()
    x = step.input().unsqueeze(*range(len(times) - rank))
    times = [1] * (rank - len(times)) + times
    return step.add("Tile", x, step.ints(*times))


@converts("flip", "reverse")
def _convert_flip(step: Step) -> Value:
    name = "dims" if step.op.type == "flip" and not step.graph.later else "axis"
    axes = step.attr(name)
    bounds = [step.ints(*[number] * len(axes)) for number in (-1, -_END)]
    return step.add("Slice", step.input(), *bounds, step.ints(*axes), step.ints(*[-1] * len(axes)))


@converts("roll")
def _convert_roll(step: Step) -> Value:
    """Roll elements along dims; without dims, over the flattened array."""
    step.refuse_inputs("ShiftsTensor")
    axes, shifts = step.attr("axis" if step.graph.later else "dims", []), step.attr("shifts")
    x = step.input() if axes else step.input().reshape(-1)
    for axis, shift in zip(axes or [0], shifts, strict=True):
        size = step.shape()[axis] if axes else int(np.prod(step.shape()))
        by = shift % size if size > 0 else shift
        if by:
            tail = step.add("Slice", x, step.ints(-by), step.ints(_END), step.ints(axis))
            head = step.add("Slice", x, step.ints(0), step.ints(-by), step.ints(axis))
            x = step.concat(tail, head, axis=axis)
    return x if axes else x.reshape(step.input().dims())


@converts("meshgrid")
def _convert_meshgrid(step: Step) -> None:
    rows = [x.reshape(-1) for x in step.inputs("X")]
    sizes = step.concat(*(row.dims() for row in rows))
    for index, row in enumerate(rows):
        dims = [1] * len(rows)
        dims[index] = -1
        step.give("Out", row.reshape(*dims).expand(sizes), index)


@converts("shape")
def _convert_shape(step: Step) -> Value:
    return step.input("Input").dims().cast("int32")


@converts("assign")
def _convert_assign(step: Step) -> Value:
    return step.input()


@converts("pad")
def _convert_pad(step: Step) -> Value:
    paddings = step.attr("paddings")
    pads = step.ints(*paddings[::2], *paddings[1::2])
    return step.add("Pad", step.input(), pads, step.like(step.attr("pad_value")))


_MOST: Final = (1 << 63) - 1  # ONNX's mark for the end of a dim
_PAD_MODES: Final = {"constant": "constant", "reflect": "reflect", "edge": "edge", "replicate": "edge"}


@converts("pad2d", "pad3d")
def _convert_pad_image(step: Step) -> Value:
    """Pad images. The paddings of pad2d are top, bottom, left, right; the paddings of pad3d begin with
    the last dim.
    """
    step.refuse_inputs("Paddings")
    circular = step.attr("mode") == "circular"
    if step.attr("mode") not in _PAD_MODES and not circular:
        step.refuse(f"mode is {step.attr('mode')!r}")
    given = step.attr("paddings")
    if min(given, default=0) < 0 and step.attr("mode") != "constant":
        step.refuse(f"paddings are {list(given)}")
    pairs = [tuple(given[i : i + 2]) for i in range(0, len(given), 2)]
    pairs = pairs if step.op.type == "pad2d" else pairs[::-1]
    last = is_channels_last(step.attr("data_format"))
    pairs = [(0, 0), *pairs, (0, 0)] if last else [(0, 0), (0, 0), *pairs]
    if circular:
        return _go_round(step, pairs)
    pads = step.ints(*(before for before, _ in pairs), *(after for _, after in pairs))
    value = step.attr("pad_value" if step.op.type == "pad2d" else "value", 0.0)
    return step.add("Pad", step.input(), pads, step.like(value), mode=_PAD_MODES[step.attr("mode")])


def _go_round(step: Step, pairs: Sequence[tuple[int, ...]]) -> Value:
    """Return X with circular padding: its last elements before each dim, its first elements after it."""
    out = step.input()
    for axis, (before, after) in enumerate(pairs):
        ends = [step.add("Slice", out, *map(step.ints, (-before, _MOST, axis)))] if before else []
        starts = [step.add("Slice", out, *map(step.ints, (0, after, axis)))] if after else []
        if ends or starts:
            out = step.concat(*ends, out, *starts, axis=axis)
    return out
