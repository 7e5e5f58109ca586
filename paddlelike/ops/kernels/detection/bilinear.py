"""Values of images between their pixels, at many points; and the sums that are their gradients.

Images are rows here, (pixels, C): the channels of a pixel lie together, so that a point reads four rows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array

_CHUNK: Final = 1 << 19  # bytes of values that are worked on at once: they stay in the cache


class Points(NamedTuple):
    """P points: the four pixels around each and how much of them it takes; all of shape (4, P).

    ``d_y`` and ``d_x`` are the derivatives of the weights by the place of the point.
    """

    pixel: Array
    weight: Array
    d_y: Array
    d_x: Array

    def read(self, rows: Array) -> Array:
        """Return the value at each point, (P, C)."""
        out = np.zeros((self.pixel.shape[1], rows.shape[1]), rows.dtype)
        step = max(1, _CHUNK // max(1, rows[:1].nbytes))
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            for pixel, weight in zip(self.pixel[:, part], self.weight[:, part], strict=True):
                out[part] += rows[pixel] * weight[:, None]
        return out

    def read_slopes(self, rows: Array, d_out: Array) -> tuple[Array, Array]:
        """Return, for gradients (P, C) of the values, those of the places: by y and by x, (P,) each."""
        d_y, d_x = np.zeros((2, self.pixel.shape[1]), rows.dtype)
        for pixel, by_y, by_x in zip(self.pixel, self.d_y, self.d_x, strict=True):
            along = np.einsum("pc,pc->p", rows[pixel], d_out)
            d_y += by_y * along
            d_x += by_x * along
        return d_y, d_x

    def add_to(self, total: Array, d_out: Array) -> None:
        """Add the gradients (P, C) of the values to those of the rows."""
        for pixel, weight in zip(self.pixel, self.weight, strict=True):
            add_rows(total, pixel, d_out * weight[:, None])


def surround(y: Array, x: Array, height: int, width: int, inside: Array) -> Points:
    """Return points (P,) of an image of that size; pixels outside, and points not ``inside``, count as 0."""
    top, left = np.floor(y), np.floor(x)
    down, right = y - top, x - left
    ends = []
    for row, near_y, slope_y in ((top, 1 - down, -1), (top + 1, down, 1)):
        for column, near_x, slope_x in ((left, 1 - right, -1), (left + 1, right, 1)):
            valid = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            pixel = np.where(valid, row * width + column, 0).astype(np.int64)
            ends.append((pixel, near_y * near_x * valid, slope_y * near_x * valid, slope_x * near_y * valid))
    return Points(*(np.stack(parts) for parts in zip(*ends, strict=True)))


def to_rows(x: Array) -> Array:
    """Return an image (C, H, W) as rows (H * W, C), contiguous."""
    return np.ascontiguousarray(x.reshape(len(x), -1).T)


def from_rows(rows: Array, shape: tuple[int, ...]) -> Array:
    """Return rows (H * W, C) as an image of shape (C, H, W): undoes :func:`to_rows`."""
    return rows.T.reshape(shape)


def add_rows(total: Array, index: Array, rows: Array) -> None:
    """Add rows to ``total[index]``, also where an index comes several times."""
    if not len(index):
        return
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    total[ordered[first]] += np.add.reduceat(rows[order], first, axis=0)
