"""conv_shift: circular convolution of rows. Graves et al., Neural Turing machines, 2014."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Gradient, OpDef, Spec, register
from paddlelike.ops.operands import can_be_equal


@register
class ConvShift(OpDef):
    """``Out[b, i] = sum over j of X[b, i + j - (N - 1) / 2] Y[b, j]``, with indexes modulo M.

    X and Out ``(B, M)``, Y ``(B, N)`` with an odd N up to M.
    """

    type = "conv_shift"
    until = "1"
    by_row = True
    inputs = ("X", "Y")
    lod = "X"
    gradient = Gradient("X", "Y", "Out@GRAD", traceable=False)

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        fits = len(x.shape) == len(y.shape) == 2 and can_be_equal(x.shape[0], y.shape[0])
        if not fits or y.shape[1] % 2 == 0 or 0 <= x.shape[1] < y.shape[1]:
            raise ShapeError(
                f"conv_shift: X has shape {x.shape} and Y {y.shape}; expected (B, M), (B, N), N odd and <= M"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, y: Array) -> Array:
        out = np.zeros_like(x)
        for j, column in enumerate(y.T):
            out += np.roll(x, y.shape[1] // 2 - j, 1) * column[:, None]
        return out

    @staticmethod
    def backward(x: Array, y: Array, d_out: Array) -> tuple[Array, Array]:
        dx, dy = np.zeros_like(x), np.empty_like(y)
        for j, column in enumerate(y.T):
            shift = y.shape[1] // 2 - j
            dx += np.roll(d_out, -shift, 1) * column[:, None]
            dy[:, j] = (d_out * np.roll(x, shift, 1)).sum(1)
        return dx, dy
