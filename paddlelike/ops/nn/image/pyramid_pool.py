"""spp: pools of several sizes, side by side; unpool: the inverse of a pool of maxima.

He et al., Spatial pyramid pooling in deep convolutional networks, 2014; Zeiler et al., 2011.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attrs, Gradient, Int, Ints, OpDef, Spec, String, register
from paddlelike.ops.kernels.nn.image import pool as pool_kernels
from paddlelike.ops.kernels.nn.image.windows import Windows, check_image
from paddlelike.ops.later import register_kernel


@register
class Spp(OpDef):
    """``Out``: pools of X into 1 x 1, 2 x 2, 4 x 4, ... bins, side by side.

    X ``(N, C, H, W)``, Out ``(N, C (4^pyramid_height - 1) / 3)``; ``pooling_type`` is max or avg.
    """

    type = "spp"
    attrs = {"pyramid_height": Int(), "pooling_type": String()}
    gradient = Gradient("X", "Out", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, pyramid_height: int, pooling_type: str) -> Spec:
        check_image("spp", x)
        if pyramid_height < 1 or pooling_type not in ("max", "avg"):
            raise ShapeError(
                f"spp: pyramid_height is {pyramid_height}, pooling_type {pooling_type!r}; expected 1 or "
                "more, and max or avg"
            )
        return Spec((x.shape[0], x.shape[1] * (4**pyramid_height - 1) // 3), x.dtype)

    @staticmethod
    def forward(x: Array, *, pyramid_height: int, pooling_type: str) -> Array:
        outs = []
        for _, axes in list_levels(x.shape, pyramid_height):
            is_max = pooling_type == "max"
            out = pool_kernels.maximum(x, axes) if is_max else pool_kernels.average(x, axes, exclusive=True)
            outs.append(out.reshape(len(x), -1))
        return np.concatenate(outs, 1)

    @staticmethod
    def backward(x: Array, out: Array, d_out: Array, *, pyramid_height: int, pooling_type: str) -> Array:
        dx, start = np.zeros_like(x), 0
        for bins, axes in list_levels(x.shape, pyramid_height):
            end = start + x.shape[1] * bins * bins
            shape = (*x.shape[:2], bins, bins)
            d_level, level = (
                np.ascontiguousarray(each[:, start:end]).reshape(shape) for each in (d_out, out)
            )
            if pooling_type == "max":
                dx += pool_kernels.maximum_dx(x, level, d_level, axes)
            else:
                dx += pool_kernels.average_dx(d_level, axes, exclusive=True)
            start = end
        return dx


def list_levels(shape: tuple[int, ...], height: int) -> Iterator[tuple[int, list[pool_kernels.Axis]]]:
    """Yield the number of bins along each dim, and their windows."""
    for level in range(height):
        bins = 2**level
        kernel = tuple(-(-size // bins) for size in shape[2:])
        pads = tuple(((k * bins - size + 1) // 2,) * 2 for k, size in zip(kernel, shape[2:], strict=True))
        windows = Windows(kernel, kernel, pads, (1, 1))
        yield bins, pool_kernels.make_regular(windows, shape[2:], (bins, bins))


class _UnpoolAttrs(Attrs):
    ksize: list[int] = Ints()
    strides: list[int] = Ints([1, 1])
    paddings: list[int] = Ints([0, 0])
    unpooling_type: str = String()

    def find_sizes(self, spatial: tuple[int, ...]) -> tuple[int, ...]:
        """Return the size of the image that was pooled."""
        return tuple(
            -1 if size < 0 else (size - 1) * stride - 2 * pad + kernel
            for size, kernel, stride, pad in zip(
                spatial, self.ksize, self.strides, self.paddings, strict=True
            )
        )


@register
class Unpool(OpDef):
    """``Out``: zeros, with each element of X at the pixel ``h * W' + w`` that Indices contains.

    X and Indices, int32 from ``max_pool2d_with_index``, are ``(N, C, H, W)``. Out is ``(N, C, H', W')`` with
    ``H' = (H - 1) stride - 2 padding + ksize``.
    """

    type = "unpool"
    inputs = ("X", "Indices")
    attrs = _UnpoolAttrs.table()
    gradient = Gradient("X", "Indices", "Out", "Out@GRAD", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, indices: Spec, *, attrs: _UnpoolAttrs) -> Spec:
        check_image("unpool", x)
        if attrs.unpooling_type != "max" or len(indices.shape) != 4:
            raise ShapeError(
                f"unpool: unpooling_type is {attrs.unpooling_type!r}, Indices has shape {indices.shape}; "
                "expected max and the shape of X"
            )
        return Spec((*x.shape[:2], *attrs.find_sizes(x.shape[2:])), x.dtype)

    @staticmethod
    def forward(x: Array, indices: Array, *, attrs: _UnpoolAttrs) -> Array:
        sizes = attrs.find_sizes(x.shape[2:])
        out = np.zeros((*x.shape[:2], sizes[0] * sizes[1]), x.dtype)
        flat = indices.reshape(*x.shape[:2], math.prod(x.shape[2:]))
        if flat.size and not (flat.min() >= 0 and flat.max() < out.shape[2]):
            raise EnforceNotMet(
                f"unpool: Indices are in [{flat.min()}, {flat.max()}], Out has {out.shape[2]} pixels"
            )
        np.put_along_axis(out, flat.astype(np.int64), x.reshape(flat.shape), 2)
        return out.reshape(*x.shape[:2], *sizes)

    @staticmethod
    def backward(x: Array, indices: Array, out: Array, d_out: Array) -> Array:
        flat = indices.reshape(*x.shape[:2], math.prod(x.shape[2:])).astype(np.int64)
        planes = d_out.reshape(*x.shape[:2], math.prod(d_out.shape[2:]))
        return np.take_along_axis(planes, flat, 2).reshape(x.shape)


class UnpoolAttrs(Attrs):
    """Attributes of unpool and unpool3d; the last numbers of ``output_size`` are the spatial dims."""

    output_size: list[int] = Ints([])


def _unpool(x: Array, places: Array, *, attrs: UnpoolAttrs) -> Array:
    """Put the elements of X at the indices from which a pool took them, and zeros elsewhere."""
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
