"""Extremes and signs of numbers with NaN, by comparisons, which are false for NaN.

Fluid's kernels compare (see ``nan_comparisons``); numpy and the textbook give NaN where an operand is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array


def reduce_extreme(x: Array, axes: tuple[int, ...], *, is_greatest: bool) -> Array:
    """Return the largest or smallest element over dims, which are kept as 1; Fluid ignores NaN."""
    ufunc, other, start = (np.maximum, np.fmax, -np.inf) if is_greatest else (np.minimum, np.fmin, np.inf)
    limits: dict[str, Any] = (
        {} if x.size else {"initial": start if x.dtype.kind == "f" else _find_limit(x, is_greatest)}
    )
    out = ufunc.reduce(x, axis=axes, keepdims=True, **limits)
    if x.dtype.kind == "f" and np.isnan(out).any() and follows_fluid("nan_comparisons"):
        out = other.reduce(x, axis=axes, keepdims=True, initial=start)
    return np.asarray(out)


def _find_limit(x: Array, is_greatest: bool) -> int:
    """Return the smallest or largest integer of a dtype, the extreme of an empty array."""
    return int(np.iinfo(x.dtype).min if is_greatest else np.iinfo(x.dtype).max)


def find_extreme(x: Array, axis: int | None, *, keepdims: bool, is_greatest: bool) -> Array:
    """Return the index of the greatest or least number along an axis, the first if several.

    Fluid ignores NaN.
    """
    find = np.argmax if is_greatest else np.argmin
    places = find(x, axis, keepdims=True)
    if x.dtype.kind == "f" and x.size and follows_fluid("nan_comparisons"):
        flat = x.reshape(-1) if axis is None else x
        at = places.reshape(-1) if axis is None else places
        if np.isnan(np.take_along_axis(flat, at, 0 if axis is None else axis)).any():
            worst = -np.inf if is_greatest else np.inf
            places = find(np.where(np.isnan(x), worst, x), axis, keepdims=True)
    return places if keepdims else places.reshape(()) if axis is None else places.squeeze(axis)


def take_greater(x: Array, y: Array) -> Array:
    """Return ``max(x, y)``; as in Fluid, y where one of them is NaN."""
    return np.where(x > y, x, y) if follows_fluid("nan_comparisons") else np.maximum(x, y)


def take_less(x: Array, y: Array) -> Array:
    """Return ``min(x, y)``; as in Fluid, y where one of them is NaN."""
    return np.where(x < y, x, y) if follows_fluid("nan_comparisons") else np.minimum(x, y)


def sign(x: Array) -> Array:
    """Return -1, 0 or 1; as in Fluid, 0 for NaN."""
    out = np.sign(x)
    if x.dtype.kind != "f" or not follows_fluid("nan_comparisons"):
        return out
    return np.where(x == x, out, np.zeros((), x.dtype))
