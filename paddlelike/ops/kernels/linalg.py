"""Sums of outer products, and products of matrices."""

from __future__ import annotations

import functools
import itertools
from typing import Final

import numpy as np

from paddlelike.core.rows import RowGroups
from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.threads import consume, map_parts

_FEW: Final = 4  # multiples of an id that are added one after the other
_GEMM: Final = 48  # products of BLAS in the time that numpy takes to add one element at an index


def sum_multiples(ids: Array, factors: Array, owners: Array, x: Array, height: int) -> tuple[Array, Array]:
    """Return the distinct ids in rising order, and for each the sum of ``factors[i] * x[owners[i]]``.

    Ids with many multiples, such as the upper nodes of a tree, are computed by one matrix product.

    >>> sum_multiples(np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]), np.array([0, 0, 1]), np.eye(2), 3)
    (array([0, 2]), array([[2., 0.],
           [1., 3.]]))
    """
    groups = RowGroups.of(ids, height)
    factors, owners = factors[groups.order], owners[groups.order]
    sizes = groups.count_members()
    firsts = groups.starts
    sums = x.take(owners[firsts], axis=0)
    sums *= factors[firsts, None]
    many = sizes > max(_FEW, len(x) // _GEMM)
    if many.any():
        inside = np.repeat(many, sizes)
        rows = np.repeat(np.cumsum(many) - 1, sizes)[inside]
        matrix = np.zeros((np.count_nonzero(many), len(x)), x.dtype)
        np.add.at(matrix.reshape(-1), rows * len(x) + owners[inside], factors[inside])
        sums[many] = matrix @ x
    place, few = 1, np.flatnonzero((sizes > 1) & ~many)
    while len(few):
        at = firsts[few] + place
        part = x.take(owners[at], axis=0)
        part *= factors[at, None]
        sums[few] += part
        place += 1
        few = few[sizes[few] > place]
    return groups.ids, sums


def place_rows(ids: Array, rows: Array, height: int) -> Array:
    """Return a matrix with ``rows[i]`` at row ``ids[i]`` and zeros elsewhere; ids must not repeat."""
    out = np.zeros((height, *rows.shape[1:]), rows.dtype)
    out[ids] = rows
    return out


#: Multiply-adds in one part, about a millisecond: below two of these a product is one part.
LARGE: Final = 1 << 25
_PARTS: Final = 8  # at most
_TILE: Final = 64  # parts begin at multiples: a tile of BLAS is in one part
#: Up to this many multiply-adds, numpy's own work around the product counts.
SHORT: Final = 1 << 20
#: OpenBLAS's names of processors with AVX-512, on which it reads the operands of small products in place.
_IN_PLACE: Final = ("SkylakeX", "Cooperlake", "SapphireRapids")
_UNPACKED: Final = 10**6  # multiplications of the largest such product
_ROWS: Final = 16
_TERMS: Final = 448  # of a sum: OpenBLAS takes more in parts, which changes the result by more than 1e-6
_LINE: Final = 16  # columns of a line of the cache


def multiply(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return ``a @ b`` of matrices or stacks of them, with the same bits on any number of threads.

    On some processors BLAS rounds an element differently in a matrix of another size. So the parts (rows,
    columns or matrices) do not depend on the number of threads.

    >>> multiply(np.ones((2, 3)), np.ones((3, 1)))
    array([[3.],
           [3.]])
    """
    work = a.size * b.shape[-1]
    if work < SHORT and a.ndim == b.ndim == 2 and out is None:
        return a.dot(b)  # half a microsecond less than matmul, which does the same
    if work < 2 * LARGE:
        return np.matmul(a, b, out=out)
    if a.ndim == b.ndim == 2 and b.shape[1] > 1:
        return _multiply_matrices(a, b, out)
    if a.ndim == b.ndim > 2 and a.shape[:-2] == b.shape[:-2]:
        return _multiply_stacks(a, b, out)
    return np.matmul(a, b, out=out)


def multiply_rows(x: Array, w: Array) -> Array:
    """Return ``x w`` for few rows, computed by parts of the columns; equal to :func:`multiply` up to
    rounding.

    With AVX-512 and up to a million multiplications OpenBLAS reads ``w`` in place. Otherwise it first copies
    ``w``, which takes longer than the product with a few rows.

    >>> x, w = np.ones((8, 400), "float32"), np.ones((400, 401), "float32")
    >>> multiply_rows(x, w).shape, float(multiply_rows(x, w).min())
    ((8, 401), 400.0)
    """
    rows, columns = len(x), w.shape[1]
    if not (2 <= rows <= _ROWS and len(w) <= _TERMS and x.size * columns > _UNPACKED):
        return multiply(x, w)
    width = _UNPACKED // (x.size * _LINE) * _LINE
    if columns > _PARTS * width or not _reads_in_place():
        return multiply(x, w)
    out = np.empty((rows, columns), w.dtype)
    for begin in range(0, columns, width):
        part = slice(begin, begin + width)
        np.matmul(x, w[:, part], out=out[:, part])
    return out


@functools.cache
def _reads_in_place() -> bool:
    from threadpoolctl import threadpool_info  # late: it looks through the libraries of the process

    return any(one.get("architecture") in _IN_PLACE for one in threadpool_info())


def _multiply_matrices(a: Array, b: Array, out: Array | None) -> Array:
    (rows, inner), columns = a.shape, b.shape[1]
    if out is None:
        out = np.empty((rows, columns), np.result_type(a, b))
    along = 0 if rows >= columns else 1

    def compute(part: slice) -> None:
        if along == 0:
            np.matmul(a[part], b, out=out[part])
        else:
            np.matmul(a, b[:, part], out=out[:, part])

    consume(map_parts(compute, _cut(out.shape[along], rows * inner * columns // LARGE, _TILE)))
    return out


def _multiply_stacks(a: Array, b: Array, out: Array | None) -> Array:
    """Multiply the matrices of two stacks pair by pair."""
    if out is None:
        out = np.empty((*a.shape[:-1], b.shape[-1]), np.result_type(a, b))

    def compute(part: slice) -> None:
        np.matmul(a[part], b[part], out=out[part])

    consume(map_parts(compute, _cut(len(out), a.size * b.shape[-1] // LARGE, 1)))
    return out


def _cut(size: int, parts: int, tile: int) -> list[slice]:
    """Return even parts of a dim; all but the last consist of whole tiles."""
    tiles = max(1, size // tile)
    parts = min(parts, _PARTS, tiles)
    bounds = [tiles * index // parts * tile for index in range(parts)] + [size]
    return [slice(*pair) for pair in itertools.pairwise(bounds)]
