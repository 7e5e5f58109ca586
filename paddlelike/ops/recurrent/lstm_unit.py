"""lstm_unit: one step of long short-term memory, on gates that come projected."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Float, Gradient, OpDef, Spec, register
from paddlelike.ops.kernels.special import sigmoid
from paddlelike.ops.operands import can_be_equal


@register
class LstmUnit(OpDef):
    """``C = s(f + forget_bias) C_prev + s(i) tanh(g)``, ``H = s(o) tanh(C)`` with s the sigmoid.

    X is (N, 4D) with the columns i, f, o, g; C_prev is (N, D).
    """

    type = "lstm_unit"
    by_row = True
    inputs = ("X", "C_prev")
    outputs = ("C", "H")
    attrs = {"forget_bias": Float(0.0)}
    gradient = Gradient("X", "C_prev", "C", "C@GRAD", "H@GRAD", traceable=False)

    @staticmethod
    def infer(x: Spec, c_prev: Spec) -> tuple[Spec, Spec]:
        fits = len(x.shape) == len(c_prev.shape) == 2 and can_be_equal(x.shape[0], c_prev.shape[0])
        if not fits or x.shape[1] != 4 * c_prev.shape[1]:
            raise ShapeError(
                f"lstm_unit: X is {list(x.shape)}, C_prev {list(c_prev.shape)}, expected (N, 4 D) and (N, D)"
            )
        out = Spec((x.shape[0], c_prev.shape[1]), x.dtype)
        return out, out

    @staticmethod
    def forward(x: Array, c_prev: Array, *, forget_bias: float) -> tuple[Array, Array]:
        i, f, o, g = _split_gates(x, forget_bias)
        c = f * c_prev
        c += i * g
        return c, o * np.tanh(c)

    @staticmethod
    def backward(
        x: Array, c_prev: Array, c: Array, d_c: Array, d_h: Array, *, forget_bias: float
    ) -> tuple[Array, Array]:
        i, f, o, g = _split_gates(x, forget_bias)
        tanh_c = np.tanh(c)
        d_state = d_h * o * (1 - tanh_c * tanh_c)
        d_state += d_c
        d_x = np.empty_like(x)
        d_i, d_f, d_o, d_g = np.split(d_x, 4, axis=1)
        np.multiply(d_state * g, i * (1 - i), out=d_i)
        np.multiply(d_state * c_prev, f * (1 - f), out=d_f)
        np.multiply(d_h * tanh_c, o * (1 - o), out=d_o)
        np.multiply(d_state * i, 1 - g * g, out=d_g)
        d_state *= f
        return d_x, d_state


def _split_gates(x: Array, forget_bias: float) -> tuple[Array, Array, Array, Array]:
    i, f, o, g = np.split(x, 4, axis=1)
    return sigmoid(i), sigmoid(f + forget_bias), sigmoid(o), np.tanh(g)
