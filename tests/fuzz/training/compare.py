"""What differs between the records of one scenario."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.fuzz.training.scenario import Record

__all__ = ["find_differences"]


def find_differences(one: Record, other: Record, tolerance: float = 0.0) -> list[str]:
    """Return a line for each value that differs, and the faults of the second record.

    ``tolerance``: of floating point numbers, relative to the largest one of an array; 0.0: the bits.
    """
    found = [f"fault: {fault}" for fault in other.faults]
    if [label for label, _ in one.values] != [label for label, _ in other.values]:
        return [*found, "the values are not of the same variables"]
    for (label, a), (_, b) in zip(one.values, other.values, strict=True):
        if not _are_alike(a, b, tolerance):
            found.append(f"{label}: {_describe(a)} and {_describe(b)}")
    return found


def _are_alike(a: Any, b: Any, tolerance: float) -> bool:
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return bool(a == b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f" or not tolerance:
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    finite = np.isfinite(a)
    largest = float(np.abs(a[finite]).max()) if finite.any() else 0.0
    # Small values are differences of larger ones: 0.05 is of the size of what the networks compute with.
    return np.allclose(a, b, rtol=0.0, atol=tolerance * (largest + 0.05), equal_nan=True)


def _describe(value: Any) -> str:
    return np.array2string(value.ravel()[:4], precision=7) if isinstance(value, np.ndarray) else repr(value)
