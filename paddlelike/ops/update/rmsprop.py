"""RMSProp, FTRL, and proximal steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.framework.opdef import Array, Attrs, Bool, Float, register
from paddlelike.ops.update.base import Update, read_scalar
from paddlelike.ops.update.rules import Rows, Rule, Step


class RmsPropAttrs(Attrs):
    """Attributes of rmsprop."""

    epsilon: float = Float(1e-10)
    decay: float = Float(0.9)
    momentum: float = Float(0.0)
    centered: bool = Bool(False)


@Rule
def rmsprop(
    p: Array, g: Array, s: Array, v: Array, /, lr: float, decay: float, rest: float, mu: float, epsilon: float
) -> tuple[Array, Array, Array]:
    s = s * decay + rest * (g * g)
    v = v * mu + lr * g / np.sqrt(s + epsilon)
    return p - v, s, v


@Rule
def centered_rmsprop(
    p: Array, g: Array, s: Array, v: Array, a: Array, /,
    lr: float, decay: float, rest: float, mu: float, epsilon: float,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    s = s * decay + rest * (g * g)
    a = a * decay + rest * g
    v = v * mu + lr * g / np.sqrt(s + epsilon - a * a)
    return p - v, s, v, a


@register
class RmsProp(Update):
    """``s = d s + (1 - d) g^2; v = mu v + lr g / sqrt(s + eps); p -= v``.

    Centered: ``a = d a + (1 - d) g`` and ``sqrt(s - a^2 + eps)``. Hinton, Coursera lecture 6, 2012.
    """

    type = "rmsprop"
    inputs = ("Param", "MeanSquare", "MeanGrad?", "LearningRate", "Grad", "Moment")
    outputs = ("ParamOut", "MomentOut", "MeanSquareOut", "MeanGradOut")
    attrs = RmsPropAttrs.table()
    elements = ("Param", "Grad", "MeanSquare", "Moment", "MeanGrad")
    rows = Rows.ZEROS

    @classmethod
    def list_elements(cls, keywords: Mapping[str, Any]) -> tuple[str, ...]:
        return cls.elements if keywords["attrs"].centered else cls.elements[:-1]

    @staticmethod
    def read_step(rate: Array, *, attrs: RmsPropAttrs) -> Step:
        rule = centered_rmsprop if attrs.centered else rmsprop
        return rule(read_scalar(rate), attrs.decay, 1 - attrs.decay, attrs.momentum, attrs.epsilon)


@Rule
def ftrl(
    p: Array, g: Array, s: Array, z: Array, /,
    lr: float, l1: float, double_l2: float, exponent: float, *, is_root: bool,
) -> tuple[Array, Array, Array]:  # fmt: skip
    total = s + g * g
    before, after = (np.sqrt(s), np.sqrt(total)) if is_root else (s**exponent, total**exponent)
    z = z + g - (after - before) / lr * p
    p = (l1 * np.sign(z) - z) / (after / lr + double_l2)
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
    until = "1"
    inputs = ("Param", "Moment", "Grad", "LearningRate")
    outputs = ("ParamOut", "MomentOut")
    attrs = {"l1": Float(0.0), "l2": Float(0.0)}
    elements = ("Param", "Grad", "Moment")

    @staticmethod
    def read_step(rate: Array, *, l1: float, l2: float) -> Step:
        lr = read_scalar(rate)
        return proximal_adagrad(lr, lr * l1, 1 + lr * l2, has_l1=l1 > 0)
