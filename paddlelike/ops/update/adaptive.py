"""Optimizer updates with a rate per element: the Adagrads, adadelta, rmsprop, ftrl.

In the formulas ``g`` is the gradient, ``p`` the parameter, ``lr`` the learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.core.tensor import SelectedRows
from paddlelike.framework.opdef import Array, Attrs, Bool, Float, RowUpdate, register
from paddlelike.framework.quirks import follows_fluid
from paddlelike.ops.kernels.fast import updates as fast
from paddlelike.ops.update.blocks import iterate_blocks, iterate_touched
from paddlelike.ops.update.step import (
    Update,
    average,
    is_plain_rate,
    quotient,
    read_scalar,
    require_dense,
    shrink,
)

__all__ = ["Adadelta", "Adagrad", "DecayedAdagrad", "Ftrl", "ProximalAdagrad", "RmsProp"]


@register
class Adagrad(Update):
    """``m += g^2; p -= lr g / (sqrt(m) + eps)``; a sparse gradient moves its own rows only.

    Duchi et al., Adaptive subgradient methods, 2011.
    """

    type = "adagrad"
    inputs = ("Param", "Grad", "Moment", "LearningRate")
    outputs = ("ParamOut", "MomentOut")
    attrs = {"epsilon": Float(1e-6)}
    inplace = {"ParamOut": "Param", "MomentOut": "Moment"}
    elements = ("Param", "Grad", "Moment")

    @staticmethod
    def forward(
        param: Array, grad: Array | SelectedRows, moment: Array, rate: Array, *, epsilon: float
    ) -> tuple[Array, Array]:
        numbers = Adagrad.read_numbers(rate, epsilon=epsilon)
        for block in iterate_touched(param, grad, moment, rule=Adagrad.make_rule(numbers)):
            Adagrad.update(numbers, *block)
        return param, moment

    @staticmethod
    def make_rule(numbers: tuple[float, ...]) -> fast.Rule:
        return fast.Rule(fast.adagrad, fast.adagrad_rows, numbers)

    @staticmethod
    def read_numbers(rate: Array, *, epsilon: float) -> tuple[float, ...]:
        return read_scalar(rate), epsilon

    @staticmethod
    def update(numbers: tuple[float, ...], p: Array, g: Array, m: Array) -> None:
        lr, epsilon = numbers
        m += g * g
        p -= quotient(lr * g, m, epsilon)

    @classmethod
    def get_row_update(cls, keywords: Mapping[str, Any]) -> RowUpdate | None:
        epsilon = keywords["epsilon"]
        if not epsilon > 0:
            return None  # 0 / 0, where the moment is 0

        def holds(param: Array, grad: Any, moment: Array, rate: Array) -> bool:
            return is_plain_rate(rate, param) and bool(param.dtype.type(epsilon) > 0)

        return RowUpdate((cls.inputs.index("Moment"),), holds)


@register
class DecayedAdagrad(Update):
    """``m = d m + (1 - d) g^2; p -= lr g / (sqrt(m) + eps)``."""

    type = "decayed_adagrad"
    inputs = ("Param", "Grad", "Moment", "LearningRate")
    outputs = ("ParamOut", "MomentOut")
    attrs = {"decay": Float(0.95), "epsilon": Float(1e-6)}
    inplace = {"ParamOut": "Param", "MomentOut": "Moment"}
    elements = ("Param", "Grad", "Moment")

    @staticmethod
    def forward(
        param: Array,
        grad: Array | SelectedRows,
        moment: Array,
        rate: Array,
        *,
        decay: float,
        epsilon: float,
    ) -> tuple[Array, Array]:
        numbers = DecayedAdagrad.read_numbers(rate, decay=decay, epsilon=epsilon)
        for block in iterate_blocks(param, require_dense("decayed_adagrad", grad), moment):
            DecayedAdagrad.update(numbers, *block)
        return param, moment

    @staticmethod
    def read_numbers(rate: Array, *, decay: float, epsilon: float) -> tuple[float, ...]:
        return read_scalar(rate), decay, epsilon

    @staticmethod
    def update(numbers: tuple[float, ...], p: Array, g: Array, m: Array) -> None:
        lr, decay, epsilon = numbers
        average(m, decay, g * g)
        p -= quotient(lr * g, m, epsilon)


@register
class ProximalAdagrad(Update):
    """``m += g^2; p = shrink(p - lr g / sqrt(m))``, with the shrink of ``proximal_gd``."""

    type = "proximal_adagrad"
    inputs = ("Param", "Moment", "Grad", "LearningRate")
    outputs = ("ParamOut", "MomentOut")
    attrs = {"l1": Float(0.0), "l2": Float(0.0)}
    inplace = {"ParamOut": "Param", "MomentOut": "Moment"}
    elements = ("Param", "Grad", "Moment")

    @staticmethod
    def forward(
        param: Array,
        moment: Array,
        grad: Array | SelectedRows,
        rate: Array,
        *,
        l1: float,
        l2: float,
    ) -> tuple[Array, Array]:
        numbers = ProximalAdagrad.read_numbers(rate, l1=l1, l2=l2)
        for block in iterate_blocks(param, require_dense("proximal_adagrad", grad), moment):
            ProximalAdagrad.update(numbers, *block)
        return param, moment

    @staticmethod
    def read_numbers(rate: Array, *, l1: float, l2: float) -> tuple[float, ...]:
        return read_scalar(rate), l1, l2

    @staticmethod
    def update(numbers: tuple[float, ...], p: Array, g: Array, m: Array) -> None:
        lr, l1, l2 = numbers
        m += g * g
        p -= quotient(lr * g, m, 0.0)
        shrink(p, lr * l1, lr * l2)


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
    inplace = {
        "ParamOut": "Param",
        "AvgSquaredGradOut": "AvgSquaredGrad",
        "AvgSquaredUpdateOut": "AvgSquaredUpdate",
    }
    elements = ("Param", "Grad", "AvgSquaredGrad", "AvgSquaredUpdate")

    @staticmethod
    def forward(
        param: Array,
        grad: Array | SelectedRows,
        squared_grad: Array,
        squared_update: Array,
        *,
        rho: float,
        epsilon: float,
    ) -> tuple[Array, Array, Array]:
        grad = require_dense("adadelta", grad)
        numbers = Adadelta.read_numbers(rho=rho, epsilon=epsilon)
        for block in iterate_blocks(param, grad, squared_grad, squared_update):
            Adadelta.update(numbers, *block)
        return param, squared_grad, squared_update

    @staticmethod
    def read_numbers(*, rho: float, epsilon: float) -> tuple[float, ...]:
        return rho, epsilon, follows_fluid("adadelta_step")

    @staticmethod
    def update(numbers: tuple[float, ...], p: Array, g: Array, a: Array, b: Array) -> None:
        rho, epsilon, new = numbers
        square = g * g
        average(a, rho, square)
        ratio = (b + epsilon) / (a + epsilon)
        average(b, rho, ratio * square)
        p -= np.sqrt((b + epsilon) / (a + epsilon) if new else ratio) * g


class RmsPropAttrs(Attrs):
    """Attributes of rmsprop."""

    epsilon: float = Float(1e-10)
    decay: float = Float(0.9)
    momentum: float = Float(0.0)
    centered: bool = Bool(False)


@register
class RmsProp(Update):
    """``s = d s + (1 - d) g^2; v = mu v + lr g / sqrt(s + eps); p -= v``.

    Centered: ``a = d a + (1 - d) g`` and ``sqrt(s - a^2 + eps)``. Hinton, Coursera lecture 6, 2012.
    """

    type = "rmsprop"
    inputs = ("Param", "MeanSquare", "MeanGrad?", "LearningRate", "Grad", "Moment")
    outputs = ("ParamOut", "MomentOut", "MeanSquareOut", "MeanGradOut")
    attrs = RmsPropAttrs.table()
    inplace = {
        "ParamOut": "Param",
        "MomentOut": "Moment",
        "MeanSquareOut": "MeanSquare",
        "MeanGradOut": "MeanGrad",
    }
    elements = ("Param", "Grad", "MeanSquare", "Moment", "MeanGrad")

    @classmethod
    def list_elements(cls, keywords: Mapping[str, Any]) -> tuple[str, ...]:
        return cls.elements if keywords["attrs"].centered else cls.elements[:-1]

    @staticmethod
    def forward(
        param: Array,
        mean_square: Array,
        mean_grad: Array | None,
        rate: Array,
        grad: Array | SelectedRows,
        moment: Array,
        *,
        attrs: RmsPropAttrs,
    ) -> tuple[Array, Array, Array, Array | None]:
        means = (mean_grad,) if attrs.centered and mean_grad is not None else ()
        numbers = RmsProp.read_numbers(rate, attrs=attrs)
        rule = RmsProp.make_rule(numbers)
        for block in iterate_blocks(param, grad, mean_square, moment, *means, rule=rule):
            RmsProp.update(numbers, *block)
        return param, moment, mean_square, mean_grad

    @staticmethod
    def make_rule(numbers: tuple[float, ...]) -> fast.Rule | None:
        lr, decay, epsilon, momentum, centered = numbers
        return None if centered else fast.Rule(fast.rmsprop, None, (lr, decay, 1 - decay, momentum, epsilon))

    @staticmethod
    def read_numbers(rate: Array, *, attrs: RmsPropAttrs) -> tuple[float, ...]:
        return read_scalar(rate), attrs.decay, attrs.epsilon, attrs.momentum, attrs.centered

    @staticmethod
    def update(
        numbers: tuple[float, ...], p: Array, g: Array, s: Array, v: Array, a: Array | None = None
    ) -> None:
        lr, decay, epsilon, momentum, centered = numbers
        average(s, decay, g * g)
        spread = s + epsilon
        if centered and a is not None:
            average(a, decay, g)
            spread -= a * a
        v *= momentum
        v += lr * g / np.sqrt(spread, out=spread)
        p -= v


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

    @staticmethod
    def forward(
        param: Array,
        squared: Array,
        linear: Array,
        grad: Array | SelectedRows,
        rate: Array,
        *,
        l1: float,
        l2: float,
        lr_power: float,
    ) -> tuple[Array, Array, Array]:
        numbers = Ftrl.read_numbers(rate, l1=l1, l2=l2, lr_power=lr_power)
        for block in iterate_touched(param, grad, squared, linear):
            Ftrl.update(numbers, *block)
        return param, squared, linear

    @staticmethod
    def read_numbers(rate: Array, *, l1: float, l2: float, lr_power: float) -> tuple[float, ...]:
        return read_scalar(rate), l1 + 1e-10, l2 + 1e-10, lr_power  # as Paddle: never exactly zero

    @staticmethod
    def update(numbers: tuple[float, ...], p: Array, g: Array, s: Array, z: Array) -> None:
        lr, l1, l2, lr_power = numbers
        before = s**-lr_power
        s += g * g
        after = s**-lr_power
        z += g
        z -= (after - before) / lr * p
        p[...] = (np.copysign(l1, z) - z) / (after / lr + 2 * l2)
        p[~(np.abs(z) > l1)] = 0  # also where z is NaN, as in Paddle
