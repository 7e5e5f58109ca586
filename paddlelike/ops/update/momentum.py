"""The updates of Momentum and LarsMomentum: momentum, lars_momentum.

In the rules ``g`` is the gradient, ``p`` the parameter, ``v`` the velocity, ``lr`` the learning rate.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from paddlelike.core import SelectedRows
from paddlelike.framework.opdef import Array, Bool, Float, RowUpdate, register
from paddlelike.ops.update.base import Update, choose, norm, read_scalar, require_dense
from paddlelike.ops.update.rules import Rows, Rule, Step, apply


@functools.partial(Rule, is_linear=True)
def momentum(
    p: Array, g: Array, v: Array, /, lr: float, mu: float, *, use_nesterov: bool
) -> tuple[Array, Array]:
    v = v * mu + g
    return p - lr * (g + mu * v if use_nesterov else v), v


@register
class Momentum(Update):
    """``v = mu v + g; p -= lr v``, or with Nesterov's look-ahead ``p -= lr (g + mu v)``."""

    type = "momentum"
    inputs = ("Param", "Grad", "Velocity", "LearningRate")
    outputs = ("ParamOut", "VelocityOut")
    attrs = {"mu": Float(), "use_nesterov": Bool(False)}
    elements = ("Param", "Grad", "Velocity")
    rows = Rows.ZEROS

    @staticmethod
    def read_step(rate: Array, *, mu: float, use_nesterov: bool) -> Step:
        return momentum(read_scalar(rate), mu, use_nesterov=use_nesterov)

    @classmethod
    def get_row_update(cls, keywords: Mapping[str, Any]) -> RowUpdate:
        return cls.make_row_update(keywords)


@Rule
def lars_momentum(
    p: Array, g: Array, v: Array, /, local: float, mu: float, decay: float
) -> tuple[Array, Array]:
    v = v * mu + local * (g + decay * p)
    return p - v, v


@register
class LarsMomentum(Update):
    """``v = mu v + l (g + wd p); p -= v``, with a separate rate ``l`` for every parameter.

    ``l = lr coeff |p| / (|g| + wd |p|)``; where a norm is zero, ``l = lr``. You et al., Large batch
    training of convolutional networks, 2017.
    """

    type = "lars_momentum"
    inputs = ("Param", "Grad", "Velocity", "LearningRate")
    outputs = ("ParamOut", "VelocityOut")
    attrs = {"mu": Float(), "lars_coeff": Float(0.001), "lars_weight_decay": Float(0.0005)}

    @staticmethod
    def forward(
        param: Array,
        grad: Array | SelectedRows,
        velocity: Array,
        rate: Array,
        *,
        mu: float,
        lars_coeff: float,
        lars_weight_decay: float,
    ) -> tuple[Array, ...]:
        grad = require_dense("lars_momentum", grad)
        p_norm, g_norm = norm(param), norm(grad)
        both = (p_norm > 0) & (g_norm > 0)
        below = choose(both, g_norm + lars_weight_decay * p_norm, 1.0)
        local = choose(both, lars_coeff * p_norm, 1.0) / below
        return apply(lars_momentum(read_scalar(rate) * local, mu, lars_weight_decay), param, grad, velocity)
