"""Operators that cut a box of a given shape out of an array: crop, crop_tensor."""

from __future__ import annotations

from collections.abc import Sequence

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Gradient, Ints, OpDef, Spec, register
from paddlelike.ops.operands import fill_box, read_numbers

Tensors = list[Array] | None


def _find_box(
    op: str, dims: Sequence[int], offsets: Sequence[int], shape: Sequence[int]
) -> tuple[slice, ...]:
    """Return the box of ``shape`` at ``offsets``; a size of -1 extends to the end."""
    offsets = offsets or [0] * len(dims)
    ends = [
        dim if size == -1 else offset + size for dim, offset, size in zip(dims, offsets, shape, strict=True)
    ]
    if not all(0 <= o <= end <= dim for o, end, dim in zip(offsets, ends, dims, strict=True)):
        raise EnforceNotMet(
            f"{op}: the box of shape {list(shape)} at offsets {list(offsets)} "
            f"reaches beyond X of shape {list(dims)}"
        )
    return tuple(slice(offset, end) for offset, end in zip(offsets, ends, strict=True))


def _check_ranks(op: str, x: Spec, **given: Sequence[int]) -> None:
    for name, numbers_ in given.items():
        if numbers_ and len(numbers_) != len(x.shape):
            raise ShapeError(f"{op}: {name} is {list(numbers_)}, expected one per dim of X {x.shape}")


@register
class Crop(OpDef):
    """``Out``: the part of X with the shape ``shape`` (or that of Y), whose first corner is at
    ``offsets``.
    """

    type = "crop"
    inputs = ("X", "Y?", "Offsets?")
    attrs = {"offsets": Ints([]), "shape": Ints([])}
    views = True
    gradient = Gradient("Out@GRAD", "X", "Offsets", outputs=("X@GRAD",), traceable=False)

    @staticmethod
    def infer(x: Spec, y: Spec | None, offset: Spec | None, *, offsets: list[int], shape: list[int]) -> Spec:
        size = list(y.shape) if y is not None else shape
        if len(size) != len(x.shape):
            raise ShapeError(f"crop: the shape is {size}, expected one per dim of X {x.shape}")
        _check_ranks("crop", x, offsets=offsets)
        return Spec(tuple(size), x.dtype)

    @staticmethod
    def forward(
        x: Array, y: Array | None, offset: Array | None, *, offsets: list[int], shape: list[int]
    ) -> Array:
        size = y.shape if y is not None else shape
        return x[_find_box("crop", x.shape, read_numbers(offsets, offset, None), size)]

    @staticmethod
    def backward(d_out: Array, x: Array, offset: Array | None, *, offsets: list[int]) -> Array:
        return fill_box(
            d_out, x, _find_box("crop", x.shape, read_numbers(offsets, offset, None), d_out.shape)
        )


@register
class CropTensor(OpDef):
    """``crop`` with shape and offsets that may be tensors; a size of -1 extends to the end of X."""

    type = "crop_tensor"
    size_slots = ("Shape", "Offsets")
    inputs = ("X", "Shape?", "Offsets?", "ShapeTensor*?", "OffsetsTensor*?")
    attrs = {"offsets": Ints([]), "shape": Ints([])}
    views = True
    gradient = Gradient("Out@GRAD", "X", "Offsets", "OffsetsTensor", outputs=("X@GRAD",), traceable=False)

    @staticmethod
    def infer(
        x: Spec,
        size: Spec | None,
        offset: Spec | None,
        size_list: list[Spec] | None,
        offset_list: list[Spec] | None,
        *,
        offsets: list[int],
        shape: list[int],
    ) -> Spec:
        _check_ranks("crop_tensor", x, shape=shape, offsets=offsets)
        rank = len(x.shape)
        if size is not None or (size_list and not shape):
            return Spec((-1,) * rank, x.dtype)
        if not shape:
            raise ShapeError("crop_tensor: no shape is given, neither as attribute nor as tensor")
        at = [-1] * rank if offset is not None else offsets or [0] * rank
        out = [
            dim - start if want == -1 and dim >= 0 and start >= 0 else want or -1  # 0: see size_list
            for dim, start, want in zip(x.shape, at, shape, strict=True)
        ]
        return Spec(tuple(out), x.dtype)

    @staticmethod
    def forward(
        x: Array,
        size: Array | None,
        offset: Array | None,
        size_list: Tensors,
        offset_list: Tensors,
        *,
        offsets: list[int],
        shape: list[int],
    ) -> Array:
        at, shape = read_numbers(offsets, offset, offset_list), read_numbers(shape, size, size_list)
        return x[_find_box("crop_tensor", x.shape, at, [n or -1 for n in shape])]

    @staticmethod
    def backward(
        d_out: Array, x: Array, offset: Array | None, offset_list: Tensors, *, offsets: list[int]
    ) -> Array:
        at = read_numbers(offsets, offset, offset_list)
        return fill_box(d_out, x, _find_box("crop_tensor", x.shape, at, d_out.shape))
