"""Convolution as one matrix product per image, and its two gradients.

The windows of an image are unfolded into a matrix ``(C * kernel, count)``, which the filter
``(O, C * kernel)`` multiplies from the left. Only a few images are unfolded at a time, so that the
matrix stays in the cache. ``x`` is ``(N, C, *spatial)``, ``w`` is ``(O, C / groups, *kernel)``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.nn.image.windows import Windows
from paddlelike.ops.kernels.threads import consume, map_parts

_CHUNK: Final = 1 << 20  # bytes of unfolded windows that are worked on at once: they stay in the cache


def convolve(x: Array, w: Array, windows: Windows, groups: int) -> Array:
    """``out[n, o, p] = sum over c, k of w[o, c, k] x[n, c, p * stride + k * dilation]``."""
    count = windows.counts(x.shape[2:])
    unfolded = _group(windows.unfold(windows.pad(x)), groups)
    filters = w.reshape(groups, len(w) // groups, -1)
    out = np.empty((len(x), groups, len(w) // groups, *count), np.result_type(x, w))

    def work(part: Part) -> None:
        images, chosen, rows = part
        matrices = _unfold_matrices(unfolded[images, chosen], rows, len(count))
        result = out[images, chosen, :, rows]
        if result.shape[3] == count[0]:
            np.matmul(filters[chosen], matrices, out=result.reshape(*result.shape[:3], -1))
        else:
            result[...] = (filters[chosen] @ matrices).reshape(result.shape)

    consume(map_parts(work, _split(len(x), groups, count, filters.shape[2] * x.itemsize)))
    return out.reshape(len(x), len(w), *count)


def convolve_dw(x: Array, d_out: Array, windows: Windows, groups: int) -> Array:
    """Return the gradient of the filter: ``sum over n, p of d_out[n, o, p] x[n, c, ...]``."""
    count = d_out.shape[2:]
    channels = d_out.shape[1]
    unfolded = _group(windows.unfold(windows.pad(x)), groups)
    grads = _group(d_out, groups)
    width = x.shape[1] // groups * math.prod(windows.kernel)
    total = np.zeros((groups, channels // groups, width), d_out.dtype)

    def work(part: Part) -> tuple[slice, Array]:
        images, chosen, rows = part
        matrices = _unfold_matrices(unfolded[images, chosen], rows, len(count))
        above = grads[images, chosen, :, rows].reshape(*matrices.shape[:2], channels // groups, -1)
        return chosen, (above @ matrices.swapaxes(-1, -2)).sum(0)

    for chosen, product in map_parts(work, _split(len(x), groups, count, width * x.itemsize)):
        total[chosen] += product
    return total.reshape(channels, -1, *windows.kernel)


def convolve_dx(d_out: Array, w: Array, windows: Windows, groups: int, spatial: Sequence[int]) -> Array:
    """Return the gradient of the input, whose spatial dims are ``spatial``."""
    count = d_out.shape[2:]
    channels = w.shape[1] * groups
    filters = w.reshape(groups, len(w) // groups, -1).swapaxes(-1, -2)
    grads = _group(d_out, groups)
    total = np.zeros((len(d_out), channels, *windows.padded(spatial)), np.result_type(d_out, w))
    places = _group(total, groups)

    def work(parts: list[Part]) -> None:
        for images, chosen, rows in parts:
            above = grads[images, chosen, :, rows]
            above = above.reshape(*above.shape[:3], -1)
            # One filter per group: an outer product, for which matmul is four times slower.
            outer = filters.shape[-1] == 1
            matrices = filters[chosen] * above if outer else filters[chosen] @ above
            first, last, _ = rows.indices(count[0])
            reach = places[images, chosen, :, first * windows.strides[0] :]
            shape = (*reach.shape[:3], *windows.kernel, last - first, *count[1:])
            _fold_into(reach, matrices.reshape(shape), windows)

    parts = _split(len(d_out), groups, count, filters.shape[1] * d_out.itemsize)
    consume(map_parts(work, _join_rows(parts)))
    return np.ascontiguousarray(windows.crop(total, spatial))


Part = tuple[slice, slice, slice]  # images, groups, and rows: the first of the spatial dims of the output


def _split(batch: int, groups: int, count: Sequence[int], size: int) -> list[Part]:
    """Return parts whose windows, ``size`` bytes each, fit into the cache together.

    A part is several images, some groups of one image, or some rows of a group.
    """
    group = size * math.prod(count)
    images = max(1, _CHUNK // max(1, group * groups))
    chosen = max(1, min(groups, _CHUNK // max(1, group)))
    rows = max(1, min(count[0], _CHUNK * count[0] // max(1, group)))
    return [
        (slice(image, image + images), slice(first, first + chosen), slice(row, min(row + rows, count[0])))
        for image in range(0, batch, images)
        for first in range(0, groups, chosen)
        for row in range(0, count[0], rows)
    ]


def _join_rows(parts: list[Part]) -> list[list[Part]]:
    """Return lists of the parts that share images and groups, so that their windows overlap."""
    return [list(some) for _, some in itertools.groupby(parts, lambda part: (part[0].start, part[1].start))]


def _fold_into(x: Array, unfolded: Array, windows: Windows) -> None:
    """Add windows ``(n, groups, C / groups, *kernel, *count)`` to the elements they come from."""
    for place, where in windows.offsets(unfolded.shape[3 + len(windows.kernel) :]):
        x[where] += unfolded[(slice(None), *place)]


def _group(x: Array, groups: int) -> Array:
    """Return ``(N, groups, C / groups, ...)``, a view."""
    return x.reshape(len(x), groups, x.shape[1] // groups, *x.shape[2:])


def _unfold_matrices(unfolded: Array, rows: slice, rank: int) -> Array:
    """Return ``(n, groups, C / groups * kernel, count)`` for some rows, copied unless the kernel is 1x1."""
    some = unfolded[(slice(None),) * (3 + rank) + (rows,)]
    return some.reshape(*some.shape[:2], math.prod(some.shape[2 : 3 + rank]), -1)
