"""The arithmetic of normalization: zero mean and unit variance along some axes, and its gradient."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array


def normalize(x: Array, axes: int | tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array, Array]:
    """``x^ = (x - mean) / sqrt(var + epsilon)``; with it mean, var and ``1 / sqrt(var + epsilon)``.

    The variance is the biased one. The statistics keep the reduced axes, with size 1.
    """
    mean = x.mean(axes, keepdims=True)
    x_hat = x - mean
    var = np.square(x_hat).mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(var + epsilon)
    x_hat *= inverse
    return x_hat, mean, var, inverse


def normalize_dx(d_x_hat: Array, x_hat: Array, inverse: Array, axes: int | tuple[int, ...]) -> Array:
    """``dx = (g - mean(g) - x^ mean(g x^)) / sqrt(var + epsilon)`` with ``g`` the gradient by x^."""
    product = d_x_hat * x_hat
    dx = x_hat * product.mean(axes, keepdims=True)
    np.subtract(d_x_hat, dx, out=dx)
    dx -= d_x_hat.mean(axes, keepdims=True)
    dx *= inverse
    return dx
