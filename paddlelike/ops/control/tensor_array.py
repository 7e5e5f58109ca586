"""Operators on arrays of tensors, and on a choice of tensors.

The gradient of writing an element is reading it from the gradient of the array, and the other way round.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core import LoDTensor, LoDTensorArray, VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    Array,
    Bool,
    Context,
    Gradient,
    GradOp,
    Int,
    OpDef,
    OpView,
    Spec,
    grad_names,
    register,
)
from paddlelike.ops.kernels.lod import find_lod
from paddlelike.ops.operands import one_element


@register
class WriteToArray(OpDef):
    """``Out[I] = X``; an array that is too short grows."""

    type = "write_to_array"
    inputs = ("X", "I")

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return operators that read the element of the gradient, zeros like X where there is none."""
        inputs = {"I": op.input("I"), "X": grad_names(op.output("Out")), "X_W": op.input("X")}
        return [GradOp("read_from_array", inputs, {"Out": grad_names(op.input("X"))}, {})]

    @staticmethod
    def infer(x: Spec, i: Spec) -> Spec:
        return Spec(x.shape, x.dtype, x.lod_level, VarType.LOD_TENSOR_ARRAY)

    @staticmethod
    def forward(ctx: Context, x: Array, i: Array) -> LoDTensorArray:
        out = ctx.read(ctx.op.output("Out")[0])
        array = out if isinstance(out, LoDTensorArray) else LoDTensorArray()
        place = _read_index("write_to_array", i)
        array.extend([LoDTensor()] * (place + 1 - len(array)))  # elements are replaced, never written into
        array[place] = LoDTensor(x.copy(), find_lod(ctx, "X"))
        return array


@register
class ReadFromArray(OpDef):
    """``Out = X[I]``; if X has no such element, zeros like X_W, provided that is given."""

    type = "read_from_array"
    inputs = ("X", "I", "X_W?")

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return an operator that writes the gradient of Out into an array."""
        inputs = {"I": op.input("I"), "X": grad_names(op.output("Out"))}
        return [GradOp("write_to_array", inputs, {"Out": grad_names(op.input("X"))}, {})]

    @staticmethod
    def infer(x: Spec, i: Spec, x_w: Spec | None) -> Spec:
        return Spec(x.shape, x.dtype, x.lod_level, VarType.LOD_TENSOR)

    @staticmethod
    def forward(ctx: Context, x: LoDTensorArray | None, i: Array, like: Array | None) -> Array:
        place = _read_index("read_from_array", i)
        element = x[place] if x is not None and place < len(x) else LoDTensor()
        if element.held_array is not None:
            ctx.set_lod("Out", element.lod())
            return element.held_array
        if like is None:
            raise EnforceNotMet(
                f"read_from_array: the array has no element {place}; "
                f"it has {0 if x is None else len(x)} elements",
                hint="write the element first with layers.array_write",
            )
        ctx.set_lod("Out", ctx.lod("X_W"))
        return np.zeros_like(like)


@register
class LodArrayLength(OpDef):
    """``Out``: the number of elements of an array, int64 of shape [1]."""

    type = "lod_array_length"

    infer = one_element(VarType.INT64)

    @staticmethod
    def forward(x: LoDTensorArray | None) -> Array:
        return np.array([0 if x is None else len(x)], np.int64)


@register
class TensorArrayToTensor(OpDef):
    """``Out``: the elements of an array, concatenated along ``axis`` or stacked along a new one.

    ``OutIndex`` holds the size of each along the axis, int32.
    """

    type = "tensor_array_to_tensor"
    outputs = ("Out", "OutIndex")
    attrs = {"axis": Int(0), "use_stack": Bool(False)}
    gradient = Gradient("X", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, axis: int, use_stack: bool) -> tuple[Spec, Spec]:
        shape = list(x.shape)
        if use_stack:
            shape.insert(axis, -1)
        elif shape:
            shape[axis] = -1
        return Spec(tuple(shape), x.dtype, kind=VarType.LOD_TENSOR), Spec((), VarType.INT32)

    @staticmethod
    def forward(x: LoDTensorArray, *, axis: int, use_stack: bool) -> tuple[Array, Array]:
        parts = _list_elements(x)
        sizes = [1 if use_stack else part.shape[axis] for part in parts]
        try:
            out = np.stack(parts, axis) if use_stack else np.concatenate(parts, axis)
        except ValueError:
            shapes = ", ".join(str(list(part.shape)) for part in parts)
            raise ShapeError(
                f"tensor_array_to_tensor: elements of the shapes {shapes} do not join along axis {axis}"
            ) from None
        return out, np.array(sizes, np.int32)

    @staticmethod
    def backward(x: LoDTensorArray, d_out: Array, *, axis: int, use_stack: bool) -> LoDTensorArray:
        if use_stack:
            return LoDTensorArray(
                LoDTensor(np.ascontiguousarray(part)) for part in np.moveaxis(d_out, axis, 0)
            )
        ends = np.cumsum([part.shape[axis] for part in _list_elements(x)])
        parts = np.split(d_out, ends[:-1], axis)
        return LoDTensorArray(LoDTensor(np.ascontiguousarray(part)) for part in parts)


# A choice


@register
class SelectInput(OpDef):
    """``Out = X[Mask]``, one of several variables."""

    type = "select_input"
    inputs = ("X*", "Mask")

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return an operator that gives the gradient to the variable that was chosen."""
        inputs = {"Mask": op.input("Mask"), "X": grad_names(op.output("Out"))}
        return [GradOp("select_output", inputs, {"Out": grad_names(op.input("X"))}, {})]

    @staticmethod
    def infer(xs: list[Spec], mask: Spec) -> Spec:
        return Spec(xs[0].shape, xs[0].dtype, kind=xs[0].kind)

    @staticmethod
    def forward(ctx: Context, xs: list[Any], mask: Array) -> Any:
        index = _read_index("select_input", mask)
        if index >= len(xs):
            raise EnforceNotMet(f"select_input: Mask is {index}, but there are {len(xs)} variables")
        ctx.set_lod("Out", ctx.lod("X", index))
        return xs[index]


@register
class SelectOutput(OpDef):
    """``Out[Mask] = X``; the other outputs get no value."""

    type = "select_output"
    inputs = ("X", "Mask")
    outputs = ("Out*",)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return an operator that takes the gradient of the variable that was written."""
        inputs = {"Mask": op.input("Mask"), "X": grad_names(op.output("Out"))}
        return [GradOp("select_input", inputs, {"Out": grad_names(op.input("X"))}, {})]

    @staticmethod
    def forward(ctx: Context, x: Any, mask: Array) -> list[Any]:
        names = ctx.op.output("Out")
        index = _read_index("select_output", mask)
        if index >= len(names):
            raise EnforceNotMet(f"select_output: Mask is {index}, but there are {len(names)} outputs")
        ctx.set_lod("Out", ctx.lod("X"), index)
        return [x if i == index else None for i in range(len(names))]


def _read_index(who: str, i: Array) -> int:
    """Return the index of an element, given as a tensor of one number."""
    if i.size != 1:
        raise ShapeError(f"{who}: the index must be one number, got shape {list(i.shape)}")
    place = int(i.item())
    if place < 0:
        raise EnforceNotMet(f"{who}: the index is {place}; it counts from 0")
    return place


def _list_elements(x: LoDTensorArray) -> list[Array]:
    parts = [element.held_array for element in x if element.held_array is not None]
    if len(parts) != len(x) or not parts:
        raise EnforceNotMet(f"tensor_array_to_tensor: {len(x) - len(parts)} of {len(x)} elements are empty")
    return parts
