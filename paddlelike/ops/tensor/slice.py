"""Operators that cut out of an array from start to end along some axes: slice, strided_slice."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import REQUIRED, Array, Gradient, Ints, OpDef, Spec, register
from paddlelike.ops.operands import axis_of, filled, numbers

__all__ = ["Slice", "StridedSlice"]


def _bounds(
    op: str,
    dims: Sequence[int],
    axes: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    strides: Sequence[int],
    decrease_axis: Sequence[int],
) -> tuple[slice, ...]:
    """One slice per dim. Raises ShapeError when the numbers do not fit or nothing would be left.

    A dim that is -1 (not known yet) keeps its whole slice.
    """
    if not len(axes) == len(starts) == len(ends) == len(strides):
        raise ShapeError(
            f"{op}: axes {list(axes)}, starts {list(starts)}, ends {list(ends)} "
            f"and strides {list(strides)} must be of the same length"
        )
    box = [slice(None)] * len(dims)
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        axis_of(op, axis, len(dims), name="axes")
        if dims[axis] < 0:
            continue
        if stride == 0:
            raise ShapeError(f"{op}: the stride of axis {axis} is 0")
        to_the_end = (start, end) == (-1, 0) and axis in decrease_axis  # x[-1] as slice(-1, 0)
        cut = slice(start, None if to_the_end else end, stride)
        if not range(*cut.indices(dims[axis])):
            raise ShapeError(
                f"{op}: nothing is left of axis {axis} of {dims[axis]}, "
                f"from {start} to {end} in steps of {stride}"
            )
        box[axis] = cut
    return tuple(box)


def _sizes(dims: Sequence[int], box: Sequence[slice]) -> list[int]:
    return [dim if dim < 0 else len(range(*cut.indices(dim))) for dim, cut in zip(dims, box, strict=True)]


def _decreased(dims: Sequence[int], decrease_axis: Sequence[int]) -> tuple[int, ...]:
    """The dims without those of ``decrease_axis``; (1,) when none is left."""
    rest = tuple(dim for axis, dim in enumerate(dims) if axis not in decrease_axis)
    return rest or (1,)


def _inferred(
    dims: Sequence[int], box: Sequence[slice], axes: Sequence[int], flags: Sequence[int]
) -> list[int]:
    """The dims of the box; -1 along axes whose bounds are known at run time only (flag -1)."""
    sizes = _sizes(dims, box)
    for axis, flag in zip(axes, flags, strict=False):
        if flag == -1:
            sizes[axis] = -1
    return sizes


def _cut(x: Array, box: tuple[slice, ...], decrease_axis: Sequence[int]) -> Array:
    out = x[box]
    return out.reshape(_decreased(out.shape, decrease_axis)) if decrease_axis else out


@register
class Slice(OpDef):
    """``Out = Input[..., start:end, ...]`` along ``axes``; without the dims ``decrease_axis``."""

    type = "slice"
    inputs = ("Input", "StartsTensor?", "EndsTensor?", "StartsTensorList*?", "EndsTensorList*?")
    attrs = {
        "axes": Ints(REQUIRED),
        "starts": Ints([]),
        "ends": Ints([]),
        "infer_flags": Ints([]),
        "decrease_axis": Ints([]),
    }
    lod = "Input"
    views = True
    gradient = Gradient(
        "Out@GRAD",
        "Input",
        "StartsTensor",
        "EndsTensor",
        "StartsTensorList",
        "EndsTensorList",
        outputs=("Input@GRAD",),
    )

    @staticmethod
    def infer(
        x: Spec,
        start: Spec | None,
        end: Spec | None,
        start_list: list[Spec] | None,
        end_list: list[Spec] | None,
        *,
        axes: list[int],
        starts: list[int],
        ends: list[int],
        infer_flags: list[int],
        decrease_axis: list[int],
    ) -> Spec:
        dims = list(x.shape)
        if start is not None or end is not None or start_list or end_list:
            known_at_build = [a for a, flag in zip(axes, infer_flags, strict=False) if flag != -1]
            for axis in set(axes) - set(known_at_build if starts and ends else []):
                dims[axis] = -1
            starts, ends = starts or [0] * len(axes), ends or [0] * len(axes)
        box = _bounds("slice", dims, axes, starts, ends, [1] * len(axes), decrease_axis)
        shape = _decreased(_inferred(dims, box, axes, infer_flags), decrease_axis)
        return Spec(shape, x.dtype, 0 if axes and axes[0] == 0 else None)

    @staticmethod
    def forward(
        x: Array,
        start: Array | None,
        end: Array | None,
        start_list: list[Array] | None,
        end_list: list[Array] | None,
        *,
        axes: list[int],
        starts: list[int],
        ends: list[int],
        decrease_axis: list[int],
    ) -> Array:
        starts, ends = numbers(starts, start, start_list), numbers(ends, end, end_list)
        box = _bounds("slice", x.shape, axes, starts, ends, [1] * len(axes), decrease_axis)
        return _cut(x, box, decrease_axis)

    @staticmethod
    def backward(
        d_out: Array,
        x: Array,
        start: Array | None,
        end: Array | None,
        start_list: list[Array] | None,
        end_list: list[Array] | None,
        *,
        axes: list[int],
        starts: list[int],
        ends: list[int],
        decrease_axis: list[int],
    ) -> Array:
        starts, ends = numbers(starts, start, start_list), numbers(ends, end, end_list)
        box = _bounds("slice", x.shape, axes, starts, ends, [1] * len(axes), decrease_axis)
        return filled(d_out, x, box)


Tensors = list[Array] | None


@register
class StridedSlice(OpDef):
    """``Out = Input[..., start:end:stride, ...]`` along ``axes``; strides may be negative."""

    type = "strided_slice"
    inputs = (
        "Input",
        "StartsTensor?",
        "EndsTensor?",
        "StridesTensor?",
        "StartsTensorList*?",
        "EndsTensorList*?",
        "StridesTensorList*?",
    )
    attrs = {
        "axes": Ints(REQUIRED),
        "starts": Ints([]),
        "ends": Ints([]),
        "strides": Ints([]),
        "infer_flags": Ints([]),
        "decrease_axis": Ints([]),
    }
    lod = "Input"
    views = True
    gradient = Gradient(
        "Out@GRAD",
        "Input",
        "StartsTensor",
        "EndsTensor",
        "StridesTensor",
        "StartsTensorList",
        "EndsTensorList",
        "StridesTensorList",
        outputs=("Input@GRAD",),
    )

    @staticmethod
    def infer(
        x: Spec,
        start: Spec | None,
        end: Spec | None,
        stride: Spec | None,
        start_list: list[Spec] | None,
        end_list: list[Spec] | None,
        stride_list: list[Spec] | None,
        *,
        axes: list[int],
        starts: list[int],
        ends: list[int],
        strides: list[int],
        infer_flags: list[int],
        decrease_axis: list[int],
    ) -> Spec:
        if start is not None or end is not None or stride is not None:
            return Spec(_decreased([-1] * len(x.shape), decrease_axis), x.dtype)
        dims = list(x.shape)
        for axis, flag in zip(axes, infer_flags, strict=False):
            dims[axis] = -1 if flag == -1 else dims[axis]
        box = _bounds("strided_slice", dims, axes, starts, ends, strides, decrease_axis)
        return Spec(_decreased(_sizes(dims, box), decrease_axis), x.dtype)

    @staticmethod
    def forward(
        x: Array,
        start: Array | None,
        end: Array | None,
        stride: Array | None,
        start_list: Tensors,
        end_list: Tensors,
        stride_list: Tensors,
        *,
        axes: list[int],
        starts: list[int],
        ends: list[int],
        strides: list[int],
        decrease_axis: list[int],
    ) -> Array:
        starts, ends = numbers(starts, start, start_list), numbers(ends, end, end_list)
        strides = numbers(strides, stride, stride_list)
        box = _bounds("strided_slice", x.shape, axes, starts, ends, strides, decrease_axis)
        return _cut(x, box, decrease_axis)

    @staticmethod
    def backward(
        d_out: Array,
        x: Array,
        start: Array | None,
        end: Array | None,
        stride: Array | None,
        start_list: Tensors,
        end_list: Tensors,
        stride_list: Tensors,
        *,
        axes: list[int],
        starts: list[int],
        ends: list[int],
        strides: list[int],
        decrease_axis: list[int],
    ) -> Array:
        starts, ends = numbers(starts, start, start_list), numbers(ends, end, end_list)
        strides = numbers(strides, stride, stride_list)
        box = _bounds("strided_slice", x.shape, axes, starts, ends, strides, decrease_axis)
        return filled(d_out, x, box)
