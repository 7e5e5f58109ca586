"""Sliding windows over the spatial dims of a batch, for convolutions and pools.

Arrays here are channels first: ``(N, C, *spatial)`` with one, two or three spatial dims.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from paddlelike.core.views import count_steps, view_strided
from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Spec

#: An index of an array.
Index = tuple[Any, ...]


class Windows(NamedTuple):
    """Kernel-sized windows at regular steps; one entry per spatial dim in every field."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    dilations: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        """The span of a window, dilation included."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilations, strict=True))

    def counts(self, spatial: Sequence[int], *, ceil: bool = False) -> tuple[int, ...]:
        """Return the number of windows along each dim, -1 for an unknown dim.

        With ``ceil`` the last window may reach over the padded end. The division rounds to zero, as in C++:
        data smaller than a window by less than a stride have one window.
        """
        slack = [s - 1 if ceil else 0 for s in self.strides]
        return tuple(
            -1 if size < 0 else int((size + low + high - extent + more) / stride) + 1
            for size, (low, high), extent, more, stride in zip(
                spatial, self.pads, self.extent, slack, self.strides, strict=True
            )
        )

    def padded(self, spatial: Sequence[int]) -> tuple[int, ...]:
        """Return the size of each dim with its padding, which holds at least one window."""
        return tuple(
            max(low + n + high, extent)
            for n, (low, high), extent in zip(spatial, self.pads, self.extent, strict=True)
        )

    def interior(self, spatial: Sequence[int]) -> Index:
        """Return the index of the data in a padded array."""
        sides = zip(spatial, self.pads, strict=True)
        return (..., *(slice(max(low, 0), low + n + min(high, 0)) for n, (low, high) in sides))

    def kept(self, spatial: Sequence[int]) -> Index:
        """Return the index of the data that negative paddings leave."""
        sides = zip(spatial, self.pads, strict=True)
        return (..., *(slice(max(-low, 0), n + min(high, 0)) for n, (low, high) in sides))

    def without_cuts(self) -> Windows | None:
        """Return the windows over the data that negative paddings leave, or None without such paddings."""
        if min(map(min, self.pads)) >= 0:
            return None
        return self._replace(pads=tuple((max(low, 0), max(high, 0)) for low, high in self.pads))

    def pad(self, x: Array, value: float = 0.0) -> Array:
        """Return ``x`` with its padding; ``x`` itself when there is none."""
        spatial = x.shape[2:]
        padded = self.padded(spatial)
        if padded == spatial and not any(map(any, self.pads)):
            return x
        out = np.full((*x.shape[:2], *padded), value, x.dtype)
        out[self.interior(spatial)] = x[self.kept(spatial)]
        return out

    def crop(self, x: Array, spatial: Sequence[int]) -> Array:
        """Return the inverse of :meth:`pad`, a view; zeros where negative paddings cut elements off."""
        if min(map(min, self.pads)) >= 0:
            return x[self.interior(spatial)]
        out = np.zeros((*x.shape[:2], *spatial), x.dtype)
        out[self.kept(spatial)] = x[self.interior(spatial)]
        return out

    def offsets(self, count: Sequence[int]) -> Iterator[tuple[Any, Any]]:
        """Yield, in C order, the index of every kernel element and of the elements of ``x`` that it
        multiplies.
        """
        for place in itertools.product(*map(range, self.kernel)):
            starts = [p * d for p, d in zip(place, self.dilations, strict=True)]
            where = (
                slice(start, start + (n - 1) * stride + 1, stride)
                for start, n, stride in zip(starts, count, self.strides, strict=True)
            )
            yield (slice(None), slice(None), *place), (..., *where)

    def unfold(self, x: Array) -> Array:
        """Return all windows of a padded array as a view ``(N, C, *kernel, *count)``."""
        count = self._replace(pads=((0, 0),) * len(self.kernel)).counts(x.shape[2:])
        by_image, by_channel, *steps = count_steps(x.shape)
        between_places = (d * step for d, step in zip(self.dilations, steps, strict=True))
        between_windows = (s * step for s, step in zip(self.strides, steps, strict=True))
        return view_strided(
            np.ascontiguousarray(x),
            (*x.shape[:2], *self.kernel, *count),
            (by_image, by_channel, *between_places, *between_windows),
        )

    def fold_into(self, x: Array, windows: Array) -> None:
        """Add windows ``(N, C, *kernel, *count)`` to the elements of ``x`` that they came from."""
        count = windows.shape[2 + len(self.kernel) :]
        for place, where in self.offsets(count):
            x[where] += windows[place]


def make_windows(
    op: str,
    spatial: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int] | None = None,
    algorithm: str = "EXPLICIT",
) -> Windows:
    """Return the windows that an operator's attributes describe for data of these spatial dims.

    ``paddings`` holds one number per dim, or two (before, after). VALID does not pad. SAME pads so that every
    ``stride``-th element is the middle of a window, and by default sets the dilation to 1, as in Paddle.

    Raises ShapeError when an attribute has a wrong length.
    """
    rank = len(spatial)
    dilations = (1,) * rank if dilations is None else dilations
    for name, given in (("kernel", kernel), ("strides", strides), ("dilations", dilations)):
        if len(given) != rank or min(given) < 1:
            raise ShapeError(f"{op}: {name} is {list(given)}; it needs {rank} positive numbers")
    if algorithm == "SAME":
        if follows_fluid("same_padding_dilation"):
            dilations = (1,) * rank
        spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
        pads = tuple(_pad_same(n, k, s) for n, k, s in zip(spatial, spans, strides, strict=True))
        return Windows(tuple(kernel), tuple(strides), pads, tuple(dilations))
    if algorithm == "VALID":
        pads = ((0, 0),) * rank
    elif len(paddings) == rank:
        pads = tuple((p, p) for p in paddings)
    elif len(paddings) == 2 * rank:
        pads = tuple(zip(paddings[::2], paddings[1::2], strict=True))
    else:
        raise ShapeError(f"{op}: paddings is {list(paddings)}; {rank} spatial dims need {rank} or {2 * rank}")
    return Windows(tuple(kernel), tuple(strides), pads, tuple(dilations))


def _pad_same(size: int, kernel: int, stride: int) -> tuple[int, int]:
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0) if size >= 0 else 0
    return total // 2, total - total // 2


def check_image(op: str, x: Spec) -> None:
    """Raise ShapeError unless X has four dims."""
    if len(x.shape) != 4:
        raise ShapeError(f"{op}: X has shape {x.shape}; it needs 4 dims (N, C, H, W)")


def is_channels_last(data_format: str) -> bool:
    """Return whether the channels are the last dim (NHWC, NDHWC)."""
    return data_format in ("NHWC", "NDHWC")


def has_windows(spatial: Sequence[int], counts: Sequence[int]) -> bool:
    """Return whether there is a window along each dim of a known size."""
    return all(size < 0 or count > 0 for size, count in zip(spatial, counts, strict=True))


def to_channels_first(x: Array, data_format: str) -> Array:
    """Return an array in a data format as a view ``(N, C, *spatial)``."""
    return np.moveaxis(x, -1, 1) if is_channels_last(data_format) else x


def to_format(x: Array, data_format: str) -> Array:
    """Return an array ``(N, C, *spatial)`` in a data format, contiguous: undoes :func:`to_channels_first`."""
    return np.ascontiguousarray(np.moveaxis(x, 1, -1)) if is_channels_last(data_format) else x
