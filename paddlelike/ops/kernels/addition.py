"""Sums of several values: dense tensors, SelectedRows, tensor arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from paddlelike.core import LoDTensor, LoDTensorArray, SelectedRows
from paddlelike.core.rows import add_rows
from paddlelike.framework.opdef import Array

Value = Array | SelectedRows | LoDTensorArray


class Totals(dict[Any, Any]):
    """Sums by name or index. A single value is stored as it is; a sum of several values has its own
    memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sums: set[Any] = set()  # the keys whose arrays may be written into

    def add(self, key: Any, value: Value) -> None:
        """Add a value to the sum of that key."""
        total = self.get(key)
        if total is None:
            self[key] = value
        elif key in self._sums and isinstance(total, np.ndarray) and isinstance(value, np.ndarray):
            total += value
        elif key in self._sums and isinstance(total, LoDTensorArray) and isinstance(value, LoDTensorArray):
            _add_array(total, value)
        else:
            self[key] = add_values([total, value])
            self._sums.add(key)


def add_values(xs: Sequence[Value]) -> Value:
    """Return the sum: of dense tensors, SelectedRows (the sum is dense if one part is) or tensor arrays.

    Parts without a value are left out.
    """
    dense = [x for x in xs if isinstance(x, np.ndarray)]
    sparse = [x for x in xs if isinstance(x, SelectedRows)]
    if dense:
        return _add_dense(dense, sparse)
    arrays = [x for x in xs if isinstance(x, LoDTensorArray)]
    return _add_arrays(arrays) if arrays else _add_rows(sparse)


def add_over(out: Array, xs: Sequence[Value]) -> bool:
    """Write the sum of dense tensors over one of the first two; return False if that is impossible.

    >>> x = np.ones(2)
    >>> add_over(x, [np.full(2, 3.0), x]), x
    (True, array([4., 4.]))
    """
    dense = [x for x in xs if isinstance(x, np.ndarray)]
    alike = len(dense) == len(xs) > 1 and all(
        x.dtype is out.dtype and x.shape == out.shape and x.strides == out.strides for x in dense
    )
    if not alike or not (out is dense[0] or out is dense[1]) or any(x is out for x in dense[2:]):
        return False
    np.add(dense[0], dense[1], out=out)
    for x in dense[2:]:
        out += x
    return True


def _add_dense(dense: list[Array], sparse: list[SelectedRows]) -> Array:
    total = dense[0] + dense[1] if len(dense) > 1 else np.array(dense[0], order="C")
    for x in dense[2:]:
        total += x
    for rows in sparse:
        assert rows.held_array is not None
        add_rows(total, rows.row_array, rows.held_array)
    return total


def _add_rows(xs: list[SelectedRows]) -> SelectedRows:
    rows = np.concatenate([x.row_array for x in xs])
    values = np.concatenate([x.held_array for x in xs if x.held_array is not None])
    return SelectedRows(rows, xs[0].height(), values).merge()


def _add_array(total: LoDTensorArray, more: LoDTensorArray) -> None:
    """Add the elements of an array to the elements of the same index in ``total``; most may be empty."""
    count = len(total)
    for index, tensor in enumerate(more[:count]):
        if (value := tensor.held_array) is not None:
            before = total[index]
            total[index] = (
                tensor if before.held_array is None else LoDTensor(before.held_array + value, before.lod())
            )
    total.extend(more[count:])


def _add_arrays(arrays: list[LoDTensorArray]) -> LoDTensorArray:
    """Add two arrays element by element; the shorter one adds nothing beyond its end.

    An element without a partner is shared with the sum, not copied: no code writes into elements.
    """
    out = LoDTensorArray()
    for here in zip_longest(*arrays):
        full = [tensor for tensor in here if tensor is not None and tensor.held_array is not None]
        if len(full) > 1:
            values = [tensor.held_array for tensor in full if tensor.held_array is not None]
            out.append(LoDTensor(_add_dense(values, []), full[0].lod()))
        else:
            out.append(full[0] if full else LoDTensor())
    return out
