"""The gradient of a convolution with respect to its input, as one convolution for each phase of the stride.

Arrays are contiguous ``(N, H, W, C)``; windows have no dilation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.nn.image.windows import Windows


def convolve_phases(
    d_out: Array,
    w: Array,
    windows: Windows,
    spatial: Sequence[int],
    convolve: Callable[[Array, Array, Windows], Array],
) -> Array:
    """Return the gradient of the input ``(N, *spatial, C)``: the gradient convolved with the flipped filter.

    ``w`` is ``(C, O, h, w)``; ``convolve`` takes an input, a filter and windows.

    Pixels whose positions have the same remainder by the stride form a phase. They meet only every stride-th
    element of the filter, so each phase is a convolution of its own.
    """
    down, right = windows.strides
    dx = np.empty((len(d_out), *spatial, len(w)), np.result_type(d_out, w))
    for i in range(min(down, spatial[0])):
        for j in range(min(right, spatial[1])):
            out = dx[:, i::down, j::right]
            phases = [
                _Phase.of(at, stride, low, kernel, size, number)
                for at, stride, (low, _), kernel, size, number in zip(
                    (i, j),
                    windows.strides,
                    windows.pads,
                    windows.kernel,
                    out.shape[1:3],
                    d_out.shape[1:3],
                    strict=True,
                )
            ]
            top, left = phases
            filters = w[:, :, top.places, left.places]
            if not filters.size:
                out[...] = 0
                continue
            turned = filters[:, :, ::-1, ::-1]
            plain = Windows(turned.shape[2:], (1, 1), (top.pads, left.pads), (1, 1))
            part = convolve(np.ascontiguousarray(d_out[:, top.seen, left.seen]), turned, plain)
            if (down, right) == (1, 1):
                return part
            out[...] = part
    return dx


class _Phase(NamedTuple):
    """One phase along one dim: the elements of filter and gradient for pixels with the same remainder."""

    places: slice
    seen: slice
    pads: tuple[int, int]

    @classmethod
    def of(cls, at: int, stride: int, low: int, kernel: int, size: int, number: int) -> _Phase:
        """Return the phase of the ``size`` pixels ``at``, ``at + stride``, ..."""
        skip, first = divmod(low + at, stride)
        places = len(range(first, kernel, stride))
        before, after = places - 1 - skip, size - 1 + skip - (number - 1)
        seen = slice(max(0, -before), number - max(0, -after))
        return cls(slice(first, None, stride), seen, (max(0, before), max(0, after)))
