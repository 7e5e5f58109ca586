"""Operators on images: sizes, borders, windows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Float, Floats, Int, Ints, String
from paddlelike.ops.kernels.images.interpolation import gather_taps
from paddlelike.ops.kernels.images.windows import to_channels_first, to_format
from paddlelike.ops.nn.convolution.conv import BACKENDS, FUSED, THREE_DIMS
from paddlelike.ops.nn.convolution.conv_transpose import ConvTransposeAttrs, transpose_convolve
from paddlelike.ops.nn.images.interpolate import TAPS
from paddlelike.ops.operands import read_numbers
from paddlelike.ops.paddle2.registration import register_kernel


class InterpolateAttrs(Attrs):
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
    x: Array, out_size: Any, size_tensors: Any, scale_tensor: Any, *, attrs: InterpolateAttrs
) -> Array:
    """X in another size. Where scales are given, positions come from them and not from the sizes."""
    x = to_channels_first(x, attrs.data_layout)
    rank = x.ndim - 2
    given = list(attrs.scale) if scale_tensor is None else [float(n) for n in scale_tensor.reshape(-1)]
    scales = given * rank if len(given) == 1 else given
    size = [attrs.out_d, attrs.out_h, attrs.out_w][-rank:]
    if scales and min(scales) > 0:
        size = [int(n * scale) for n, scale in zip(x.shape[2:], scales, strict=True)]
    else:
        scales = [0.0] * rank
    size = read_numbers(size, out_size, size_tensors)
    if len(size) != rank or min(size) < 1:
        raise ShapeError(f"interpolation: the output size is {size}; it must be {rank} positive numbers")
    for dim, (n, scale) in enumerate(zip(size, scales, strict=True), 2):
        find = TAPS[attrs.interp_method]
        x = gather_taps(x, dim, find(x.shape[dim], n, attrs.align_corners, attrs.align_mode, scale))
    return to_format(x, attrs.data_layout)


for _method in ("linear", "nearest", "bilinear", "trilinear", "bicubic"):
    register_kernel(
        f"{_method}_interp_v2", "X OutSize? SizeTensor*? Scale? -> Out", InterpolateAttrs.table()
    )(_interpolate)


_MODES: Final[dict[str, Any]] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class PadAttrs(Attrs):
    """Attributes of pad3d; ``paddings`` begins with the last dim."""

    paddings: list[int] = Ints([])
    mode: str = String("constant")
    value: float = Float(0.0)
    data_format: str = String("NCDHW")


@register_kernel("pad3d", "X Paddings? -> Out", PadAttrs.table())
def _pad3d(x: Array, tensor: Array | None, *, attrs: PadAttrs) -> Array:
    """X with borders around its three spatial dims."""
    sizes = read_numbers(attrs.paddings, tensor, None)
    spatial = [(sizes[2 * i], sizes[2 * i + 1]) for i in (2, 1, 0)]
    borders = [(0, 0), *spatial, (0, 0)] if attrs.data_format == "NDHWC" else [(0, 0), (0, 0), *spatial]
    if attrs.mode == "constant":
        return np.pad(x, borders, constant_values=x.dtype.type(attrs.value))
    return np.pad(x, borders, _MODES[attrs.mode])


class FoldAttrs(Attrs):
    """Attributes of fold."""

    output_sizes: list[int] = Ints([])
    kernel_sizes: list[int] = Ints([])
    strides: list[int] = Ints([1, 1])
    paddings: list[int] = Ints([0, 0, 0, 0])
    dilations: list[int] = Ints([1, 1])


@register_kernel("fold", "X -> Y", FoldAttrs.table())
def _fold(x: Array, *, attrs: FoldAttrs) -> Array:
    """An image from the windows of it, added where they overlap."""
    (height, width), (kh, kw) = attrs.output_sizes, attrs.kernel_sizes
    pads = attrs.paddings if len(attrs.paddings) == 4 else [*attrs.paddings, *attrs.paddings]
    top, left, bottom, right = pads
    (sh, sw), (dh, dw) = attrs.strides, attrs.dilations
    rows = (height + top + bottom - dh * (kh - 1) - 1) // sh + 1
    columns = (width + left + right - dw * (kw - 1) - 1) // sw + 1
    parts = x.reshape(len(x), -1, kh, kw, rows, columns)
    out = np.zeros((len(x), parts.shape[1], height + top + bottom, width + left + right), x.dtype)
    for i in range(kh):
        for j in range(kw):
            part = out[:, :, i * dh : i * dh + sh * rows : sh, j * dw : j * dw + sw * columns : sw]
            part += parts[:, :, i, j]
    return out[:, :, top : top + height, left : left + width].copy()


class LaterTransposeAttrs(ConvTransposeAttrs):
    """Attributes of the later transposed convolutions."""

    output_padding: list[int] = Ints([])


def _conv_transpose(x: Array, w: Array, bias: Array | None, *, attrs: LaterTransposeAttrs) -> Array:
    """The gradient of a convolution, larger by ``output_padding``."""
    return transpose_convolve("conv_transpose", x, w, bias, attrs, attrs.output_padding)


for _name in ("conv2d_transpose", "depthwise_conv2d_transpose"):
    register_kernel(
        _name, "Input Filter Bias? -> Output", LaterTransposeAttrs.table(**BACKENDS, **FUSED), changed=True
    )(_conv_transpose)
register_kernel(
    "conv3d_transpose",
    "Input Filter Bias? -> Output",
    LaterTransposeAttrs.table(**THREE_DIMS, **BACKENDS),
    changed=True,
)(_conv_transpose)


@register_kernel(
    "affine_grid",
    "Theta OutputShape? -> Output",
    {"output_shape": Ints([]), "align_corners": Bool(True)},
    changed=True,
)
def _affine_grid(
    theta: Array, tensor: Array | None, *, output_shape: list[int], align_corners: bool
) -> Array:
    """The places of the pixels of an image that an affine map moved; the image spans [-1, 1]."""
    spatial = read_numbers(output_shape, tensor, None)[2:]
    lines = [np.linspace(-1, 1, n) * (1 if align_corners else (n - 1) / n) for n in spatial]
    grid = np.meshgrid(*lines, indexing="ij")[::-1]
    points = np.stack([*grid, np.ones(spatial)], -1).astype(theta.dtype)
    out = points.reshape(1, -1, points.shape[-1]) @ theta.swapaxes(1, 2)
    return np.asarray(out.reshape(len(theta), *spatial, -1))


class UnpoolAttrs(Attrs):
    """Attributes of unpool and unpool3d; ``output_size`` ends with the spatial dims."""

    output_size: list[int] = Ints([])


def _unpool(x: Array, places: Array, *, attrs: UnpoolAttrs) -> Array:
    """An image of zeros with the elements of X at the places from which a pool took them."""
    spatial = attrs.output_size[-(x.ndim - 2) :]
    out = np.zeros((*x.shape[:2], int(np.prod(spatial))), x.dtype)
    np.put_along_axis(out, places.reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), 2)
    return out.reshape(*x.shape[:2], *spatial)


_POOLED: Final[dict[str, Any]] = {
    "ksize": Ints([]),
    "strides": Ints([]),
    "paddings": Ints([]),
    "unpooling_type": String("max"),
}
register_kernel(
    "unpool", "X Indices -> Out", UnpoolAttrs.table(**_POOLED, data_format=String("NCHW")), changed=True
)(_unpool)
register_kernel("unpool3d", "X Indices -> Out", UnpoolAttrs.table(**_POOLED, data_format=String("NCDHW")))(
    _unpool
)
