"""The update of Ftrl."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array, Float, register
from paddlelike.ops.update.base import Update, read_scalar
from paddlelike.ops.update.rules import Rows, Rule, Step


@Rule
def ftrl(
    p: Array, g: Array, s: Array, z: Array, /,
    lr: float, l1: float, double_l2: float, exponent: float, *, is_root: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    total = s + g * g
    before, after = (np.sqrt(s), np.sqrt(total)) if is_root else (s**exponent, total**exponent)
    z = z + g - (after - before) / lr * p
    p = (np.copysign(l1, z) - z) / (after / lr + double_l2)
    return np.where(np.abs(z) > l1, p, 0), total, z  # 0 also where z is NaN, as in Paddle


@register
class Ftrl(Update):
    """Follow the regularised leader: McMahan et al., Ad click prediction, 2013.

    With ``s' = s + g^2`` and ``q(s) = s ^ -lr_power``: ``z += g - (q(s') - q(s)) / lr p``, then
    ``p = (l1 sign(z) - z) / (q(s') / lr + 2 l2)`` where ``|z| > l1``, else 0.
    """

    type = "ftrl"
    inputs = ("Param", "SquaredAccumulator", "LinearAccumulator", "Grad", "LearningRate")
    outputs = ("ParamOut", "SquaredAccumOut", "LinearAccumOut")
    attrs = {"l1": Float(0.0), "l2": Float(0.0), "lr_power": Float(-0.5)}
    inplace = {
        "ParamOut": "Param",
        "SquaredAccumOut": "SquaredAccumulator",
        "LinearAccumOut": "LinearAccumulator",
    }
    elements = ("Param", "Grad", "SquaredAccumulator", "LinearAccumulator")
    rows = Rows.KEPT

    @staticmethod
    def read_step(rate: Array, *, l1: float, l2: float, lr_power: float) -> Step:
        l1, l2 = l1 + 1e-10, l2 + 1e-10  # as Paddle: never exactly zero
        return ftrl(read_scalar(rate), l1, 2 * l2, -lr_power, is_root=lr_power == -0.5)
