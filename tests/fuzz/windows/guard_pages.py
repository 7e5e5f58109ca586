"""Arrays beside pages that may not be read or written, so that a step beyond one ends the process.

Only for a process of its own: arrays are placed before (or behind) a page of ``PROT_NONE``.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np

PAGE = mmap.PAGESIZE


def _reserve(size: int) -> tuple[mmap.mmap, int]:
    """Return memory of whole pages with a guard page at both ends, and how many bytes lie between them."""
    inner = max(-(-size // PAGE), 1) * PAGE
    region = mmap.mmap(-1, inner + 2 * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(region))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for page in (start, start + PAGE + inner):
        if protect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return region, inner


def place(array: np.ndarray[Any, Any], *, first: bool = False) -> np.ndarray[Any, Any]:
    """Return a copy that ends at a guard page, or begins behind one; strides stay as they are."""
    strides = array.strides if all(step > 0 for step in array.strides) else None
    steps = strides or np.empty(array.shape, array.dtype).strides
    size = sum((dim - 1) * step for dim, step in zip(array.shape, steps, strict=True)) + array.itemsize
    region, inner = _reserve(size if array.size else 0)
    offset = PAGE if first or not array.size else PAGE + inner - size
    out: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, region, offset, strides)
    out[...] = array
    return out


@contextlib.contextmanager
def guarded_results() -> Iterator[None]:
    """Let ``np.empty``, ``np.zeros`` and their ``_like`` give arrays that end at a guard page."""
    plain = {name: getattr(np, name) for name in ("empty", "zeros", "empty_like", "zeros_like")}

    def guarded(make: Any) -> Any:
        def allocate(*args: Any, **kwargs: Any) -> Any:
            made = make(*args, **kwargs)
            is_plain = type(made) is np.ndarray and made.dtype.kind in "biuf" and made.flags.c_contiguous
            if not is_plain or math.prod(made.shape) == 0:
                return made
            region, inner = _reserve(made.nbytes)
            out: np.ndarray[Any, Any] = np.ndarray(made.shape, made.dtype, region, PAGE + inner - made.nbytes)
            return out

        return allocate

    for name, make in plain.items():
        setattr(np, name, guarded(make))
    try:
        yield
    finally:
        for name, make in plain.items():
            setattr(np, name, make)
