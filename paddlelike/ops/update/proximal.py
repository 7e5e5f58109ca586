"""Updates that pull parameters towards zero: proximal_gd, proximal_adagrad."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array, Float, register
from paddlelike.ops.update.base import Update, read_scalar
from paddlelike.ops.update.rules import Rule, Step


def _shrink(p: Array, l1: float, divisor: float, *, has_l1: bool) -> Array:
    """``sign(p) max(|p| - l1, 0) / divisor``."""
    if has_l1:
        p = np.copysign(np.maximum(np.abs(p) - l1, 0), p)
    return p / divisor


@Rule
def proximal_gd(p: Array, g: Array, /, lr: float, l1: float, divisor: float, *, has_l1: bool) -> Array:
    return _shrink(p - lr * g, l1, divisor, has_l1=has_l1)


@register
class ProximalGd(Update):
    """``p = shrink(p - lr g)``: pulled towards zero by ``lr l1``, then divided by ``1 + lr l2``."""

    type = "proximal_gd"
    inputs = ("Param", "Grad", "LearningRate")
    outputs = ("ParamOut",)
    attrs = {"l1": Float(0.0), "l2": Float(0.0)}
    elements = ("Param", "Grad")

    @staticmethod
    def read_step(rate: Array, *, l1: float, l2: float) -> Step:
        lr = read_scalar(rate)
        return proximal_gd(lr, lr * l1, 1 + lr * l2, has_l1=l1 > 0)


@Rule
def proximal_adagrad(
    p: Array, g: Array, m: Array, /, lr: float, l1: float, divisor: float, *, has_l1: bool
) -> tuple[Array, Array]:
    m = m + g * g
    return _shrink(p - lr * g / np.sqrt(m), l1, divisor, has_l1=has_l1), m


@register
class ProximalAdagrad(Update):
    """``m += g^2; p = shrink(p - lr g / sqrt(m))``, with the shrink of ``proximal_gd``."""

    type = "proximal_adagrad"
    inputs = ("Param", "Moment", "Grad", "LearningRate")
    outputs = ("ParamOut", "MomentOut")
    attrs = {"l1": Float(0.0), "l2": Float(0.0)}
    elements = ("Param", "Grad", "Moment")

    @staticmethod
    def read_step(rate: Array, *, l1: float, l2: float) -> Step:
        lr = read_scalar(rate)
        return proximal_adagrad(lr, lr * l1, 1 + lr * l2, has_l1=l1 > 0)
