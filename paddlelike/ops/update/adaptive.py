"""Optimizer updates with a rate per element: the Adagrads, adadelta, rmsprop, ftrl.

In the formulas ``g`` is the gradient, ``p`` the parameter, ``lr`` the learning rate.
"""

from __future__ import annotations

import numpy as np

from paddlelike.core.tensor import SelectedRows
from paddlelike.framework.opdef import Array, Attrs, Bool, Float, register
from paddlelike.framework.quirks import follows_fluid
from paddlelike.ops.kernels.fast import updates as fast
from paddlelike.ops.update.step import (
    Update,
    average,
    iterate_blocks,
    iterate_touched,
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

    @staticmethod
    def forward(
        param: Array, grad: Array | SelectedRows, moment: Array, rate: Array, *, epsilon: float
    ) -> tuple[Array, Array]:
        lr = read_scalar(rate)
        rule = fast.Rule(fast.adagrad, fast.adagrad_rows, (lr, epsilon))
        for p, g, m in iterate_touched(param, grad, moment, rule=rule):
            m += g * g
            p -= quotient(lr * g, m, epsilon)
        return param, moment


@register
class DecayedAdagrad(Update):
    """``m = d m + (1 - d) g^2; p -= lr g / (sqrt(m) + eps)``."""

    type = "decayed_adagrad"
    inputs = ("Param", "Grad", "Moment", "LearningRate")
    outputs = ("ParamOut", "MomentOut")
    attrs = {"decay": Float(0.95), "epsilon": Float(1e-6)}
    inplace = {"ParamOut": "Param", "MomentOut": "Moment"}

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
        lr = read_scalar(rate)
        for p, g, m in iterate_blocks(param, require_dense("decayed_adagrad", grad), moment):
            average(m, decay, g * g)
            p -= quotient(lr * g, m, epsilon)
        return param, moment


@register
class ProximalAdagrad(Update):
    """``m += g^2; p = shrink(p - lr g / sqrt(m))``, with the shrink of ``proximal_gd``."""

    type = "proximal_adagrad"
    inputs = ("Param", "Moment", "Grad", "LearningRate")
    outputs = ("ParamOut", "MomentOut")
    attrs = {"l1": Float(0.0), "l2": Float(0.0)}
    inplace = {"ParamOut": "Param", "MomentOut": "Moment"}

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
        lr = read_scalar(rate)
        for p, g, m in iterate_blocks(param, require_dense("proximal_adagrad", grad), moment):
            m += g * g
            p -= quotient(lr * g, m, 0.0)
            shrink(p, lr * l1, lr * l2)
        return param, moment


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
        new = follows_fluid("adadelta_step")
        for p, g, a, b in iterate_blocks(param, grad, squared_grad, squared_update):
            square = g * g
            average(a, rho, square)
            ratio = (b + epsilon) / (a + epsilon)
            average(b, rho, ratio * square)
            p -= np.sqrt((b + epsilon) / (a + epsilon) if new else ratio) * g
        return param, squared_grad, squared_update


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
        lr = read_scalar(rate)
        means = (mean_grad,) if attrs.centered and mean_grad is not None else ()
        numbers = lr, attrs.decay, 1 - attrs.decay, attrs.momentum, attrs.epsilon
        rule = None if means else fast.Rule(fast.rmsprop, None, numbers)
        for p, g, s, v, *mean in iterate_blocks(param, grad, mean_square, moment, *means, rule=rule):
            average(s, attrs.decay, g * g)
            spread = s + attrs.epsilon
            for a in mean:
                average(a, attrs.decay, g)
                spread -= a * a
            v *= attrs.momentum
            v += lr * g / np.sqrt(spread, out=spread)
            p -= v
        return param, moment, mean_square, mean_grad


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
        lr = read_scalar(rate)
        l1, l2 = l1 + 1e-10, l2 + 1e-10  # as Paddle: never exactly zero
        for p, g, s, z in iterate_touched(param, grad, squared, linear):
            before = s**-lr_power
            s += g * g
            after = s**-lr_power
            z += g
            z -= (after - before) / lr * p
            p[...] = (np.copysign(l1, z) - z) / (after / lr + 2 * l2)
            p[np.abs(z) <= l1] = 0
        return param, squared, linear
