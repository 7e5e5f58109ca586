"""Sums of multiples of rows by id: gradients of the weights of classes that each sample has a few of."""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.core.rows import RowGroups
from paddlelike.framework.opdef import Array

_FEW: Final = 4  # multiples of an id that are added one after the other
_GEMM: Final = 48  # products of BLAS in the time that numpy takes to add one element at an index


def sum_multiples(ids: Array, factors: Array, owners: Array, x: Array, height: int) -> tuple[Array, Array]:
    """Return the ids in rising order, each once, and for each the sum of ``factors[i] * x[owners[i]]``.

    Ids of many multiples, such as the upper nodes of a tree, are rows of one matrix product.

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
    """Return a matrix with ``rows[i]`` at row ``ids[i]`` and zeros elsewhere; no id comes twice."""
    out = np.zeros((height, *rows.shape[1:]), rows.dtype)
    out[ids] = rows
    return out
