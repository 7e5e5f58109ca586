"""Placement of arrays in memory, and reuse of freed memory.

A large array starts 64 bytes into a page. A file's header then fits in front of the data, so that
header and data are one contiguous write, and the data is aligned for vector instructions.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
from typing import Any, Final

import numpy as np

from paddlelike.core.dtypes import unify_dtype
from paddlelike.errors import OutOfMemoryError
from paddlelike.foundation.locks import Lock

HEADROOM: Final = 64  # bytes of the buffer in front of the data
_PAGE: Final = 4096
_M_TRIM_THRESHOLD: Final = -1  # constants of malloc.h
_M_MMAP_THRESHOLD: Final = -3
_LARGE: Final = 64 * 1024  # below this a page of padding costs more than it saves
_OWN: Final = 16 << 20  # bytes; larger arrays share no block
_BLOCK: Final = 64 << 20
_SHARED: Final = (1 << 25) - _PAGE  # bytes of the largest block that is kept by default
_TOTAL: Final = (1 << 30) - 2 * _SHARED  # of free memory beside two blocks of the largest size

Array = np.ndarray[Any, Any]


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an uninitialised C-order array, placed when it is large. Raises OutOfMemoryError."""
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    buffer = _bytes(size + _PAGE + HEADROOM)
    start = -buffer.ctypes.data % _PAGE + HEADROOM
    array: Array = buffer[start : start + size].view(dtype).reshape(shape)
    return array


def _bytes(size: int) -> Array:
    try:
        return np.empty(size, np.uint8)
    except (MemoryError, ValueError, OverflowError) as error:  # the last two: beyond any address
        raise OutOfMemoryError(
            f"{size} bytes of memory cannot be allocated",
            hint="if a part of a table is enough: load_slice reads some rows, lazy=True only the rows in use",
        ) from error


def place(array: Array) -> Array:
    """Return a placed C-order copy of ``array``. Raises OutOfMemoryError."""
    copy = empty(array.shape, unify_dtype(array).dtype)
    copy[...] = array
    return copy


def is_placed(array: Array) -> bool:
    """Return whether an array is placed as by :func:`empty`: in C order, and small or 64 bytes into a
    page.
    """
    if not array.flags.c_contiguous or not array.flags.writeable:
        return False
    return array.nbytes < _LARGE or array.ctypes.data % _PAGE == HEADROOM


class Arena:
    """Memory for many new arrays. Small ones share blocks that are large enough for huge pages.

    A block is freed with the last of its arrays.

    Parameters
    ----------
    total
        The size of all arrays together, in bytes.
    """

    def __init__(self, total: int) -> None:
        self._left = total
        self._block = np.empty(0, np.uint8)
        self._base = self._at = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return an uninitialised C-order array, placed when it is large. Raises OutOfMemoryError."""
        size = math.prod(shape) * dtype.itemsize
        if size >= _OWN:
            return empty(shape, dtype)
        start = self._next(size)
        if start + size > len(self._block):
            room = min(self._left + self._left // 8, _BLOCK)  # an eighth for the gaps
            self._block = _bytes(max(room, size) + 2 * _PAGE)
            self._base, self._at = self._block.ctypes.data, 0
            start = self._next(size)
        self._at = start + size
        self._left = max(self._left - size, 0)
        array: Array = self._block[start : self._at].view(dtype).reshape(shape)
        return array

    def _next(self, size: int) -> int:
        free = self._base + self._at
        gap = (HEADROOM - free) % _PAGE if size >= _LARGE else -free % HEADROOM
        return self._at + gap


@functools.cache
def keep_freed_memory() -> bool:
    """Have the C library keep up to 1 GiB of freed memory for the arrays of the next steps.

    Otherwise glibc returns every large temporary to the system, and the next one causes a page fault for each
    of its pages: a LeNet step takes 34 instead of 24 ms. Return whether the C library accepted (only glibc
    does). PADDLELIKE_KEEP_MEMORY=0 in the environment disables this.
    """
    return _freed.keep(_SHARED)


def keep_freed_block(size: int) -> bool:
    """Have the C library keep a freed block of ``size`` bytes, which every step allocates again.

    Otherwise blocks of 32 MiB and more return to the system at once. Two such blocks may be free at a time.
    """
    return keep_freed_memory() and _freed.keep(size)


class _Freed:
    """The largest block that the C library keeps."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._largest = 0

    def keep(self, size: int) -> bool:
        if os.environ.get("PADDLELIKE_KEEP_MEMORY") == "0":
            return False
        mallopt = getattr(ctypes.CDLL(None) if os.name == "posix" else None, "mallopt", None)
        if mallopt is None:
            return False
        with self._lock.hold():
            if size <= self._largest:
                return True
            self._largest = size
            # Free memory beyond the first number is not kept, nor are blocks beyond the second.
            trimmed = mallopt(_M_TRIM_THRESHOLD, _limit(2 * size + _TOTAL))
            return bool(mallopt(_M_MMAP_THRESHOLD, _limit(size + _PAGE)) and trimmed)


def _limit(size: int) -> int:
    """Return a size that fits C's integers; -1, for no limit, if it does not fit."""
    return size if size < 2**31 else -1


_freed = _Freed()
