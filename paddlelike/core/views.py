"""Views of an array's memory with other shapes and strides, checked to stay inside the array.

The package makes all such views here. Steps count elements of the array in C order; numpy's strides are not
used, because the stride of an axis with one element is arbitrary.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def view_strided(array: Array, shape: Sequence[int], steps: Sequence[int]) -> Array:
    """Return a view of a C-contiguous array that begins at its first element; it cannot be written.

    Parameters
    ----------
    array
        An array in C order, of any shape.
    shape
        The shape of the view.
    steps
        For each axis of the view, the distance of two neighbours in elements of ``array``.

    Raises
    ------
    ValueError
        When the array is not C-contiguous, or an element of the view would lie outside of it.

    Examples
    --------
    >>> view_strided(np.arange(5), (3, 3), (1, 1)).tolist()  # every three neighbours
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    if not array.flags.c_contiguous:
        raise ValueError(f"an array with strides {array.strides} is not C-contiguous")
    # np.ndarray checks that the strides fit the buffer; as_strided does not.
    size = array.itemsize
    view: Array = np.ndarray(shape, array.dtype, array, 0, [step * size for step in steps])
    view.flags.writeable = False
    return view


def count_steps(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the steps of each axis of an array in C order, in elements.

    >>> count_steps((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def view_bytes_at(address: int, size: int) -> memoryview:
    """Return memory of this process as bytes. The caller keeps its owner alive.

    Raises ValueError for a negative size, and for bytes at address 0.
    """
    if size < 0 or address <= 0 < size:
        raise ValueError(f"{size} bytes at address {address} are not memory of an array")
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")
