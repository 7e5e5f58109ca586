"""The updates of Adagrad, DecayedAdagrad and Adadelta: adagrad, decayed_adagrad, adadelta.

In the rules ``g`` is the gradient, ``p`` the parameter, ``m`` the moment, ``lr`` the learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Float, RowUpdate, register
from paddlelike.ops.update.base import Update, is_plain_rate, read_scalar
from paddlelike.ops.update.rules import Rows, Rule, Step


@Rule
def adagrad(p: Array, g: Array, m: Array, /, lr: float, epsilon: float) -> tuple[Array, Array]:
    m = m + g * g
    return p - lr * g / (np.sqrt(m) + epsilon), m


@register
class Adagrad(Update):
    """``m += g^2; p -= lr g / (sqrt(m) + eps)``; a sparse gradient changes only its own rows.

    Duchi et al., Adaptive subgradient methods, 2011.
    """

    type = "adagrad"
    inputs = ("Param", "Grad", "Moment", "LearningRate")
    outputs = ("ParamOut", "MomentOut")
    attrs = {"epsilon": Float(1e-6)}
    elements = ("Param", "Grad", "Moment")
    rows = Rows.KEPT

    @staticmethod
    def read_step(rate: Array, *, epsilon: float) -> Step:
        return adagrad(read_scalar(rate), epsilon)

    @classmethod
    def get_row_update(cls, keywords: Mapping[str, Any]) -> RowUpdate | None:
        epsilon = keywords["epsilon"]
        if not epsilon > 0:
            return None  # 0 / 0, where the moment is 0

        def holds(param: Array, grad: Any, moment: Array, rate: Array) -> bool:
            return is_plain_rate(rate, param) and bool(param.dtype.type(epsilon) > 0)

        return RowUpdate((cls.inputs.index("Moment"),), holds)


@Rule
def decayed_adagrad(
    p: Array, g: Array, m: Array, /, lr: float, decay: float, rest: float, epsilon: float
) -> tuple[Array, Array]:
    m = m * decay + rest * (g * g)
    return p - lr * g / (np.sqrt(m) + epsilon), m


@register
class DecayedAdagrad(Update):
    """``m = d m + (1 - d) g^2; p -= lr g / (sqrt(m) + eps)``."""

    type = "decayed_adagrad"
    inputs = ("Param", "Grad", "Moment", "LearningRate")
    outputs = ("ParamOut", "MomentOut")
    attrs = {"decay": Float(0.95), "epsilon": Float(1e-6)}
    elements = ("Param", "Grad", "Moment")

    @staticmethod
    def read_step(rate: Array, *, decay: float, epsilon: float) -> Step:
        return decayed_adagrad(read_scalar(rate), decay, 1 - decay, epsilon)


@Rule
def adadelta(
    p: Array, g: Array, a: Array, b: Array, /, rho: float, rest: float, epsilon: float, *, is_new: bool
) -> tuple[Array, Array, Array]:
    a = a * rho + rest * (g * g)
    below = a + epsilon
    step = np.sqrt((b + epsilon) / below) * g
    b = b * rho + rest * (step * step)
    if is_new:
        step = np.sqrt((b + epsilon) / below) * g
    return p - step, a, b


@register
class Adadelta(Update):
    """``a = r a + (1 - r) g^2; b = r b + (1 - r) q g^2; p -= sqrt(q) g``.

    ``q = (b + eps) / (a + eps)``. Zeiler, ADADELTA, 2012; but as Paddle has it, the step takes
    ``q`` with the new ``b``, and there is no learning rate.
    """

    type = "adadelta"
    inputs = ("Param", "Grad", "AvgSquaredGrad", "AvgSquaredUpdate")
    outputs = ("ParamOut", "AvgSquaredGradOut", "AvgSquaredUpdateOut")
    attrs = {"rho": Float(0.95), "epsilon": Float(1e-6)}
    elements = ("Param", "Grad", "AvgSquaredGrad", "AvgSquaredUpdate")
    keywords_of_copies = {"is_overwritten": False}  # in that case Fluid's step reads the old ``b``

    @staticmethod
    def read_step(*, rho: float, epsilon: float, is_overwritten: bool = True) -> Step:
        is_new = is_overwritten and follows_fluid("adadelta_step")
        return adadelta(rho, 1 - rho, epsilon, is_new=is_new)
