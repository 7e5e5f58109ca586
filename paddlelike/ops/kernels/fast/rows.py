"""Softmax and normalization of rows, each row while it is in the cache.

Sums of a row are taken in another order than numpy's, so results differ by rounding.
"""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import Number, compile_late

_LEAST = 1 << 15  # elements: smaller ones cost numpy little


def try_softmax(x: Array) -> Array | None:
    """Return the softmax along the last dim, with numbers limited to at most 64 below the largest.

    Return None if numpy should compute it. The exponentials are numpy's.
    """
    if (kernel := center_below_greatest.choose(x.size, x)) is None:
        return None
    out = np.empty_like(x)
    matrix = out.reshape(-1, x.shape[-1])
    kernel(x.reshape(matrix.shape), x.dtype.type(-64), matrix)
    np.exp(out, out=out)
    divide_by_sum.get_compiled(x.dtype)(matrix)
    return out


@compile_late("void(T[:, ::1], T, T[:, ::1])", least=_LEAST, exact=False)
def center_below_greatest(x: Array, least: Number, out: Array) -> None:
    """``out = max(x - greatest of the row, least)``."""
    columns = x.shape[1]
    for i in range(x.shape[0]):
        a = b = c = d = x[i, 0]
        for j in range(0, columns // 4 * 4, 4):
            a, b = max(a, x[i, j]), max(b, x[i, j + 1])
            c, d = max(c, x[i, j + 2]), max(d, x[i, j + 3])
        greatest = max(max(a, b), max(c, d))
        for j in range(columns // 4 * 4, columns):
            greatest = max(greatest, x[i, j])
        for j in range(columns):
            below = x[i, j] - greatest
            out[i, j] = least if below < least else below


@compile_late("void(T[:, ::1])", least=_LEAST, reorder=True)
def divide_by_sum(x: Array) -> None:
    """``x /= sum of the row``, in place."""
    for i in range(x.shape[0]):
        total = x[i, 0] - x[i, 0]
        for j in range(x.shape[1]):
            total += x[i, j]
        for j in range(x.shape[1]):
            x[i, j] /= total


@compile_late("void(T[:, ::1], T[:, ::1], T[:, ::1])", least=_LEAST, reorder=True)
def softmax_dx(out: Array, d_out: Array, dx: Array) -> None:
    """``dx = (d_out - sum(d_out out)) out``, row by row."""
    for i in range(out.shape[0]):
        inner = out[i, 0] - out[i, 0]
        for j in range(out.shape[1]):
            inner += d_out[i, j] * out[i, j]
        for j in range(out.shape[1]):
            dx[i, j] = (d_out[i, j] - inner) * out[i, j]


@compile_late("void(T[:, ::1], T[::1], T[::1], T, T[:, ::1], T[::1], T[::1])", least=_LEAST, reorder=True)
def normalize(
    x: Array, scale: Array, bias: Array, epsilon: Number, y: Array, mean: Array, variance: Array
) -> None:
    """``y = scale (x - mean) / sqrt(variance + epsilon) + bias``, with mean and variance of each row."""
    columns = x.dtype.type(x.shape[1])
    for i in range(x.shape[0]):
        total = square = epsilon - epsilon
        for j in range(x.shape[1]):
            total += x[i, j]
        middle = total / columns
        for j in range(x.shape[1]):
            apart = x[i, j] - middle
            square += apart * apart
        mean[i], variance[i] = middle, square / columns
        inverse = x.dtype.type(1) / np.sqrt(variance[i] + epsilon)
        for j in range(x.shape[1]):
            y[i, j] = (x[i, j] - middle) * inverse * scale[j] + bias[j]


@compile_late(
    "void(T[:, ::1], T[::1], T[::1], T[::1], T[:, ::1], T[:, ::1], T[::1], T[::1])",
    least=_LEAST,
    reorder=True,
)
def normalize_dx(
    x: Array, scale: Array, mean: Array, inverse: Array, d_y: Array, dx: Array, d_scale: Array, d_bias: Array
) -> None:
    """Write the gradients of :func:`normalize`; ``inverse`` is ``1 / sqrt(variance + epsilon)``."""
    columns = x.dtype.type(x.shape[1])
    d_scale[:] = 0
    d_bias[:] = 0
    for i in range(x.shape[0]):
        total = along = columns - columns
        for j in range(x.shape[1]):
            x_hat = (x[i, j] - mean[i]) * inverse[i]
            g = d_y[i, j] * scale[j]
            total += g
            along += g * x_hat
        total /= columns
        along /= columns
        for j in range(x.shape[1]):
            x_hat = (x[i, j] - mean[i]) * inverse[i]
            dx[i, j] = (d_y[i, j] * scale[j] - x_hat * along - total) * inverse[i]
        for j in range(x.shape[1]):
            d_scale[j] += d_y[i, j] * ((x[i, j] - mean[i]) * inverse[i])
        for j in range(x.shape[1]):
            d_bias[j] += d_y[i, j]
