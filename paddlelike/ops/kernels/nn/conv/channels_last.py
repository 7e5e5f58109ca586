"""Convolution of images with channels last in memory, as matrix products, and its two gradients.

The windows of some rows of an image are copied into a matrix ``(windows, kernel * C)``; a row of a window is
one run of memory. The product with the filter ``(kernel * C, O)`` is the output in its memory order. The
matrix stays in the cache and is reused for the next rows. With a stride of 1, the gradient of the input is
the padded gradient convolved with the flipped filter. Arrays ``x`` and ``d_out`` are contiguous ``(N, H, W,
C)``, ``w`` is ``(O, C, h, w)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from paddlelike.core.views import count_steps, view_strided
from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.linalg import multiply
from paddlelike.ops.kernels.nn.conv import tiles, winograd
from paddlelike.ops.kernels.nn.conv.phases import convolve_phases
from paddlelike.ops.kernels.nn.image.windows import Windows
from paddlelike.ops.kernels.threads import consume, map_parts

Part = tuple[slice, slice]  # images, and rows of their outputs
Result = TypeVar("Result")

_CHUNK: Final = 512 << 10  # bytes of unfolded windows that are worked on at once
_ROWS: Final = 256  # fewest windows in a product: below, BLAS reads the filter more than it multiplies
_ROWS_DW: Final = 1024  # fewest in a product that is added to the gradient of the filter
_WASTE: Final = 1.5  # times as many products as needed, from which on adding up products of windows is faster
_SHORT: Final = 12  # elements; shorter runs are copied along the columns of the image instead


def convolve(x: Array, w: Array, windows: Windows) -> Array:
    """Return ``(N, H', W', O)``: ``out[n, p, o] = sum over k, c of w[o, c, k] x[n, p * stride + k, c]``."""
    if tiles.pays(x, w, len(w), windows):
        return tiles.convolve(x, w, windows)
    if winograd.pays(x, w, windows):
        return winograd.convolve(x, w, windows)
    count = windows.counts(x.shape[1:3])
    out = np.empty((len(x), *count, len(w)), np.result_type(x, w))
    if is_pixelwise(windows):
        multiply(take_pixels(x, windows), w.reshape(len(w), -1).T, out=out.reshape(-1, len(w)))
        return out
    if _has_short_runs(x, windows):
        matrix = w.reshape(len(w), -1).T

        def multiply_columns(images: slice, columns: Array) -> None:
            np.matmul(columns.swapaxes(1, 2), matrix, out=out[images].reshape(len(columns), -1, len(w)))

        consume(_map_columns(multiply_columns, x, windows, count, _ROWS))
        return out
    matrix = np.ascontiguousarray(w.transpose(2, 3, 1, 0)).reshape(-1, len(w))

    def multiply_rows(part: Part, unfolded: Array) -> None:
        np.matmul(unfolded, matrix, out=out[part].reshape(-1, len(w)))

    consume(map_rows(multiply_rows, x, windows, count, _ROWS))
    return out


def convolve_dw(x: Array, d_out: Array, windows: Windows) -> Array:
    """Return the gradient of the filter ``(O, C, h, w)``."""
    filters, channels = d_out.shape[-1], x.shape[-1]
    if tiles.pays(x, d_out, filters, windows) and d_out.flags.carray:
        return tiles.convolve_dw(x, d_out, windows)
    if is_pixelwise(windows):
        matrix = multiply(d_out.reshape(-1, filters).T, take_pixels(x, windows))
        return matrix.reshape(filters, channels, *windows.kernel)
    count = d_out.shape[1:3]
    if _has_short_runs(x, windows):
        total: Array = np.zeros((channels * math.prod(windows.kernel), filters), d_out.dtype)

        def multiply_columns(images: slice, columns: Array) -> Array:
            product: Array = (columns @ d_out[images].reshape(len(columns), -1, filters)).sum(0)
            return product

        for product in _map_columns(multiply_columns, x, windows, count, _ROWS):
            total += product
        return np.ascontiguousarray(total.T).reshape(filters, channels, *windows.kernel)

    def multiply_rows(part: Part, unfolded: Array) -> Array:
        return unfolded.T @ d_out[part].reshape(-1, filters)

    total = np.zeros((0, filters), d_out.dtype)
    for product in map_rows(multiply_rows, x, windows, count, _ROWS_DW):
        if len(total):
            total += product
        else:
            total = product
    if not len(total):  # an empty batch
        return np.zeros((filters, channels, *windows.kernel), d_out.dtype)
    return np.ascontiguousarray(total.reshape(*windows.kernel, channels, filters).transpose(3, 2, 0, 1))


def convolve_dx(d_out: Array, w: Array, windows: Windows, spatial: Sequence[int]) -> Array:
    """Return the gradient of the input ``(N, *spatial, C)``."""
    count = d_out.shape[1:3]
    steps = math.prod(windows.strides)
    wasted = math.prod(spatial) / max(1, steps * math.prod(count))  # products with zeros around d_out
    if windows.dilations == (1, 1) and wasted <= _WASTE:
        return convolve_phases(d_out, w.swapaxes(0, 1), windows, spatial, convolve)
    return _fold_products(d_out, w, windows, spatial)


def _fold_products(d_out: Array, w: Array, windows: Windows, spatial: Sequence[int]) -> Array:
    """Multiply the gradient by the filter and add the products to the pixels of their windows."""
    filters, channels = w.shape[:2]
    count = d_out.shape[1:3]
    total = np.zeros((len(d_out), *windows.padded(spatial), channels), np.result_type(d_out, w))
    matrix = np.ascontiguousarray(w.transpose(0, 2, 3, 1)).reshape(filters, -1)
    size = matrix.shape[1] * d_out.itemsize
    for part, (first, rows) in _split(len(d_out), count, size, _ROWS):
        product = d_out[part].reshape(-1, filters) @ matrix
        unfolded = product.reshape(-1, rows, count[1], *windows.kernel, channels)
        images = total[part[0], first * windows.strides[0] :]
        for place, where in _iterate_places(windows, (rows, count[1])):
            images[where] += unfolded[(..., *place, slice(None))]
    (top, _), (left, _) = windows.pads
    return np.ascontiguousarray(total[:, top : top + spatial[0], left : left + spatial[1]])


def pad_pixels(x: Array, windows: Windows) -> Array:
    """Return ``x`` with its padding of zeros; ``x`` itself when there is none."""
    spatial = x.shape[1:3]
    padded = windows.padded(spatial)
    if padded == spatial:
        return x
    out = np.zeros((len(x), *padded, x.shape[-1]), x.dtype)
    (top, _), (left, _) = windows.pads
    out[:, top : top + spatial[0], left : left + spatial[1]] = x
    return out


def is_pixelwise(windows: Windows) -> bool:
    """Return whether a window is one pixel."""
    return windows.kernel == (1, 1) and windows.pads == ((0, 0), (0, 0))


def take_pixels(x: Array, windows: Windows) -> Array:
    """Return the pixels ``(N H' W', C)`` that a 1x1 kernel reads."""
    down, right = windows.strides
    return x[:, ::down, ::right].reshape(-1, x.shape[-1])


def _has_short_runs(x: Array, windows: Windows) -> bool:
    run = x.shape[-1] * (windows.kernel[1] if windows.dilations[1] == 1 else 1)
    return run <= _SHORT


def _split(batch: int, count: Sequence[int], size: int, least: int) -> Iterator[tuple[Part, tuple[int, int]]]:
    """Yield parts of the outputs so small that their windows, ``size`` bytes each, fit into the cache
    together.

    Each part, several whole images or some rows of one image, comes with its first row and number of rows.
    """
    wanted = max(least, _CHUNK // max(1, size))  # windows in a part
    image = count[0] * count[1]
    if 2 * image <= 3 * wanted:
        step = max(1, wanted // max(1, image))
        for start in range(0, batch, step):
            yield (slice(start, start + step), slice(0, count[0])), (0, count[0])
        return
    pieces = -(-image // wanted)
    rows = -(-count[0] // min(pieces, count[0]))
    for index in range(batch):
        for first in range(0, count[0], rows):
            last = min(first + rows, count[0])
            yield (slice(index, index + 1), slice(first, last)), (first, last - first)


def map_rows(
    work: Callable[[Part, Array], Result],
    x: Array,
    windows: Windows,
    count: Sequence[int],
    least: int = _ROWS,
) -> Iterator[Result]:
    """Yield ``work(part, unfolded)`` for parts of the outputs and their windows, ``(windows, h w C)``.

    The memory of the windows is reused for the next part.
    """
    padded = pad_pixels(x, windows)
    by_image, by_row, by_pixel, _ = count_steps(padded.shape)
    down, right = windows.strides
    channels = x.shape[-1]
    (high, wide), (skip, step) = windows.kernel, windows.dilations
    runs = (wide * channels,) if step == 1 else (wide, channels)
    inner = (1,) if step == 1 else (by_pixel * step, 1)
    view = view_strided(
        padded,
        (len(x), *count, high, *runs),
        (by_image, by_row * down, by_pixel * right, by_row * skip, *inner),
    )
    width = high * wide * channels
    parts = [part for part, _ in _split(len(x), count, width * x.itemsize, least)]
    largest = max((view[part].size for part in parts[:1]), default=0)
    spare: list[Array] = []  # a buffer for each thread that works at the same time

    def unfold(part: Part) -> Result:
        seen = view[part]
        buffer = spare.pop() if spare else np.empty(largest, x.dtype)
        unfolded = buffer[: seen.size]
        np.copyto(unfolded.reshape(seen.shape), seen)
        result = work(part, unfolded.reshape(-1, width))
        spare.append(buffer)
        return result

    yield from map_parts(unfold, parts)


def _map_columns(
    work: Callable[[slice, Array], Result], x: Array, windows: Windows, count: Sequence[int], least: int
) -> Iterator[Result]:
    """Yield ``work(images, columns)`` for images and their windows, ``(n, C h w, windows)``."""
    planes = np.ascontiguousarray(np.moveaxis(pad_pixels(x, windows), -1, 1))
    view = windows.unfold(planes)
    width = view[0].size // max(1, count[0] * count[1])
    step = max(1, max(least, _CHUNK // max(1, width * x.itemsize)) // max(1, count[0] * count[1]))

    def unfold(part: slice) -> Result:
        return work(part, view[part].reshape(-1, width, count[0] * count[1]))

    yield from map_parts(unfold, [slice(start, start + step) for start in range(0, len(x), step)])


def _iterate_places(windows: Windows, count: Sequence[int]) -> Iterator[tuple[tuple[int, int], Any]]:
    """Yield each element of the kernel, and the index of the pixels ``(N, H, W, C)`` that it multiplies."""
    for place, where in windows.offsets(count):
        yield place[2:], (slice(None), *where[1:])
