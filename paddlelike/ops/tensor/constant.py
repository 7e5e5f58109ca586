"""Operators that make tensors from constants or given values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import SelectedRows, VarType, convert_dtype, memory, numpy_dtype
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Context,
    Float,
    Floats,
    Int,
    Ints,
    Kernel,
    Longs,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.operands import (
    check_shape_attr,
    infer_batch_size_like,
    infer_sizes,
    read_numbers,
    same_shape,
)

_SMALL: Final = 1024  # elements; a plan keeps constants up to this size


class FillConstantAttrs(Attrs):
    """Attributes of fill_constant."""

    dtype: int = Int(5)
    shape: list[int] = Longs([])
    value: float = Float(0.0)
    str_value: str = String("")


@register
class FillConstant(OpDef):
    """``Out``: every element is ``str_value`` (exact for 64 bits), or ``value`` if it is empty."""

    type = "fill_constant"
    inputs = ("ValueTensor?", "ShapeTensor?", "ShapeTensorList*?")
    attrs = FillConstantAttrs.table(force_cpu=Bool(False))
    fresh = True

    @staticmethod
    def infer(
        value_tensor: Spec | None,
        shape_tensor: Spec | None,
        shape_tensors: list[Spec],
        *,
        attrs: FillConstantAttrs,
    ) -> Spec:
        if attrs.shape or not (shape_tensor or shape_tensors):
            unknown = bool(shape_tensor or shape_tensors)
            sizes = check_shape_attr("fill_constant", attrs.shape, unknown=unknown)
        else:
            sizes = infer_sizes("fill_constant", attrs.shape, shape_tensor, shape_tensors)
        return Spec(sizes, VarType(attrs.dtype))

    @classmethod
    def specialize(cls, keywords: Mapping[str, Any], variables: Sequence[Any]) -> Kernel | None:
        attrs: FillConstantAttrs = keywords["attrs"]
        count = math.prod(attrs.shape) if attrs.shape and min(attrs.shape) > 0 else 0
        if any(v is not None for v in variables[:2]) or not 0 < count <= _SMALL:
            return None
        sizes = tuple(attrs.shape)
        value = _fill_array("fill_constant", sizes, attrs.str_value or attrs.value, attrs.dtype)

        def copy(value_tensor: None, shape_tensor: None, shape_tensors: list[Array]) -> Array:
            if shape_tensors:
                return cls.forward(None, None, shape_tensors, attrs=attrs)
            return value.copy()

        return copy

    @staticmethod
    def forward(
        value_tensor: Array | None,
        shape_tensor: Array | None,
        shape_tensors: list[Array],
        *,
        attrs: FillConstantAttrs,
    ) -> Array:
        sizes = check_shape_attr("fill_constant", read_numbers(attrs.shape, shape_tensor, shape_tensors))
        if value_tensor is None:
            return _fill_array("fill_constant", sizes, attrs.str_value or attrs.value, attrs.dtype)
        if value_tensor.size != 1:
            raise ShapeError(
                f"fill_constant: ValueTensor has shape {value_tensor.shape}, expected one element"
            )
        return np.full(sizes, value_tensor.reshape(())).astype(numpy_dtype(attrs.dtype), copy=False)


class FillLikeAttrs(Attrs):
    """Attributes of fill_constant_batch_size_like."""

    shape: list[int] = Ints()
    input_dim_idx: int = Int(0)
    output_dim_idx: int = Int(0)
    dtype: int = Int(5)
    value: float = Float(0.0)
    str_value: str = String("")


@register
class FillConstantBatchSizeLike(OpDef):
    """``fill_constant`` with one dim taken from Input; with LoD, dim 0 counts its sequences."""

    type = "fill_constant_batch_size_like"
    inputs = ("Input",)
    attrs = FillLikeAttrs.table(force_cpu=Bool(False))
    fresh = True

    @staticmethod
    def infer(x: Spec, *, attrs: FillLikeAttrs) -> Spec:
        sizes = infer_batch_size_like(
            "fill_constant_batch_size_like", x.shape, attrs.shape, attrs.input_dim_idx, attrs.output_dim_idx
        )
        return Spec(sizes, VarType(attrs.dtype))

    @staticmethod
    def forward(ctx: Context, x: Array, *, attrs: FillLikeAttrs) -> Array:
        name = "fill_constant_batch_size_like"
        lod = ctx.lod("Input")
        like = x.shape if not lod else (len(lod[-1]) - 1, *x.shape[1:])
        sizes = infer_batch_size_like(name, like, attrs.shape, attrs.input_dim_idx, attrs.output_dim_idx)
        return _fill_array(name, check_shape_attr(name, sizes), attrs.str_value or attrs.value, attrs.dtype)


@register
class FillZerosLike(OpDef):
    """``Out = 0`` in X's shape and element type."""

    type = "fill_zeros_like"
    by_row = True
    lod = "X"
    fresh = True

    infer = same_shape("X")

    @staticmethod
    def forward(x: Array) -> Array:
        return np.zeros(x.shape, x.dtype)


@register
class FillZerosLike2(OpDef):
    """``Out = 0`` in X's shape."""

    type = "fill_zeros_like2"
    attrs = {"dtype": Int(5)}
    lod = "X"
    fresh = True

    @staticmethod
    def infer(x: Spec, *, dtype: int) -> Spec:
        return Spec(x.shape, VarType(dtype))

    @staticmethod
    def forward(x: Array, *, dtype: int) -> Array:
        return np.zeros(x.shape, numpy_dtype(dtype))


@register
class FillAnyLike(OpDef):
    """``Out = value`` in X's shape; ``dtype`` -1 means X's element type."""

    type = "fill_any_like"
    by_row = True
    attrs = {"value": Float(0.0), "dtype": Int(-1)}
    lod = "X"
    fresh = True

    @staticmethod
    def infer(x: Spec, *, dtype: int) -> Spec:
        return Spec(x.shape, x.dtype if dtype == -1 else VarType(dtype))

    @staticmethod
    def forward(x: Array, *, value: float, dtype: int) -> Array:
        kind = convert_dtype(x.dtype) if dtype == -1 else dtype
        return _fill_array("fill_any_like", x.shape, value, kind)


@register
class Fill(OpDef):
    """``Out``: the elements of ``value``, in C order."""

    type = "fill"
    inputs = ()
    attrs = {"value": Floats(), "shape": Ints(), "dtype": Int(5), "force_cpu": Bool(False)}
    fresh = True

    @staticmethod
    def infer(*, value: Sequence[float], shape: Sequence[int], dtype: int) -> Spec:
        _check_count("fill", "value", value[: math.prod(shape)], shape)
        return Spec(tuple(shape), VarType(dtype))

    @staticmethod
    def forward(*, value: Sequence[float], shape: Sequence[int], dtype: int) -> Array:
        value = value[: math.prod(shape)]
        _check_count("fill", "value", value, shape)
        return np.array(value, np.float64).astype(numpy_dtype(dtype)).reshape(shape)


#: The attribute of assign_value that holds the values of an element type.
_VALUES_OF = {
    VarType.BOOL: "bool_values",
    VarType.INT32: "int32_values",
    VarType.INT64: "int64_values",
    VarType.FP32: "fp32_values",
}


class AssignValueAttrs(Attrs):
    """Attributes of assign_value."""

    shape: list[int] = Ints()
    dtype: int = Int()
    bool_values: list[int] = Ints([])
    fp32_values: Sequence[float] = Floats([])
    int32_values: list[int] = Ints([])
    int64_values: list[int] = Longs([])


@register
class AssignValue(OpDef):
    """``Out``: the elements stored in the program itself, in C order."""

    type = "assign_value"
    inputs = ()
    attrs = AssignValueAttrs.table()
    fresh = True

    @staticmethod
    def infer(*, attrs: AssignValueAttrs) -> Spec:
        if attrs.dtype not in _VALUES_OF:
            raise ShapeError(
                f"assign_value: dtype is {VarType(attrs.dtype)}, "
                f"expected one of {', '.join(map(str, _VALUES_OF))}",
                hint="cast the values to one of these",
            )
        return Spec(tuple(attrs.shape), VarType(attrs.dtype))

    @staticmethod
    def forward(*, attrs: AssignValueAttrs) -> Array:
        name = _VALUES_OF[VarType(attrs.dtype)]
        values: Sequence[Any] = {
            "bool_values": attrs.bool_values,
            "fp32_values": attrs.fp32_values,
            "int32_values": attrs.int32_values,
            "int64_values": attrs.int64_values,
        }[name]
        values = values[: math.prod(attrs.shape)]
        _check_count("assign_value", name, values, attrs.shape)
        return np.array(values, numpy_dtype(attrs.dtype)).reshape(attrs.shape)


@register
class FakeInit(OpDef):
    """Leaves ``Out`` without rows: parameter servers hold them, and only their count is known here."""

    type = "fake_init"
    traceable = False
    inputs = ()
    attrs = {"shape": Longs()}

    @staticmethod
    def infer(*, shape: Sequence[int]) -> None:
        """Leave the variable as it was declared."""

    @staticmethod
    def forward(*, shape: Sequence[int]) -> SelectedRows:
        return SelectedRows((), shape[0])


def _fill_array(op: str, sizes: tuple[int, ...], value: float | str, dtype: int) -> Array:
    """Return an array of one value. Raises ShapeError when the element type cannot hold it."""
    real = numpy_dtype(dtype)
    number = _read_number(op, value) if isinstance(value, str) else value
    if real.kind in "iu":
        bounds = np.iinfo(real)
        if not (math.isfinite(number) and bounds.min <= int(number) <= bounds.max):
            raise ShapeError(f"{op}: {real} cannot hold the value {value}")
        number = int(number)
    out = memory.empty(sizes, real)
    out.fill(number)
    return out


def _read_number(op: str, text: str) -> float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ShapeError(f"{op}: str_value is {text!r}, expected a number") from None


def _check_count(op: str, name: str, values: Sequence[Any], shape: Sequence[int]) -> None:
    if len(values) != math.prod(shape):
        raise ShapeError(
            f"{op}: {name} holds {len(values)} numbers, shape {list(shape)} needs {math.prod(shape)}"
        )
