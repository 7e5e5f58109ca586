"""Operators that cut out of an array from start to end along some axes: slice, strided_slice."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import (
    NO_LOD,
    REQUIRED,
    Array,
    Attrs,
    Gradient,
    Ints,
    OpDef,
    Spec,
    register,
    spares_first,
)
from paddlelike.framework.opdef.registry import LATER, LATEST
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import fill_box, normalize_axis, read_numbers

Box = tuple[slice, ...]  # the part of an array that is cut out, one slice per dim
Shape = tuple[int, ...]
Tensor = Array | None
Tensors = list[Array] | None


class SliceAttrs(Attrs):
    """Attributes of slice."""

    axes: list[int] = Ints(REQUIRED)
    starts: list[int] = Ints([])
    ends: list[int] = Ints([])
    infer_flags: list[int] = Ints([])
    decrease_axis: list[int] = Ints([])

    def bounds(self, dims: Sequence[int], start: Tensor, end: Tensor, starts: Tensors, ends: Tensors) -> Box:
        """Return the slice of each dim of an input; tensors take precedence over attributes."""
        if start is None and end is None and not starts and not ends:
            numbers = self.axes, self.starts, self.ends, self.decrease_axis
            return _find_fixed_bounds(tuple(dims), *map(tuple, numbers))
        ones = [1] * len(self.axes)
        first, last = read_numbers(self.starts, start, starts), read_numbers(self.ends, end, ends)
        return _find_bounds("slice", dims, self.axes, first, last, ones, self.decrease_axis)


class StridedSliceAttrs(SliceAttrs):
    """Attributes of strided_slice."""

    strides: list[int] = Ints([])

    def strided_bounds(
        self,
        dims: Sequence[int],
        start: Tensor,
        end: Tensor,
        stride: Tensor,
        starts: Tensors,
        ends: Tensors,
        strides: Tensors,
    ) -> Box:
        """Return the slice of each dim of an input; tensors take precedence over attributes."""
        first, last = read_numbers(self.starts, start, starts), read_numbers(self.ends, end, ends)
        steps = read_numbers(self.strides, stride, strides)
        return _find_bounds("strided_slice", dims, self.axes, first, last, steps, self.decrease_axis)


@functools.lru_cache(maxsize=4096)
def _find_fixed_bounds(dims: Shape, axes: Shape, starts: Shape, ends: Shape, decrease_axis: Shape) -> Box:
    return _find_bounds("slice", dims, axes, starts, ends, [1] * len(axes), decrease_axis)


def _find_bounds(
    op: str,
    dims: Sequence[int],
    axes: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    strides: Sequence[int],
    decrease_axis: Sequence[int],
) -> Box:
    """Return one slice per dim. Raises ShapeError when bounds do not fit, or if they leave nothing of a dim.

    An unknown dim (-1) keeps its whole slice.
    """
    if not len(axes) == len(starts) == len(ends) == len(strides):
        raise ShapeError(
            f"{op}: axes {list(axes)}, starts {list(starts)}, ends {list(ends)} "
            f"and strides {list(strides)} must be of the same length"
        )
    box = [slice(None)] * len(dims)
    for axis, start, end, stride in zip(axes, starts, ends, strides, strict=True):
        normalize_axis(op, axis, len(dims), name="axes")
        if dims[axis] < 0:
            continue
        if stride == 0:
            raise ShapeError(f"{op}: the stride of axis {axis} is 0")
        # x[-1] arrives as slice(-1, 0); with a negative stride, an end of -1 includes the first element
        to_the_end = (stride < 0 and end == -1) or ((start, end) == (-1, 0) and axis in decrease_axis)
        cut = slice(start, None if to_the_end else end, stride)
        reach = range(*cut.indices(dims[axis]))
        if not reach and (dims[axis] or axis in decrease_axis):
            raise ShapeError(
                f"{op}: nothing is left of axis {axis} of {dims[axis]}, "
                f"from {start} to {end} in steps of {stride}"
            )
        if stride < -1 and op == "strided_slice" and reach and follows_fluid("strided_slice_backwards"):
            # Fluid reads forward from the element after the end, then reverses the result.
            last = reach.stop + 1 + (reach.start - reach.stop - 1) // -stride * -stride
            cut = slice(last, reach.stop if reach.stop >= 0 else None, stride)
        box[axis] = cut
    return tuple(box)


def _find_sizes(dims: Sequence[int], box: Sequence[slice]) -> list[int]:
    return [dim if dim < 0 else len(range(*cut.indices(dim))) for dim, cut in zip(dims, box, strict=True)]


def _drop_dims(dims: Sequence[int], decrease_axis: Sequence[int]) -> tuple[int, ...]:
    """Return the dims without the dims in ``decrease_axis``; (1,) when no dim is left."""
    rest = tuple(dim for axis, dim in enumerate(dims) if axis not in decrease_axis)
    return rest or (1,)


def _infer_sizes(
    dims: Sequence[int], box: Sequence[slice], axes: Sequence[int], flags: Sequence[int]
) -> list[int]:
    """Return the dims of the box; -1 along axes whose bounds are known at run time only (flag -1)."""
    sizes = _find_sizes(dims, box)
    for axis, flag in zip(axes, flags, strict=False):
        if flag == -1:
            sizes[axis] = -1
    return sizes


def _cut(x: Array, box: tuple[slice, ...], decrease_axis: Sequence[int]) -> Array:
    out = x[box]
    return out.reshape(_drop_dims(out.shape, decrease_axis)) if decrease_axis else out


@register
class Slice(OpDef):
    """``Out = Input[..., start:end, ...]`` along ``axes``; without the dims ``decrease_axis``."""

    type = "slice"
    by_row = spares_first("axes")
    inputs = ("Input", "StartsTensor?", "EndsTensor?", "StartsTensorList*?", "EndsTensorList*?")
    attrs = SliceAttrs.table()
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
        traceable=False,
    )

    @staticmethod
    def infer(
        x: Spec,
        start: Spec | None,
        end: Spec | None,
        start_list: list[Spec] | None,
        end_list: list[Spec] | None,
        *,
        attrs: SliceAttrs,
    ) -> Spec:
        dims, axes, starts, ends = list(x.shape), attrs.axes, attrs.starts, attrs.ends
        if start is not None or end is not None or start_list or end_list:
            known_at_build = [a for a, flag in zip(axes, attrs.infer_flags, strict=False) if flag != -1]
            for axis in set(axes) - set(known_at_build if starts and ends else []):
                dims[axis] = -1
            starts, ends = starts or [0] * len(axes), ends or [0] * len(axes)
        box = _find_bounds("slice", dims, axes, starts, ends, [1] * len(axes), attrs.decrease_axis)
        shape = _drop_dims(_infer_sizes(dims, box, axes, attrs.infer_flags), attrs.decrease_axis)
        return Spec(shape, x.dtype, NO_LOD if axes and axes[0] == 0 else None)

    @staticmethod
    def forward(
        x: Array, start: Tensor, end: Tensor, starts: Tensors, ends: Tensors, *, attrs: SliceAttrs
    ) -> Array:
        return _cut(x, attrs.bounds(x.shape, start, end, starts, ends), attrs.decrease_axis)

    @staticmethod
    def backward(
        d_out: Array,
        x: Array,
        start: Tensor,
        end: Tensor,
        starts: Tensors,
        ends: Tensors,
        *,
        attrs: SliceAttrs,
    ) -> Array:
        return fill_box(d_out, x, attrs.bounds(x.shape, start, end, starts, ends))


@register
class StridedSlice(OpDef):
    """``Out = Input[..., start:end:stride, ...]`` along ``axes``; strides may be negative."""

    type = "strided_slice"
    by_row = spares_first("axes")
    inputs = (
        "Input",
        "StartsTensor?",
        "EndsTensor?",
        "StridesTensor?",
        "StartsTensorList*?",
        "EndsTensorList*?",
        "StridesTensorList*?",
    )
    fluid_order = "axes starts ends strides infer_flags decrease_axis"
    attrs = StridedSliceAttrs.table()
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
        traceable=False,
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
        attrs: StridedSliceAttrs,
    ) -> Spec:
        if start is not None or end is not None or stride is not None:
            return Spec(_drop_dims([-1] * len(x.shape), attrs.decrease_axis), x.dtype)
        dims = list(x.shape)
        for axis, flag in zip(attrs.axes, attrs.infer_flags, strict=False):
            dims[axis] = -1 if flag == -1 else dims[axis]
        box = attrs.strided_bounds(dims, *[None] * 6)
        return Spec(_drop_dims(_find_sizes(dims, box), attrs.decrease_axis), x.dtype)

    @staticmethod
    def forward(
        x: Array,
        start: Tensor,
        end: Tensor,
        stride: Tensor,
        starts: Tensors,
        ends: Tensors,
        strides: Tensors,
        *,
        attrs: StridedSliceAttrs,
    ) -> Array:
        box = attrs.strided_bounds(x.shape, start, end, stride, starts, ends, strides)
        return _cut(x, box, attrs.decrease_axis)

    @staticmethod
    def backward(
        d_out: Array,
        x: Array,
        start: Tensor,
        end: Tensor,
        stride: Tensor,
        starts: Tensors,
        ends: Tensors,
        strides: Tensors,
        *,
        attrs: StridedSliceAttrs,
    ) -> Array:
        return fill_box(d_out, x, attrs.strided_bounds(x.shape, start, end, stride, starts, ends, strides))


_TENSORS: Final = (
    "Input StartsTensor? EndsTensor? StridesTensor? StartsTensorList*? EndsTensorList*? StridesTensorList*?"
)


def _register_strided(mark: str, is_whole: Callable[[int, int], bool]) -> None:
    """Register a form of strided_slice.

    The operator takes X from start to end in steps, along some dims; bounds outside of X are moved to its
    ends. ``is_whole(end, dim)`` tells whether a negative stride includes the first element.
    """

    def find_box(x: Array, tensors: Sequence[Any], attrs: StridedSliceAttrs) -> Box:
        numbers = zip((attrs.starts, attrs.ends, attrs.strides), tensors[:3], tensors[3:], strict=True)
        box = [slice(None)] * x.ndim
        for axis, begin, stop, step in zip(
            attrs.axes, *(read_numbers(*each) for each in numbers), strict=True
        ):
            dim = x.shape[axis]
            back = stop if step > 0 else None if is_whole(stop, dim) else max(stop, -dim)
            box[axis] = slice(begin, back, step)
        return tuple(box)

    def cut(x: Array, *tensors: Any, attrs: StridedSliceAttrs) -> Array:
        return _cut(x, find_box(x, tensors, attrs), attrs.decrease_axis)

    def fill(d_out: Array, x: Array, *tensors: Any, attrs: StridedSliceAttrs) -> Array:
        return fill_box(d_out, x, find_box(x, tensors, attrs))

    table = StridedSliceAttrs.table()
    register_kernel("strided_slice", _TENSORS + " -> Out", table, changed=True, mark=mark, views=True)(cut)
    register_kernel(
        "strided_slice_grad",
        f"Out@GRAD {_TENSORS} -> Input@GRAD",
        table,
        changed=True,
        mark=mark,
        traceable=False,
    )(fill)


_register_strided(LATER, lambda stop, dim: stop == -1)
_register_strided(LATEST, lambda stop, dim: stop < -dim)
