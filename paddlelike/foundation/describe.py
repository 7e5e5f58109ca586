"""Describe values in errors."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["describe"]


def describe(value: Any) -> str:
    """Return a description of a value for an error, arrays by their shape.

    >>> describe(np.ones([2, 4])), describe("10")
    ('a numpy array of shape [2, 4]', "'10' (str)")
    """
    if isinstance(value, np.ndarray):
        return f"a numpy array of shape {list(value.shape)}"
    return f"{value!r} ({type(value).__name__})"
