"""Operators that put an array into a larger one: pad, pad2d, pad_constant_like."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import (
    NO_LOD,
    OWN,
    REQUIRED,
    Array,
    Attrs,
    Float,
    Gradient,
    Ints,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.nn.image.layouts import empty_as, full_as
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import can_be_equal, read_numbers

#: Elements of one size that Eigen takes at once with AVX, by their bytes.
_PACKET: Final = {4: 8, 8: 4}

Widths = list[tuple[int, int]]  # how much before and after, per dim


def _pad_constant(x: Array, widths: Widths, value: float) -> Array:
    shape = [before + dim + after for dim, (before, after) in zip(x.shape, widths, strict=True)]
    out = full_as(x, shape, value)
    out[_find_interior(widths, x.shape)] = x
    return out


def _find_interior(widths: Widths, dims: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(before, before + dim) for (before, _), dim in zip(widths, dims, strict=True))


def _pad_shape(dims: Sequence[int], widths: Widths) -> tuple[int, ...]:
    return tuple(
        dim if dim < 0 else before + dim + after for dim, (before, after) in zip(dims, widths, strict=True)
    )


def _pair_paddings(paddings: Sequence[int]) -> Widths:
    return list(zip(paddings[::2], paddings[1::2], strict=True))


@register
class Pad(OpDef):
    """``Out``: X with ``paddings[2k]`` more before and ``paddings[2k+1]`` after along each dim k."""

    type = "pad"
    by_row = staticmethod(lambda attrs: not any(attrs["paddings"][:2]))
    attrs = {"paddings": Ints(REQUIRED), "pad_value": Float(0.0)}
    lod = "X"
    views = True
    gradient = Gradient("Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, paddings: list[int]) -> Spec:
        if len(paddings) != 2 * len(x.shape) or min(paddings, default=0) < 0:
            raise ShapeError(
                f"pad: paddings are {paddings}, expected {2 * len(x.shape)} numbers of 0 or more "
                f"for X of shape {x.shape}"
            )
        shape = _pad_shape(x.shape, _pair_paddings(paddings))
        return Spec(shape, x.dtype, None if shape[0] == x.shape[0] else NO_LOD)

    @staticmethod
    def forward(x: Array, *, paddings: list[int], pad_value: float) -> Array:
        return _pad_constant(x, _pair_paddings(paddings), pad_value)

    @staticmethod
    def backward(d_out: Array, *, paddings: list[int]) -> Array:
        widths = _pair_paddings(paddings)
        dims = [dim - sum(width) for dim, width in zip(d_out.shape, widths, strict=True)]
        return _cut_interior(d_out, widths, dims)


@register_kernel("pad_grad", "Out@GRAD -> X@GRAD", Pad.attrs, changed=True, views=True)
def _pad_grad(d_out: Array, *, paddings: list[int], **_: object) -> Array:
    """The gradient of ``pad``, without the elements that Fluid takes from neighbours."""
    widths = _pair_paddings(paddings)
    dims = [dim - sum(width) for dim, width in zip(d_out.shape, widths, strict=True)]
    return d_out[_find_interior(widths, dims)]


@register
class PadConstantLike(OpDef):
    """``Out``: Y in the corner of an array of X's shape, ``pad_value`` elsewhere."""

    type = "pad_constant_like"
    until = "1"
    inputs = ("X", "Y")
    attrs = {"pad_value": Float(0.0)}
    lod = "X"
    views = True
    gradient = Gradient("Out@GRAD", "Y", outputs=("Y@GRAD",), lod_in_run=OWN)

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        if len(x.shape) != len(y.shape) or any(
            0 <= dim < part for dim, part in zip(x.shape, y.shape, strict=True)
        ):
            raise ShapeError(f"pad_constant_like: Y has shape {y.shape}, it must fit into X {x.shape}")
        return Spec(x.shape, y.dtype)

    @staticmethod
    def forward(x: Array, y: Array, *, pad_value: float) -> Array:
        widths = [(0, dim - part) for dim, part in zip(x.shape, y.shape, strict=True)]
        return _pad_constant(y, widths, pad_value)

    @staticmethod
    def backward(d_out: Array, y: Array) -> Array:
        widths = [(0, dim - part) for dim, part in zip(d_out.shape, y.shape, strict=True)]
        return _cut_interior(d_out, widths, y.shape)


def _cut_interior(d_out: Array, widths: Widths, dims: Sequence[int]) -> Array:
    """Return the gradient of the input. Fluid takes some elements from neighbours: see ``pad_gradient``."""
    d_x = d_out[_find_interior(widths, dims)]
    if any(map(any, widths)) and follows_fluid("pad_gradient"):
        places, sources = _find_strays(tuple(dims), tuple(widths), _PACKET.get(d_out.dtype.itemsize, 0))
        if len(places):
            return replace_elements(d_x, places, d_out.reshape(-1)[sources])
    return d_x


def replace_elements(x: Array, places: Array, values: Array) -> Array:
    """Return a copy of an array with other values at flat indices."""
    out = np.array(x, order="C")
    out.reshape(-1)[places] = values
    return out


@functools.lru_cache(maxsize=32)
def _find_strays(
    dims: tuple[int, ...], widths: tuple[tuple[int, int], ...], packet: int
) -> tuple[Array, Array]:
    """Return the elements of a gradient that Fluid reads from a wrong position, and these positions, as flat
    indices.

    Fluid computes this gradient as a negative padding. Eigen's evaluator reads a packet of neighbours at once
    if the whole packet lies between the two paddings, even across the end of a row.
    """
    if not packet:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts = np.arange(0, math.prod(dims) // packet * packet, packet)
    rest, source, is_read = starts, np.zeros_like(starts), np.ones(len(starts), bool)
    true = np.zeros((len(starts), packet), np.int64)
    place = starts[:, None] + np.arange(packet)
    for axis, (before, after) in enumerate(widths):
        stride = math.prod(dims[axis + 1 :])
        step = math.prod(
            dim + sum(width) for dim, width in zip(dims[axis + 1 :], widths[axis + 1 :], strict=True)
        )
        is_read &= rest + packet - 1 < (dims[axis] + after) * stride
        source = source + (rest // stride + before) * step
        rest = rest % stride
        true += (place // stride % dims[axis] + before) * step
    found = source[:, None] + np.arange(packet)
    is_stray = is_read[:, None] & (found != true)
    return place[is_stray], found[is_stray]


_MODES = ("constant", "reflect", "edge")


class Pad2dAttrs(Attrs):
    """Attributes of pad2d."""

    paddings: list[int] = Ints(REQUIRED)
    pad_value: float = Float(0.0)
    mode: str = String("constant")
    data_format: str = String("NCHW")


@register
class Pad2d(OpDef):
    """``Out``: images with borders of top, bottom, left, right: constant, reflected, or the edge."""

    type = "pad2d"
    until = "1"
    by_row = True
    inputs = ("X", "Paddings?")
    attrs = Pad2dAttrs.table()
    any_order = True
    lod = "X"
    views = True
    gradient = Gradient("Out@GRAD", "X", "Paddings", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, tensor: Spec | None, *, attrs: Pad2dAttrs) -> Spec:
        if len(x.shape) != 4 or attrs.data_format not in ("NCHW", "NHWC"):
            raise ShapeError(
                f"pad2d: X has shape {x.shape} and data_format is {attrs.data_format!r}, "
                "expected four dims in the order NCHW or NHWC"
            )
        if attrs.mode not in _MODES:
            raise ShapeError(f"pad2d: mode is {attrs.mode!r}, expected one of {', '.join(_MODES)}")
        if tensor is not None:
            if not (len(tensor.shape) == 1 and can_be_equal(tensor.shape[0], 4)):
                raise ShapeError(f"pad2d: Paddings has shape {tensor.shape}, expected (4,)")
            at = _find_image_dims(attrs.data_format)
            return Spec(tuple(-1 if i in at else d for i, d in enumerate(x.shape)), x.dtype)
        if len(attrs.paddings) != 4:
            raise ShapeError(f"pad2d: paddings are {attrs.paddings}, expected four numbers")
        return Spec(pad_images(x.shape, attrs.paddings, attrs.mode, attrs.data_format)[0], x.dtype)

    @staticmethod
    def forward(x: Array, tensor: Array | None, *, attrs: Pad2dAttrs) -> Array:
        given = read_numbers(attrs.paddings, tensor, None)
        _, widths, kept = pad_images(x.shape, given, attrs.mode, attrs.data_format)
        if attrs.mode == "constant":
            return _pad_constant(x, widths, attrs.pad_value)[kept]
        out = empty_as(x, _pad_shape(x.shape, widths))
        out[_find_interior(widths, x.shape)] = x
        for axis in _find_image_dims(attrs.data_format):  # the second one over the borders of the first
            for place, source in _list_borders(axis, x.shape[axis], widths[axis], attrs.mode):
                out[place] = out[source]
        return out[kept]

    @staticmethod
    def backward(d_out: Array, x: Array, tensor: Array | None, *, attrs: Pad2dAttrs) -> Array:
        given = read_numbers(attrs.paddings, tensor, None)
        shape, widths, kept = pad_images(x.shape, given, attrs.mode, attrs.data_format)
        whole = _pad_shape(x.shape, widths)
        d_padded = d_out
        if shape != whole:
            d_padded = np.zeros(whole, d_out.dtype)
            d_padded[kept] = d_out
        if attrs.mode == "constant":
            return d_padded[_find_interior(widths, x.shape)]
        d_padded = d_padded.copy(order="K")
        for axis in _find_image_dims(attrs.data_format):
            for place, source in _list_borders(axis, x.shape[axis], widths[axis], attrs.mode):
                d_padded[source] += d_padded[place]
        return d_padded[_find_interior(widths, x.shape)]


def pad_images(
    dims: Sequence[int], paddings: Sequence[int], mode: str, data_format: str
) -> tuple[tuple[int, ...], Widths, tuple[slice, ...]]:
    """Return the shape of the result, the borders, and the index in input and output left by negative
    borders.
    """
    given = _find_image_widths(paddings, data_format)
    shape = _pad_shape(dims, given)
    widths, kept = _split_widths(given)
    if any(dim >= 0 and new < 1 and dim for dim, new in zip(dims, shape, strict=True)):
        raise ShapeError(f"pad2d: paddings {list(paddings)} reduce X {list(dims)} to {list(shape)}")
    if mode == "reflect":
        _check_reflection(dims, widths)
    return shape, widths, kept


def _split_widths(given: Widths) -> tuple[Widths, tuple[slice, ...]]:
    """Return the borders to add; and the index of what negative ones leave."""
    widths = [(max(before, 0), max(after, 0)) for before, after in given]
    return widths, tuple(slice(max(-before, 0), None if after >= 0 else after) for before, after in given)


def _find_image_dims(data_format: str) -> tuple[int, int]:
    return (2, 3) if data_format == "NCHW" else (1, 2)


def _find_image_widths(paddings: Sequence[int], data_format: str) -> Widths:
    widths = [(0, 0)] * 4
    for axis, width in zip(_find_image_dims(data_format), _pair_paddings(paddings), strict=True):
        widths[axis] = width
    return widths


def _check_reflection(dims: Sequence[int], widths: Widths) -> None:
    for axis, (dim, width) in enumerate(zip(dims, widths, strict=True)):
        before, after = width
        if dim >= 0 and any(width) and (before > 2 * dim - 2 or after >= dim):
            raise ShapeError(
                f"pad2d: dim {axis} of X {list(dims)} is {dim}, too small to be reflected by {max(width)}"
            )


def _list_borders(
    axis: int, dim: int, width: tuple[int, int], mode: str
) -> list[tuple[tuple[slice | int, ...], tuple[slice | int, ...]]]:
    """Return the indexes of each border of one axis in the padded array, and of their sources."""
    before, after = width
    every = (slice(None),) * axis
    borders = []
    for place in (*range(-before, 0), *range(dim, dim + after)):
        source = (
            min(abs(place), 2 * dim - 2 - abs(place)) if mode == "reflect" else min(max(place, 0), dim - 1)
        )
        borders.append(((*every, before + place), (*every, before + source)))
    return borders


_LATER_MODES: Final[dict[str, Any]] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


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
    given = [(0, 0), *spatial, (0, 0)] if attrs.data_format == "NDHWC" else [(0, 0), (0, 0), *spatial]
    widths, kept = _split_widths(given)
    if attrs.mode == "constant":
        return np.pad(x, widths, constant_values=x.dtype.type(attrs.value))[kept]
    return np.pad(x, widths, _LATER_MODES[attrs.mode])[kept]
