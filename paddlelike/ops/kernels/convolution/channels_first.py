"""Convolution as one matrix product per image, and its two gradients.

The windows of an image are unfolded into a matrix ``(C * kernel, count)``, which the filter
``(O, C * kernel)`` multiplies from the left. Only a few images are unfolded at a time, so that the
matrix stays in the cache. ``x`` is ``(N, C, *spatial)``, ``w`` is ``(O, C / groups, *kernel)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.threads import consume, map_parts
from paddlelike.ops.kernels.windows import Windows

__all__ = ["convolve", "convolve_dw", "convolve_dx"]


def convolve(x: Array, w: Array, windows: Windows, groups: int) -> Array:
    """``out[n, o, p] = sum over c, k of w[o, c, k] x[n, c, p * stride + k * dilation]``."""
    count = windows.counts(x.shape[2:])
    unfolded = windows.unfold(windows.pad(x))
    filters = w.reshape(groups, len(w) // groups, -1)
    out = np.empty((len(x), groups, len(w) // groups, math.prod(count)), np.result_type(x, w))

    def work(part: slice) -> None:
        np.matmul(filters, _unfold_matrices(unfolded[part], groups, len(count)), out=out[part])

    consume(map_parts(work, windows.chunks(len(x), x.shape[1], count, x.itemsize)))
    return out.reshape(len(x), len(w), *count)


def convolve_dw(x: Array, d_out: Array, windows: Windows, groups: int) -> Array:
    """Return the gradient of the filter: ``sum over n, p of d_out[n, o, p] x[n, c, ...]``."""
    count = d_out.shape[2:]
    channels = d_out.shape[1]
    unfolded = windows.unfold(windows.pad(x))
    grads = d_out.reshape(len(x), groups, channels // groups, -1)
    total: Array = np.zeros((), d_out.dtype)

    def work(part: slice) -> Array:
        matrices = _unfold_matrices(unfolded[part], groups, len(count))
        product: Array = (grads[part] @ matrices.swapaxes(-1, -2)).sum(0)
        return product

    for product in map_parts(work, windows.chunks(len(x), x.shape[1], count, x.itemsize)):
        total = total + product
    return total.reshape(channels, -1, *windows.kernel)


def convolve_dx(d_out: Array, w: Array, windows: Windows, groups: int, spatial: Sequence[int]) -> Array:
    """Return the gradient of the input, whose spatial dims are ``spatial``."""
    count = d_out.shape[2:]
    channels = w.shape[1] * groups
    filters = w.reshape(groups, len(w) // groups, -1).swapaxes(-1, -2)
    grads = d_out.reshape(len(d_out), groups, len(w) // groups, -1)
    total = np.zeros((len(d_out), channels, *windows.padded(spatial)), np.result_type(d_out, w))

    def work(part: slice) -> None:
        # One filter per group: an outer product, for which matmul is four times slower.
        outer = filters.shape[-1] == 1
        matrices = filters * grads[part] if outer else filters @ grads[part]
        windows.fold_into(total[part], matrices.reshape(-1, channels, *windows.kernel, *count))

    consume(map_parts(work, windows.chunks(len(d_out), channels, count, d_out.itemsize)))
    return np.ascontiguousarray(windows.crop(total, spatial))


def _unfold_matrices(unfolded: Array, groups: int, rank: int) -> Array:
    """``(n, groups, C / groups * kernel, count)``; a copy, except where a 1x1 kernel needs none."""
    channels = unfolded.shape[1] // groups
    rows = channels * math.prod(unfolded.shape[2 : 2 + rank])
    return unfolded.reshape(len(unfolded), groups, rows, -1)
