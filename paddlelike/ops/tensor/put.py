"""Arrays with elements replaced or added by index: index_put, put_along_axis, set_value."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core import AttrType, VarType, numpy_dtype
from paddlelike.framework.opdef import Array, Attr, Attrs, Bool, Int, Ints, Long, Longs, String
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import read_numbers


@register_kernel("index_put", "x indices* value -> out", {"accumulate": Bool(False)})
def _index_put(x: Array, indices: list[Array], value: Array, *, accumulate: bool) -> Array:
    """Return X with ``value`` written or added at the indexes, one array for each of the first dims."""
    out = x.copy()
    if accumulate:
        np.add.at(out, tuple(indices), value)
    else:
        out[tuple(indices)] = value
    return out


@register_kernel("fill_diagonal_tensor", "X Y -> Out", {"offset": Long(0), "dim1": Int(0), "dim2": Int(1)})
def _fill_diagonal(x: Array, y: Array, *, offset: int, dim1: int, dim2: int) -> Array:
    """X with Y on the diagonal of two dims; the last dim of Y runs along it."""
    out = x.copy()
    diagonal = np.diagonal(out, offset, dim1, dim2)
    diagonal.setflags(write=True)
    diagonal[...] = y
    return out


class PutAttrs(Attrs):
    """Attributes of put_along_axis."""

    Axis: int = Int(0)
    Reduce: str = String("assign")
    Include_self: bool = Bool(True)


_UPDATES: Any = {
    **dict.fromkeys(("add", "sum", "mean"), np.add),
    **dict.fromkeys(("mul", "multiply"), np.multiply),
    "amax": np.maximum,
    "amin": np.minimum,
}


@register_kernel("put_along_axis", "Input Index Value -> Result", PutAttrs.table())
def _put_along_axis(x: Array, index: Array, value: Array, *, attrs: PutAttrs) -> Array:
    """Input with values written at the given indexes, or reduced with the current elements."""
    out = x.copy()
    if attrs.Reduce == "assign":
        np.put_along_axis(out, index, value, attrs.Axis)
        return out
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[attrs.Axis] = index
    places, counts = tuple(grid), np.ones(x.shape, np.int64)
    if not attrs.Include_self:
        out[places] = _find_neutral(attrs.Reduce, x.dtype)
        counts[places] = 0
    _UPDATES[attrs.Reduce].at(out, places, value)
    if attrs.Reduce == "mean":
        np.add.at(counts, places, 1)
        out = (out // counts if x.dtype.kind in "iu" else out / counts).astype(x.dtype)
    return out


def _find_neutral(reduce: str, dtype: np.dtype[Any]) -> Any:
    """Return the neutral element of a reduction."""
    if reduce in ("amax", "amin"):
        limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
        return limits.min if reduce == "amax" else limits.max
    return 1 if reduce in ("mul", "multiply") else 0


@register_kernel("index_add", "X Index AddValue -> Out", {"axis": Int(0)})
def _index_add(x: Array, index: Array, value: Array, *, axis: int) -> Array:
    """X with slices added at an index."""
    out = x.copy()
    np.add.at(np.moveaxis(out, axis, 0), index, np.moveaxis(value, axis, 0))
    return out


class SetValueAttrs(Attrs):
    """Attributes of set_value; before 2.5 the values are in a list of their own dtype."""

    axes: list[int] = Longs([])
    starts: list[int] = Longs([])
    ends: list[int] = Longs([])
    steps: list[int] = Longs([])
    decrease_axes: list[int] = Longs([])
    none_axes: list[int] = Longs([])
    shape: list[int] = Longs([])
    dtype: int = Int(5)
    values: list[Any] = Attr(AttrType.SCALARS, ())  # type: ignore[assignment]
    bool_values: list[int] = Ints([])
    fp32_values: list[float] = Attr(AttrType.FLOATS, [])  # type: ignore[assignment]
    fp64_values: list[float] = Attr(AttrType.FLOAT64S, [])  # type: ignore[assignment]
    int32_values: list[int] = Ints([])
    int64_values: list[int] = Longs([])

    def make_value(self) -> Array:
        """Return the value to write."""
        numbers: Any = [_read_scalar(scalar) for scalar in self.values]
        numbers = numbers or next(
            (
                given
                for kind in ("bool", "fp32", "fp64", "int32", "int64")
                if (given := getattr(self, f"{kind}_values"))
            ),
            [],
        )
        return np.array(numbers, numpy_dtype(VarType(self.dtype))).reshape(self.shape)


def _read_scalar(message: Any) -> object:
    """Return the number in a Scalar message."""
    field = {1: "b", 2: "i", 3: "r"}.get(message.type)
    return complex(message.c.r, message.c.i) if field is None else getattr(message, field)


@register_kernel(
    "set_value",
    "Input ValueTensor? StartsTensorList*? EndsTensorList*? StepsTensorList*? -> Out",
    SetValueAttrs.table(),
)
def _set_value(
    x: Array, tensor: Array | None, starts: Any, ends: Any, steps: Any, *, attrs: SetValueAttrs
) -> Array:
    """Input with a value written into a part of it."""
    out = x.copy()
    box = [slice(None)] * x.ndim
    first, last = read_numbers(attrs.starts, None, starts), read_numbers(attrs.ends, None, ends)
    for axis, start, end, step in zip(
        attrs.axes, first, last, read_numbers(attrs.steps, None, steps), strict=True
    ):
        box[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    index: list[Any] = [box[a].start if a in attrs.decrease_axes else box[a] for a in range(x.ndim)]
    for axis in attrs.none_axes:
        index.insert(axis, None)
    value = attrs.make_value() if tensor is None else tensor
    part = out[tuple(index)]
    out[tuple(index)] = value if np.ndim(part) else value.reshape(())  # one element, given as [1]
    return out
