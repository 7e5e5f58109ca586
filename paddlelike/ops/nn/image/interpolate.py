"""Resized images: nearest_interp, bilinear_interp, trilinear_interp, bicubic_interp.

Every method is separable: along one dim, an output element is a weighted sum of a few input elements (taps).
The size comes from the first of these that is given: SizeTensor (one tensor per dim), OutSize, Scale or
``scale``, ``out_d``/``out_h``/``out_w``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import memory
from paddlelike.errors import OutOfMemoryError, ShapeError
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Float,
    Floats,
    Gradient,
    Int,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.nn.image.interpolation import Taps, gather_taps, resize, resize_dx
from paddlelike.ops.kernels.nn.image.windows import is_channels_last, to_channels_first, to_format
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import read_numbers

_CUBIC = -0.75  # the free parameter of Keys' kernel
_LARGE: Final = 1 << 30  # bytes of a result that may not fit into memory
_TAPS: Final = 48  # bytes for an output element along one dim: two indices and weights, and their positions

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class InterpolateAttrs(Attrs):
    """Attributes of every interpolation."""

    interp_method: str = String("bilinear")
    out_d: int = Int(0)
    out_h: int = Int(0)
    out_w: int = Int(0)
    scale: float = Float(0.0)
    align_corners: bool = Bool(True)
    align_mode: int = Int(1)
    data_layout: str = String("NCHW")


class _Interpolation(OpDef):
    """An interpolation by the method that the attribute ``interp_method`` names."""

    inputs = ("X", "OutSize?", "SizeTensor*?", "Scale?")
    any_order = True
    fluid_order = "data_layout out_d out_h out_w scale interp_method align_corners align_mode"
    attrs = InterpolateAttrs.table()
    gradient = Gradient("X", "OutSize", "SizeTensor", "Scale", "Out@GRAD", outputs=("X@GRAD",))

    @classmethod
    def infer(
        cls,
        x: Spec,
        out_size: Spec | None,
        size_tensors: list[Spec],
        scale_tensor: Spec | None,
        *,
        attrs: InterpolateAttrs,
    ) -> Spec:
        rank = len(x.shape) - 2
        if rank != (3 if attrs.interp_method == "trilinear" else 2) or attrs.interp_method not in TAPS:
            raise ShapeError(
                f"{cls.type}: X has shape {x.shape} and interp_method is {attrs.interp_method!r}; "
                "trilinear needs 5 dims, nearest, bilinear and bicubic need 4"
            )
        last = is_channels_last(attrs.data_layout)
        size = [attrs.out_d, attrs.out_h, attrs.out_w][-rank:]
        if not size_tensors and scale_tensor is not None:
            size = [-1] * rank
        elif not size_tensors and attrs.scale > 0:
            size = scale_sizes(x.shape[1:-1] if last else x.shape[2:], [attrs.scale] * rank)
        size = [n if n > 0 else -1 for n in size]
        shape = (x.shape[0], *size, x.shape[-1]) if last else (*x.shape[:2], *size)
        return Spec(shape, x.dtype)

    @classmethod
    def forward(
        cls,
        x: Array,
        out_size: Array | None,
        size_tensors: list[Array],
        scale_tensor: Array | None,
        *,
        attrs: InterpolateAttrs,
    ) -> Array:
        x = to_channels_first(x, attrs.data_layout)
        rank = x.ndim - 2
        size = [attrs.out_d, attrs.out_h, attrs.out_w][-rank:]
        scale = attrs.scale
        if (
            scale_tensor is not None and scale_tensor.size
        ):  # one number, or ONNX's one per dim, as X2Paddle writes
            scale = float(scale_tensor.flat[0])
        if scale > 0:
            size = scale_sizes(x.shape[2:], [scale] * rank)
        size = _check_size(cls.type, x, read_numbers(size, out_size, size_tensors))
        taps = _find_taps(x.shape[2:], size, attrs, x.dtype)
        return to_format(resize(x, taps), attrs.data_layout)

    @classmethod
    def backward(
        cls,
        x: Array,
        out_size: Array | None,
        size_tensors: list[Array],
        scale_tensor: Array | None,
        d_out: Array,
        *,
        attrs: InterpolateAttrs,
    ) -> Array:
        sizes = to_channels_first(x, attrs.data_layout).shape[2:]
        d_out = to_channels_first(d_out, attrs.data_layout)
        taps = _find_taps(sizes, d_out.shape[2:], attrs, d_out.dtype)
        return to_format(resize_dx(d_out, taps, sizes), attrs.data_layout)


def scale_sizes(sizes: Sequence[int], scales: Sequence[float]) -> list[int]:
    """Return sizes times scales, or -1 for unknown ones, in float32 as Paddle multiplies: 10 by 0.7 is 7."""
    return [int(np.float32(n) * np.float32(by)) if n > 0 else -1 for n, by in zip(sizes, scales, strict=True)]


def _check_size(kind: str, x: Array, size: list[int]) -> list[int]:
    """Return the output size. Raises ShapeError, or OutOfMemoryError before anything is computed."""
    rank = x.ndim - 2
    if len(size) != rank or min(size) < 1:
        raise ShapeError(f"{kind}: the output size is {size}; it must be {rank} positive numbers")
    needed = math.prod((*x.shape[:2], *size)) * x.itemsize + sum(size) * _TAPS
    if needed > _LARGE:
        try:
            memory.empty((needed,), np.dtype(np.uint8))
        except OutOfMemoryError as error:
            raise OutOfMemoryError(
                f"{kind}: the output size is {size}, and {error.message}",
                hint=f"X has shape {list(x.shape)}; check the size or the scale that the operator is given",
            ) from error
    return size


def _find_taps(
    sizes: Sequence[int], counts: Sequence[int], attrs: InterpolateAttrs, dtype: np.dtype[Any]
) -> list[Taps]:
    """Return the taps along each spatial dim, for inputs and outputs of these sizes."""
    find = TAPS[attrs.interp_method]
    given = (attrs.align_corners, attrs.align_mode, 0.0, dtype)
    return [find(n, m, *given) for n, m in zip(sizes, counts, strict=True)]


def _find_positions(
    size: int, count: int, align_corners: bool, half: bool, scale: float, dtype: DTypeLike = np.float32
) -> Array:
    """Return the positions of the output elements in the input, in float32 as Paddle computes them.

    ``scale`` is the factor from input to output size; 0 takes the ratio of the sizes.
    """
    i: Array = np.arange(count, dtype=np.float32)
    if count == 1:
        return i - np.float32(0.5 if half and not align_corners else 0)  # the ratio stays 0
    if align_corners:
        return i * np.float32((size - 1) / (count - 1))
    ratio = np.float32(1 / scale) if scale > 0 else np.float32(size) / np.float32(count)
    return ((i + 0.5) * np.float64(ratio) - 0.5).astype(dtype) if half else i * ratio


def _nearest(
    size: int,
    count: int,
    align_corners: bool,
    align_mode: int,
    scale: float = 0.0,
    dtype: DTypeLike | None = None,
) -> Taps:
    at = _find_positions(size, count, align_corners, half=False, scale=scale)
    index = (at + np.float32(0.5) if align_corners else at).astype(np.int64)
    return [(index, np.ones(count, np.float32))]


def _linear(
    size: int,
    count: int,
    align_corners: bool,
    align_mode: int,
    scale: float = 0.0,
    dtype: DTypeLike | None = None,
) -> Taps:
    at = np.maximum(_find_positions(size, count, align_corners, half=align_mode == 0, scale=scale), 0)
    low = at.astype(np.int64)
    high = np.minimum(low + 1, size - 1)
    weight = at - low.astype(np.float32)
    return [(low, 1 - weight), (high, weight)]


def _cubic(
    size: int,
    count: int,
    align_corners: bool,
    align_mode: int,
    scale: float = 0.0,
    dtype: DTypeLike = np.float32,
) -> Taps:
    at = _find_positions(size, count, align_corners, half=True, scale=scale, dtype=dtype).astype(dtype)
    floor = np.floor(at)
    t = at - floor
    low = floor.astype(np.int64)
    weights = (_far(t + 1), _near(t), _near(1 - t), _far(2 - t))
    return [(np.clip(low + i, 0, size - 1), w) for i, w in enumerate(weights, -1)]


def _near(t: Array) -> Array:
    """Return Keys' kernel within 1 of its center."""
    return ((_CUBIC + 2) * t - (_CUBIC + 3)) * t * t + 1


def _far(t: Array) -> Array:
    """Return Keys' kernel between 1 and 2 from its center."""
    return ((_CUBIC * t - 5 * _CUBIC) * t + 8 * _CUBIC) * t - 4 * _CUBIC


TAPS = {"nearest": _nearest, "linear": _linear, "bilinear": _linear, "trilinear": _linear, "bicubic": _cubic}


@register
class NearestInterp(_Interpolation):
    """The nearest element: index ``round(i (n - 1) / (m - 1))``, or without corners ``int(i n / m)``."""

    type = "nearest_interp"


@register
class BilinearInterp(_Interpolation):
    """Linear in height and width between the two nearest elements.

    Element i of m outputs is at ``i (n - 1) / (m - 1)`` among n inputs; without ``align_corners`` it is at
    ``i n / m`` (``align_mode`` 1) or ``(i + 0.5) n / m - 0.5`` (``align_mode`` 0).
    """

    type = "bilinear_interp"


@register
class TrilinearInterp(_Interpolation):
    """``bilinear_interp`` with a third spatial dim."""

    type = "trilinear_interp"


@register
class BicubicInterp(_Interpolation):
    """Cubic between the four nearest elements. Keys, Cubic convolution interpolation, 1981."""

    type = "bicubic_interp"


class LaterInterpolateAttrs(Attrs):
    """Attributes of every interpolation; ``scale`` is one number, one for each dim, or absent."""

    interp_method: str = String("bilinear")
    out_d: int = Int(0)
    out_h: int = Int(0)
    out_w: int = Int(0)
    scale: list[float] = Floats([])
    align_corners: bool = Bool(True)
    align_mode: int = Int(1)
    data_layout: str = String("NCHW")


def _interpolate(
    x: Array, out_size: Any, size_tensors: Any, scale_tensor: Any, *, attrs: LaterInterpolateAttrs
) -> Array:
    """X resized; given scales determine the positions, otherwise the sizes do."""
    x = to_channels_first(x, attrs.data_layout)
    rank = x.ndim - 2
    given = list(attrs.scale) if scale_tensor is None else [float(n) for n in scale_tensor.reshape(-1)]
    scales = given * rank if len(given) == 1 else given
    size = [attrs.out_d, attrs.out_h, attrs.out_w][-rank:]
    if scales and min(scales) > 0:
        size = scale_sizes(x.shape[2:], scales)
    else:
        scales = [0.0] * rank
    size = _check_size("interpolation", x, read_numbers(size, out_size, size_tensors))
    for dim, (n, scale) in enumerate(zip(size, scales, strict=True), 2):
        find = TAPS[attrs.interp_method]
        x = gather_taps(x, dim, find(x.shape[dim], n, attrs.align_corners, attrs.align_mode, scale, x.dtype))
    return to_format(x, attrs.data_layout)


for _method in ("linear", "nearest", "bilinear", "trilinear", "bicubic"):
    register_kernel(
        f"{_method}_interp_v2", "X OutSize? SizeTensor*? Scale? -> Out", LaterInterpolateAttrs.table()
    )(_interpolate)
