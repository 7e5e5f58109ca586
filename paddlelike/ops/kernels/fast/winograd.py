"""The sums of Winograd's minimal filtering F(2x2, 3x3), over whole rows of tiles.

Tiles are 4x4 pixels, two apart. Rows of an image are first split into even and odd columns, so that every
later sum runs over all tiles of a row at once, even with few channels.
"""

from __future__ import annotations

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import compile_late


def _add(out: Array, a: Array, b: Array) -> None:
    for i in range(out.size):
        out[i] = a[i] + b[i]


def _subtract(out: Array, a: Array, b: Array) -> None:
    for i in range(out.size):
        out[i] = a[i] - b[i]


def _write_four(out: Array, a: Array, b: Array, c: Array, d: Array, k: int, step: int, row: int) -> None:
    """Write ``a - c, b + c, c - b, b - d`` to ``out[k], out[k + step], ...``, from place ``row`` on."""
    end = row + a.size
    _subtract(out[k, row:end], a, c)
    _add(out[k + step, row:end], b, c)
    _subtract(out[k + 2 * step, row:end], c, b)
    _subtract(out[k + 3 * step, row:end], b, d)


def _split_columns(x: Array, pairs: Array, left: int) -> None:
    """Copy a row ``(W, C)`` after ``left`` zeros, split into even and odd columns: ``(2, w C)``."""
    width, channels = x.shape
    pairs[:] = 0
    for column in range(min(width, 2 * (pairs.shape[1] // channels) - left)):
        place = column + left
        to = pairs[place % 2]
        first = place // 2 * channels
        for c in range(channels):
            to[first + c] = x[column, c]


_HELPERS = (_add, _subtract, _write_four, _split_columns)


@compile_late(
    "void(T[:, :, :, ::1], int64, int64, int64, int64, T[:, :, ::1], T[:, ::1], T[:, ::1])",
    least=1 << 16,
    exact=False,
    helpers=_HELPERS,
)
def cut_tiles(
    x: Array, top: int, left: int, first: int, last: int, rows: Array, sums: Array, tiles: Array
) -> None:
    """Write the transformed tiles ``(16, n (last - first) w C)`` of tile rows ``first`` to ``last``.

    ``x`` is ``(n, H, W, C)``, padded by ``top`` and ``left`` zeros. ``rows`` ``(2 (last - first) + 2, 2, (w +
    1) C)`` and ``sums`` ``(8, (w + 1) C)`` are scratch memory.
    """
    channels = x.shape[3]
    size = rows.shape[2] - channels
    at = 0
    for n in range(len(x)):
        for k in range(2 * (last - first) + 2):
            h = 2 * first + k - top
            if 0 <= h < x.shape[1]:
                _split_columns(x[n, h], rows[k], left)
            else:
                rows[k] = 0
        for i in range(last - first):
            four = rows[2 * i : 2 * i + 4]
            for odd in range(2):
                _write_four(sums, four[0, odd], four[1, odd], four[2, odd], four[3, odd], odd, 2, 0)
            for k in range(4):
                a, b = sums[2 * k, :size], sums[2 * k + 1, :size]
                c, d = sums[2 * k, channels:], sums[2 * k + 1, channels:]
                _write_four(tiles[4 * k : 4 * k + 4], a, b, c, d, 0, 1, at)
            at += size


@compile_late(
    "void(T[:, ::1], int64, T[:, ::1], T[:, :, :, ::1])", least=1 << 16, exact=False, helpers=_HELPERS
)
def join_tiles(products: Array, first: int, sums: Array, out: Array) -> None:
    """Write outputs ``(n, H, W, C)`` from row ``first`` on, of products ``(16, n rows w C)``.

    ``sums`` ``(6, w C)`` is scratch memory. Outputs beyond the last row or column are dropped.
    """
    channels, size = out.shape[3], sums.shape[1]
    rows = products.shape[1] // (size * len(out))
    at = 0
    for n in range(len(out)):
        for i in range(rows):
            for down in range(2):
                h = first + 2 * i + down
                for k in range(4):
                    a, b = products[4 * down + k, at : at + size], products[4 * down + 4 + k, at : at + size]
                    c, total = products[4 * down + 8 + k, at : at + size], sums[k]
                    if down:
                        for j in range(size):
                            total[j] = (a[j] - b[j]) - c[j]
                    else:
                        for j in range(size):
                            total[j] = (b[j] + c[j]) + a[j]
                if h < out.shape[1]:
                    a, b, c, d, even, odd = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]
                    for j in range(size):
                        even[j] = (b[j] + c[j]) + a[j]
                    for j in range(size):
                        odd[j] = (b[j] - c[j]) - d[j]
                    for column in range(out.shape[2]):
                        source = odd if column % 2 else even
                        start = column // 2 * channels
                        for k in range(channels):
                            out[n, h, column, k] = source[start + k]
            at += size


@compile_late(
    "void(T[:, :, :, ::1], int64, int64, T[:, :, ::1], T[:, ::1], T[:, ::1])",
    least=1 << 16,
    exact=False,
    helpers=_HELPERS,
)
def spread_tiles(d_out: Array, first: int, last: int, rows: Array, sums: Array, tiles: Array) -> None:
    """Write the gradients ``(16, n (last - first) w C)`` of the products that are summed to outputs.

    ``d_out`` is ``(n, H, W, C)``; ``rows`` ``(2, 2, w C)`` and ``sums`` ``(8, w C)`` are scratch memory.
    """
    size = rows.shape[2]
    at = 0
    for n in range(len(d_out)):
        for i in range(first, last):
            for down in range(2):
                if 2 * i + down < d_out.shape[1]:
                    _split_columns(d_out[n, 2 * i + down], rows[down], 0)
                else:
                    rows[down] = 0
            for odd in range(2):
                upper, lower = rows[0, odd], rows[1, odd]
                sums[odd] = upper
                _add(sums[2 + odd], upper, lower)
                _subtract(sums[4 + odd], upper, lower)
                for j in range(size):
                    sums[6 + odd, j] = -lower[j]
            for k in range(4):
                even, odds = sums[2 * k], sums[2 * k + 1]
                tiles[4 * k, at : at + size] = even
                _add(tiles[4 * k + 1, at : at + size], even, odds)
                _subtract(tiles[4 * k + 2, at : at + size], even, odds)
                negative = tiles[4 * k + 3, at : at + size]
                for j in range(size):
                    negative[j] = -odds[j]
            at += size
