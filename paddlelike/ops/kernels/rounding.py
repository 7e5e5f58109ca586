"""exp, log and sigmoid rounded to the nearest float32, as in the C library; rounding to the nearest integer.

numpy's functions may be off by two units in the last place. Where a threshold follows (suppression of boxes,
matching), one unit can decide whether a box is kept.
"""

from __future__ import annotations

import numpy as np

from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array


def exp(x: Array) -> Array:
    """Return ``e**x`` in the dtype of x."""
    return np.exp(x, dtype=np.float64).astype(x.dtype)


def log(x: Array) -> Array:
    """Return the natural logarithm in the dtype of x."""
    return np.log(x, dtype=np.float64).astype(x.dtype)


def round_packets(x: Array) -> Array:
    """Return the nearest integers: halves to even in whole packets of 32 bytes, away from 0 in the rest.

    Eigen does so with AVX: see the quirk ``round_packets``. Without the quirk, halves are rounded away from
    0.
    """
    if not follows_fluid("round_packets"):
        return _round_away(x)
    flat = x.reshape(-1)
    whole = flat.shape[0] - flat.shape[0] % (32 // x.dtype.itemsize)
    return np.concatenate([np.rint(flat[:whole]), _round_away(flat[whole:])]).reshape(x.shape)


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)
    return whole + np.copysign((np.abs(x - whole) >= 0.5).astype(x.dtype), x)


def sigmoid(x: Array) -> Array:
    """Return ``1 / (1 + exp(-x))`` with the exponential rounded to the dtype of x and the rest in float64."""
    return (1.0 / (1.0 + exp(-x).astype(np.float64))).astype(x.dtype)
