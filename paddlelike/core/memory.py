"""Where arrays lie in memory.

A large array starts 64 bytes into a page. A file's header then fits in front of the data, so that
header and data are one contiguous write, and the data is aligned for vector instructions.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

__all__ = ["HEADROOM", "empty", "is_placed", "place"]

HEADROOM: Final = 64  # bytes in front of the data that belong to the same buffer
_PAGE: Final = 4096
_LARGE: Final = 64 * 1024  # below this a page of padding costs more than it brings

Array = np.ndarray[Any, Any]


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialised C-order array, placed when it is large."""
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    buffer = np.empty(size + _PAGE + HEADROOM, np.uint8)
    start = -buffer.ctypes.data % _PAGE + HEADROOM
    array: Array = buffer[start : start + size].view(dtype).reshape(shape)
    return array


def place(array: Array) -> Array:
    """A placed C-order copy of ``array``."""
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def is_placed(array: Array) -> bool:
    """Whether an array lies as :func:`empty` would lay it: in C order, small or 64 bytes into a page."""
    if not array.flags.c_contiguous or not array.flags.writeable:
        return False
    return array.nbytes < _LARGE or array.ctypes.data % _PAGE == HEADROOM
