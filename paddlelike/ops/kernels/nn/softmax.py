"""The softmax of rows and its gradient, for softmax and softmax_with_cross_entropy."""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.broadcasting import make_ones
from paddlelike.ops.kernels.fast.rows import try_softmax
from paddlelike.ops.kernels.special import bound_below

#: As in Paddle, a number further below the greatest of its row counts as so far below it.
LOWEST: Final = -64
_SMALL: Final = 8192  # elements of matrices for which the calls count, not the elements
_NARROW: Final = 32  # columns up to which it pays to look for the greatest of each row in a transposed copy


def softmax_rows(x: Array) -> Array:
    """Return the softmax of the last dim."""
    if (out := try_softmax(x)) is not None:
        return out
    columns = x.shape[-1]
    if x.ndim == 2 and columns <= _NARROW and 0 < x.size < _SMALL:
        greatest = np.maximum.reduce(x.T.copy(), 0)[:, None]
    else:
        greatest = np.maximum.reduce(x, axis=-1, keepdims=True)
    out = np.subtract(x, greatest)
    bound_below(out, LOWEST, out)
    np.exp(out, out=out)
    ones = make_ones(columns, out).reshape(columns, 1)  # a product with ones adds rows several times as fast
    out /= out.dot(ones) if out.ndim == 2 else out @ ones
    return out


def softmax_rows_dx(out: Array, d_out: Array) -> Array:
    """Return the gradient of the softmax's input: ``(d_out - sum(d_out out)) out``."""
    if type(out) is np.ndarray and out.ndim == 2 and out.size < _SMALL and d_out.shape == out.shape:
        d_x = d_out * out
        inner = d_x.dot(make_ones(out.shape[1], out).reshape(-1, 1))
        np.subtract(d_out, inner, out=d_x)
    else:
        inner = np.matmul(d_out[..., None, :], out[..., :, None])[..., 0]
        d_x = np.subtract(d_out, inner)
    d_x *= out
    return d_x
