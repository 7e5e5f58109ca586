"""Arithmetic of pools: reduce windows, distribute gradients over them, find their first maximum.

Arrays are ``(N, C, *spatial)``. A window is the product of one span per dim, so maxima and sums are computed
dim by dim. Regular spans are processed together, one element of the kernel after another. Uneven spans
(adaptive pools), and spans fewer than the elements of the kernel, are processed one by one.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array, Kernel
from paddlelike.ops.kernels.fast import pools as fast
from paddlelike.ops.kernels.fast.late import FastKernel
from paddlelike.ops.kernels.nn.image.layouts import (
    as_channels_last,
    as_layout_of,
    empty_as,
    full_as,
    is_last_in_memory,
    view_channels_first,
)
from paddlelike.ops.kernels.nn.image.windows import Index, Windows

_CHUNK = 1 << 21  # bytes of data that are worked on at once, so that they stay in the cache


class Axis(NamedTuple):
    """The spans of the windows along one dim of the padded data."""

    size: int  # of the data
    pad: tuple[int, int]
    spans: list[tuple[int, int]]
    stride: int | None = None  # None: the spans are uneven

    @property
    def padded(self) -> int:
        return self.pad[0] + self.size + self.pad[1]

    @property
    def clipped(self) -> list[tuple[int, int]]:
        """The spans without padding, counted from the start of the data."""
        low = self.pad[0]
        return [(max(a - low, 0), min(b - low, self.size)) for a, b in self.spans]

    @property
    def kernel(self) -> int:
        return self.spans[0][1] - self.spans[0][0]

    @property
    def is_by_offset(self) -> bool:
        """Whether to loop over the offsets in the kernel rather than over the spans."""
        return self.stride is not None and self.kernel < len(self.spans)

    def at(self, place: int) -> slice:
        """Return the indices of the elements at one offset of all windows."""
        assert self.stride is not None
        first = self.spans[0][0] + place
        return slice(first, first + (len(self.spans) - 1) * self.stride + 1, self.stride)


def make_regular(windows: Windows, spatial: Sequence[int], counts: Sequence[int]) -> list[Axis]:
    """Return windows at regular steps; the data is padded further if the last ones extend beyond the end."""
    axes = []
    for size, count, kernel, stride, (low, high) in zip(
        spatial, counts, windows.kernel, windows.strides, windows.pads, strict=True
    ):
        first, low = max(-low, 0), max(low, 0)  # a negative padding leaves elements out
        spans = [(first + i * stride, first + i * stride + kernel) for i in range(count)]
        reach = spans[-1][1] - low - size
        axes.append(Axis(size, (low, max(high, reach, 0)), spans, stride))
    return axes


def make_adaptive(spatial: Sequence[int], counts: Sequence[int]) -> list[Axis]:
    """Return the requested number of windows, as even as possible; neighbours may share an element."""
    axes = []
    for size, count in zip(spatial, counts, strict=True):
        spans = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
        axes.append(Axis(size, (0, 0), spans, None if size % count else size // count))
    return axes


def maximum(x: Array, axes: Sequence[Axis]) -> Array:
    """Return the maximum of every window."""
    if (kernel := _choose(fast.find_maxima, x, axes, 32)) is not None:
        (rows, columns), last = axes, as_channels_last(x)
        highest = np.empty((len(x), len(rows.spans), len(columns.spans), x.shape[1]), x.dtype)
        kernel(last, *_describe(axes), np.finfo(x.dtype).min, highest)
        return view_channels_first(highest)
    return _reduce(x, axes, np.maximum, np.finfo(x.dtype).min)


def average(x: Array, axes: Sequence[Axis], *, exclusive: bool) -> Array:
    """Return the mean of every window; with ``exclusive`` padding does not count."""
    if _is_whole(axes) and x.flags.c_contiguous and not is_last_in_memory(x):
        planes = x.reshape(-1, math.prod(x.shape[2:]))
        out = (planes @ np.ones(planes.shape[1], x.dtype)).reshape(*x.shape[:2], *(1 for _ in axes))
    else:
        out = _reduce(x, axes, np.add, 0)
    out /= count_elements(axes, x.dtype, exclusive=exclusive)  # as in Fluid, 0 / 0 beyond the data
    return out


def average_dx(d_out: Array, axes: Sequence[Axis], *, exclusive: bool) -> Array:
    """Return the gradient of :func:`average`."""
    dx = empty_as(d_out, (*d_out.shape[:2], *(axis.size for axis in axes)))
    counts = count_elements(axes, d_out.dtype, exclusive=exclusive)
    for part in _split(dx):
        dx[part] = _average_dx(d_out[part] / counts, axes)
    return dx


def _average_dx(dx: Array, axes: Sequence[Axis]) -> Array:
    """Distribute values over their windows and sum them."""
    for dim, axis in reversed(list(enumerate(axes, 2))):
        spread = full_as(dx, (*dx.shape[:dim], axis.padded, *dx.shape[dim + 1 :]), 0)
        if axis.is_by_offset:
            for place in range(axis.kernel):
                spread[_index_along(dim, axis.at(place))] += dx
        else:
            for i, (start, stop) in enumerate(axis.spans):
                spread[_index_along(dim, slice(start, stop))] += dx[_index_along(dim, slice(i, i + 1))]
        dx = spread
    return dx[_index_data(axes)]


def maximum_dx(x: Array, out: Array, d_out: Array, axes: Sequence[Axis]) -> Array:
    """Return the gradient of :func:`maximum`, which goes to the first maximum of a window, in C order."""
    if not _is_by_offset(axes):
        x = np.ascontiguousarray(x)
        if out.size and _is_whole(axes) and not np.isnan(out).any():
            return _whole_maximum_dx(x, out, d_out)
        return scatter(first_maxima(x, out, axes), d_out, x.shape)
    disjoint = all(axis.stride is not None and axis.stride >= axis.kernel for axis in axes)
    if not disjoint:
        x = _put_channels_last(x)
    if (kernel := _choose(fast.find_maxima_dx, x, axes, 16)) is not None and d_out.dtype == x.dtype:
        last, highest, given = (np.require(as_channels_last(a), None, ("C", "W")) for a in (x, out, d_out))
        spread = np.zeros_like(last)
        kernel(last, highest, given, *_describe(axes), spread)
        return view_channels_first(spread)
    out, d_out = as_layout_of(x, out), as_layout_of(x, d_out)
    dx = empty_as(x, x.shape, d_out.dtype)
    for part in _split(x):
        dx[part] = _maximum_dx(x[part], out[part], d_out[part], axes, disjoint=disjoint)
    return dx


def _whole_maximum_dx(x: Array, out: Array, d_out: Array) -> Array:
    """Return :func:`maximum_dx` for a single window over all data in C order, without NaN."""
    planes = x.reshape(out.size, -1)
    hits = np.flatnonzero(planes == out.reshape(-1, 1))
    windows = hits // planes.shape[1]
    first = hits[np.concatenate(([True], windows[1:] != windows[:-1]))]
    dx = np.zeros(x.shape, d_out.dtype)
    dx.reshape(-1)[first] = d_out.reshape(-1)
    return dx


def _choose(kernel: FastKernel, x: Array, axes: Sequence[Axis], channels: int) -> Kernel | None:
    """Return the compiled kernel, or None unless the channels are last in memory and at least ``channels``
    many.
    """
    if len(axes) != 2 or not is_last_in_memory(x) or x.shape[1] < channels:
        return None
    if not all(axis.stride is not None for axis in axes):
        return None
    return kernel.choose(x.size, as_channels_last(x))


def _describe(axes: Sequence[Axis]) -> list[int]:
    """Return heights, strides and paddings in the form of the compiled kernels."""
    strides = (axis.stride or 0 for axis in axes)
    return [*(axis.kernel for axis in axes), *strides, *(axis.pad[0] - axis.spans[0][0] for axis in axes)]


def _maximum_dx(x: Array, out: Array, d_out: Array, axes: Sequence[Axis], *, disjoint: bool) -> Array:
    padded = _pad(x, axes, np.finfo(x.dtype).min)
    dx = full_as(padded, padded.shape, 0, d_out.dtype)
    left = full_as(out, out.shape, True, np.bool_)  # windows whose maximum was not met yet
    for place in _list_offsets(axes):
        where = _index_elements(axes, place)
        hit = padded[where] == out
        hit &= left
        left ^= hit
        if disjoint:
            np.multiply(d_out, hit, out=dx[where])
        else:
            dx[where] += d_out * hit
    return dx[_index_data(axes)]


def first_maxima(x: Array, out: Array, axes: Sequence[Axis]) -> Array:
    """Return the index of the first maximum of every window in the flat spatial dims, int32.

    It is -1 for a window beyond the data.
    """
    index = np.full(out.shape, -1, np.int32)
    if _is_by_offset(axes):
        padded = _pad(x, axes, np.finfo(x.dtype).min)
        for place in reversed(list(_list_offsets(axes))):
            starts = [
                [a + p - axis.pad[0] for a, _ in axis.spans] for axis, p in zip(axes, place, strict=True)
            ]
            hit = padded[_index_elements(axes, place)] == out
            np.copyto(index, flatten_indices(starts, axes), where=hit)
        index[~(out > np.finfo(x.dtype).min)] = -1  # beyond the data, of infinities, or NaN
        return index
    for cell in itertools.product(*(range(len(axis.spans)) for axis in axes)):
        spans = [axis.clipped[i] for axis, i in zip(axes, cell, strict=True)]
        where: Any = (..., *(slice(*span) for span in spans))
        window = x[where]
        if not window.size:  # with ceil, the last window may lie beyond the data
            continue
        inside = np.unravel_index(window.reshape(*x.shape[:2], -1).argmax(-1), window.shape[2:])
        at = tuple(i + start for i, (start, _) in zip(inside, spans, strict=True))
        target: Any = (..., *cell)
        index[target] = np.ravel_multi_index(at, x.shape[2:])
    index[~(out > np.finfo(x.dtype).min)] = -1
    return index


def scatter(index: Array, d_out: Array, shape: Sequence[int]) -> Array:
    """Return zeros of ``shape`` with ``d_out`` added at the indexes that :func:`first_maxima` found."""
    dx = np.zeros(shape, d_out.dtype)
    planes = math.prod(shape[:2])
    first = np.arange(planes).reshape(-1, 1) * math.prod(shape[2:])
    flat = (index.reshape(planes, math.prod(index.shape[2:])) + first).reshape(-1)
    inside = index.reshape(-1) >= 0
    np.add.at(dx.reshape(-1), flat[inside], d_out.reshape(-1)[inside])
    return dx


def _reduce(x: Array, axes: Sequence[Axis], ufunc: np.ufunc, fill: Any) -> Array:
    """Reduce each window to one element; ``fill`` is the padding."""
    if not all(axis.is_by_offset for axis in axes):
        x = _put_channels_last(x)
    out = empty_as(x, (*x.shape[:2], *(len(axis.spans) for axis in axes)))
    for part in _split(x):
        out[part] = _reduce_dims(_pad(x[part], axes, fill), axes, ufunc)
    return out


def _reduce_dims(x: Array, axes: Sequence[Axis], ufunc: np.ufunc) -> Array:
    for dim, axis in enumerate(axes, 2):
        if axis.is_by_offset:
            out = np.copy(x[_index_along(dim, axis.at(0))])  # in the order of memory of x
            for place in range(1, axis.kernel):
                ufunc(out, x[_index_along(dim, axis.at(place))], out=out)
        else:
            spans = (x[_index_along(dim, slice(*span))] for span in axis.spans)
            out = np.stack([ufunc.reduce(part, dim) for part in spans], dim)
        x = out
    return x


def count_elements(axes: Sequence[Axis], dtype: Any, *, exclusive: bool) -> Array | float:
    """Return the number of elements of every window, ``(*counts)``."""
    if not exclusive:
        return float(math.prod(axis.kernel for axis in axes))
    sides = [np.array([b - a for a, b in axis.clipped], dtype) for axis in axes]
    return functools.reduce(np.multiply.outer, sides)


def _pad(x: Array, axes: Sequence[Axis], value: Any) -> Array:
    if not any(any(axis.pad) for axis in axes):
        return x
    out = full_as(x, (*x.shape[:2], *(axis.padded for axis in axes)), value)
    out[_index_data(axes)] = x
    return out


def _put_channels_last(x: Array) -> Array:
    """Return ``x`` with channels last in memory, where short windows become long loops over channels."""
    return x if is_last_in_memory(x) else view_channels_first(as_channels_last(x))


def _split(x: Array) -> Iterator[slice]:
    """Yield groups of images that fit into the cache."""
    step = max(1, _CHUNK // max(1, x[:1].nbytes))
    for start in range(0, len(x), step):
        yield slice(start, start + step)


def _index_data(axes: Sequence[Axis]) -> Index:
    return (..., *(slice(axis.pad[0], axis.pad[0] + axis.size) for axis in axes))


def _index_along(dim: int, where: slice) -> Index:
    return (*(slice(None),) * dim, where)


def _is_by_offset(axes: Sequence[Axis]) -> bool:
    """Return whether to loop over the offsets in the kernel rather than over the windows."""
    return all(axis.stride is not None for axis in axes) and math.prod(
        axis.kernel for axis in axes
    ) < math.prod(len(axis.spans) for axis in axes)


def _is_whole(axes: Sequence[Axis]) -> bool:
    """Return whether there is one window, which holds the whole data without padding."""
    return all(axis.spans == [(0, axis.size)] and axis.pad == (0, 0) for axis in axes)


def _list_offsets(axes: Sequence[Axis]) -> Iterable[tuple[int, ...]]:
    return itertools.product(*(range(axis.kernel) for axis in axes))


def _index_elements(axes: Sequence[Axis], place: Sequence[int]) -> Index:
    return (..., *(axis.at(p) for axis, p in zip(axes, place, strict=True)))


def flatten_indices(places: Sequence[Sequence[int]], axes: Sequence[Axis]) -> Array:
    """Return the flat index of every combination of indices, given as one list per dim."""
    flat: Array = np.zeros((), np.int32)
    for axis, along in zip(axes, places, strict=True):
        flat = np.add.outer(flat * axis.size, np.array(along, np.int32))
    return flat
