"""exp, log and sigmoid of float32 rounded to the nearest, as the C library gives them.

numpy's own for float32 may be two units in the last place away. Where a threshold follows (suppression
of boxes, matching), one unit can decide whether a box is kept.
"""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array


def exp(x: Array) -> Array:
    """Return ``e**x`` in the dtype of x."""
    return np.exp(x, dtype=np.float64).astype(x.dtype)


def log(x: Array) -> Array:
    """Return the natural logarithm in the dtype of x."""
    return np.log(x, dtype=np.float64).astype(x.dtype)


def sigmoid(x: Array) -> Array:
    """Return ``1 / (1 + exp(-x))`` with the exponential rounded to the dtype of x and the rest in float64."""
    return (1.0 / (1.0 + exp(-x).astype(np.float64))).astype(x.dtype)
