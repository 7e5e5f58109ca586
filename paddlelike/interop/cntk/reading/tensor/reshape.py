"""Operations that join, cut, transpose and reshape values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import FormatError
from paddlelike.formats.cntk.dictionary import Shape
from paddlelike.framework import Variable
from paddlelike.interop.cntk.reading.step import ALL_STATIC, DYNAMIC, Step, Value, reads
from paddlelike.ops.reduction.reduce import REDUCTIONS


@reads("Reshape")
def _read_reshape(step: Step) -> Value:
    """Reshape the dims between two axes, both counted from the last dim."""
    value = step.value()
    (begin,), (end,) = step.axes("beginAxis"), step.axes("endAxis")
    stop = value.rank - _count_axes(step, begin.static_index, value.rank)
    start = value.rank - _count_axes(step, end.static_index, value.rank)
    if not 0 <= start <= stop <= value.rank:
        raise FormatError(
            f"{step.node.uid} (Reshape): its input of {value.rank} dims has no dims {start} to {stop}"
        )
    new = [-1 if dim >= 2**63 else int(dim) for dim in step.attr("newShape", Shape)]
    old = value.shape[start:stop]
    if -1 in new and -1 not in old:
        new[new.index(-1)] = math.prod(old) // max(1, -math.prod(new))
    shape = [*value.shape[:start], *new, *value.shape[stop:]]
    return step.give(step.reshape(value, shape), rank=len(shape))


def _count_axes(step: Step, index: int, rank: int) -> int:
    """Return the number of axes after an axis."""
    if index == DYNAMIC - 3:  # the mark for the end of the static axes
        return rank
    if index > DYNAMIC - 16:
        step.refuse("its axes are not static")
    return index if index >= 0 else rank + index


@reads("TransposeAxes")
def _read_transpose(step: Step) -> Value:
    value, rank = step.value(), step.value().rank
    if "axisVec" in step.node.attributes:
        order = [step.static_dim(axis, rank) for axis in step.axes("axisVec")][::-1]
    else:
        order = list(range(rank))
        one, other = (step.static_dim(step.axes(name)[0], rank) for name in ("axis1", "axis2"))
        order[one], order[other] = other, one
    if sorted(order) != list(range(rank)):
        raise FormatError(f"{step.node.uid} (TransposeAxes): {order} is not an order of {rank} dims")
    lead = int(value.dynamic)
    perm = [*range(lead), *(dim + lead for dim in order)]
    return step.give(step.transpose(value.variable, perm))


@reads("Slice")
def _read_slice(step: Step) -> Value:
    value = step.value()
    axes = step.axes("axisVec", "axis")
    begins, ends, strides = (_list_numbers(step, name) for name in ("beginIndex", "endIndex", "sliceStrides"))
    variable = value.variable
    for axis, begin, end, stride in zip(axes, begins, ends, strides, strict=True):
        dim = step.static_dim(axis, value.rank)
        last = 2**31 - 1 if end == 0 else end
        attrs = {"axes": [dim + value.dynamic], "starts": [begin], "ends": [last]}
        if stride == 1:
            variable = step.emit("slice", {"Input": variable}, attrs | {"decrease_axis": []})
        else:
            if stride < 0:
                step.refuse("it runs backwards")
            variable = step.emit("strided_slice", {"Input": variable}, attrs | {"strides": [stride]})
    return step.give(variable)


def _list_numbers(step: Step, name: str) -> list[int]:
    several = step.node.attributes.get(f"{name}Vec")
    return [int(one) for one in several] if isinstance(several, list) else [step.attr(name, int, 1)]


@reads("Crop")
def _read_crop(step: Step) -> Value:
    """Crop an image to the size of another one; the offsets count columns, then rows."""
    value, like = step.value(), step.value(1)
    offsets = step.attr("offset", list)
    if len(step.values) != 2 or len(offsets) != 2 or min(value.rank, like.rank) < 2:
        step.refuse("its offsets are computed from other operations")
    starts = [int(offset) for offset in reversed(offsets)]
    attrs = {
        "axes": [dim + value.dynamic for dim in (value.rank - 2, value.rank - 1)],
        "starts": starts,
        "ends": [start + size for start, size in zip(starts, like.shape[-2:], strict=True)],
        "decrease_axis": [],
    }
    return step.give(step.emit("slice", {"Input": value.variable}, attrs))


@reads("Splice")
def _read_splice(step: Step) -> Value:
    (axis,) = step.axes("axis")
    rank = max(value.rank for value in step.values)
    lead = next((value for value in step.values if value.dynamic), step.value())
    if any(value.dynamic != lead.dynamic for value in step.values):
        step.refuse("some of its inputs have samples, and others not")
    if axis.static_index == rank:  # a new dim before the others
        rank += 1
    dim = step.static_dim(axis, rank)
    parts = [step.widen(value, rank, dynamic=value.dynamic) for value in step.values]
    out = step.emit("concat", {"X": parts}, {"axis": dim + lead.dynamic})
    return step.give(out, lead, rank)


@reads("Squeeze")
def _read_squeeze(step: Step) -> Value:
    value = step.value()
    if {"axis", "axisVec"} & step.node.attributes.keys():
        gone = {step.static_dim(axis, value.rank) for axis in step.axes("axisVec", "axis")}
    else:
        gone = {dim for dim, size in enumerate(value.shape) if size == 1}
    shape = [size for dim, size in enumerate(value.shape) if dim not in gone]
    return step.give(step.reshape(value, shape), rank=len(shape))


@reads("Pad")
def _read_pad(step: Step) -> Value:
    value = step.value()
    head, foot = (step.attr(name, list)[::-1] for name in ("paddingHead", "paddingFoot"))
    mode = step.attr("paddingMode", int)
    if mode != 0:
        return step.give(
            _mirror(step, value, [*zip(head, foot, strict=True)], "reflect" if mode == 1 else "symmetric")
        )
    pairs = [int(one) for pair in zip(head, foot, strict=True) for one in pair]
    fill = step.attr("paddingConstantValue", float)
    out = step.unary("pad", value.variable, paddings=[0, 0] * value.dynamic + pairs, pad_value=fill)
    return step.give(out)


def _mirror(
    step: Step, value: Value, pads: Sequence[tuple[int, int]], mode: Literal["reflect", "symmetric"]
) -> Variable:
    """Return a value padded by reflection, with or without repeating the outermost elements."""
    out = value.variable
    for dim, (size, (low, high)) in enumerate(zip(value.shape, pads, strict=True)):
        if not 0 <= max(low, high) <= size - (mode == "reflect") or min(low, high) < 0:
            step.refuse(f"it pads a dim of {size} by {low} and {high}")
        places = np.pad(np.arange(size), (low, high), mode)
        attrs = {"shape": [len(places)], "dtype": int(VarType.INT64), "int64_values": places.tolist()}
        index = step.emit("assign_value", {}, attrs, dtype="int64")
        out = step.emit("index_select", {"X": out, "Index": index}, {"dim": dim + value.dynamic})
    return out


_REDUCED = {row.cntk for row in REDUCTIONS.values() if row.cntk}
_NEUTRAL = (("Sum", 0.0), ("Max", -math.inf))  # reductions that a padding does not change
_POOLED = {"Max": "MAX", "Mean": "AVERAGE", "Sum": "SUM"}


@reads("ReduceElements")
def _read_reduce(step: Step) -> Value:
    value, kind = step.value(), step.attr("reductionOpName", str)
    keep = bool(step.attr("reductionKeepDimensions", bool, True))
    axes = step.axes("axisVec", "axis")
    if any(axis.static_index == DYNAMIC - 4 for axis in axes):
        return reduce_everything(step, value, kind)
    if any(axis.static_index == DYNAMIC for axis in axes):
        return _reduce_dynamic(step, value, kind, ordered=axes[0].ordered)
    if value.padding is not None:
        over_steps = len(axes) == 1 and axes[0].static_index in (value.rank, -1) and not keep
        if over_steps and (kind, value.padding) in _NEUTRAL:
            return _reduce_dynamic(step, value._replace(padding=None), kind, ordered=True)
        value = Value(step.pad_steps(value)[0], dynamic=True, sequence=False, rank=value.rank + 1)
    everything = any(axis.static_index == ALL_STATIC for axis in axes)
    dims = list(range(value.rank)) if everything else [step.static_dim(axis, value.rank) for axis in axes]
    left = [1 if dim in dims else size for dim, size in enumerate(value.shape) if keep or dim not in dims]
    if not dims:
        return value
    out = _reduce(step, value, kind, [dim + value.dynamic for dim in dims])
    made = value._replace(variable=out)
    return step.give(step.reshape(made, left), value, len(left))


def _reduce(step: Step, value: Value, kind: str, dims: list[int]) -> Variable:
    x = value.variable
    if kind in _REDUCED:
        return step.reduce(kind, x, *dims)
    if kind == "LogSum":
        return step.log_sum(x, dims)
    if kind in ("Argmax", "Argmin"):
        if len(dims) > 1:
            x, dims = step.reshape(value, [-1]), [int(value.dynamic)]
        type_ = "arg_max" if kind == "Argmax" else "arg_min"
        attrs = {"axis": dims[0], "keepdims": True, "dtype": -1}
        return step.cast(step.emit(type_, {"X": x}, attrs, dtype="int64"), value.variable.dtype)
    return step.refuse(f"it reduces by {kind}")


def reduce_everything(step: Step, value: Value, kind: str) -> Value:
    """Return a reduction over all samples and dims, a value without dims."""
    if kind not in ("Sum", "Mean", "Max", "Min"):
        step.refuse(f"it reduces all axes by {kind}")
    out = step.reduce(kind, value.variable, keep=False)
    return Value(out, dynamic=False, sequence=False, rank=0)


def _reduce_dynamic(step: Step, value: Value, kind: str, *, ordered: bool) -> Value:
    """Return a reduction over the samples, or over the steps of each sequence."""
    if not value.dynamic or ordered != value.sequence:
        step.refuse("it reduces the samples of sequences" if value.sequence else "its input has no such axis")
    if ordered:
        if kind not in _POOLED:
            step.refuse(f"it reduces sequences by {kind}")
        out = step.pool_sequence(value.variable, _POOLED[kind])
        return value._replace(variable=out, sequence=False)
    if kind not in _REDUCED:
        step.refuse(f"it reduces the samples by {kind}")
    out = step.reduce(kind, value.variable, 0, keep=False)
    return value._replace(variable=out, dynamic=False)


@reads("SumAll")
def _read_sum_all(step: Step) -> Value:
    return reduce_everything(step, step.value(), "Sum")
