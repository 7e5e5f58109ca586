"""Sums of rows by their indexes, in the order of the rows, with numpy's bits."""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.core import SelectedRows, rows as by_numpy
from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import compile_late

_SPARSE: Final = 256  # rows of a matrix for each id, from which on the ids are sorted


def sum_rows(rows: Array, values: Array, height: int) -> Array:
    """Return a matrix of ``height`` rows whose row r is the sum of ``values[i]`` where ``rows[i] == r``.

    >>> sum_rows(np.array([2, 0, 2]), np.array([[1.0], [2.0], [3.0]]), 4).ravel()
    array([2., 0., 4., 0.])
    """
    kernel = add_rows.choose(values.size, values)
    if kernel is None or rows.dtype != np.int64 or not rows.flags.carray or not _are_within(rows, height):
        return by_numpy.sum_rows(rows, values, height)
    total = np.zeros((height, *values.shape[1:]), values.dtype)
    kernel(rows.reshape(-1), values.reshape(len(values), -1), total.reshape(height, -1))
    return total


def merge_rows(grad: SelectedRows) -> tuple[Array, Array]:
    """Return the rows of a gradient, sorted and without repetition, and the sums of their values."""
    values, ids = grad.held_array, grad.row_array
    assert values is not None
    if len(ids) < 2 or (ids[1:] > ids[:-1]).all():
        return ids, values
    if add_rows.choose(values.size, values) is None:
        merged = grad.merge()
        assert merged.held_array is not None
        return merged.row_array, merged.held_array
    rows, where = np.unique(grad.row_array, return_inverse=True)
    return rows, sum_rows(where, values, len(rows))


def find_held_rows(rows: Array, height: int) -> tuple[Array, Array]:
    """Return the distinct rows in rising order, and the positions of ``rows`` among them.

    All ``rows`` must be below the height.

    >>> find_held_rows(np.array([2, 0, 2]), 4)
    (array([0, 2]), array([1, 0, 1]))
    """
    if height > _SPARSE * len(rows):
        return np.unique(rows, return_inverse=True)
    is_held = np.zeros(height, np.bool_)
    is_held[rows] = True
    held = np.flatnonzero(is_held)
    places = np.empty(height, np.int64)
    places[held] = np.arange(len(held))
    return held, places[rows]


def _are_within(rows: Array, height: int) -> bool:
    return rows.size > 0 and bool(rows.min() >= 0) and bool(rows.max() < height)


@compile_late("void(int64[::1], T[:, ::1], T[:, ::1])", least=1 << 14)
def add_rows(rows: Array, values: Array, total: Array) -> None:
    """``total[rows[i]] += values[i]`` for every i in order."""
    for i in range(rows.size):
        for j in range(values.shape[1]):
            total[rows[i], j] += values[i, j]
