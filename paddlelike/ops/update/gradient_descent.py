"""Optimizer updates with one rate for all: sgd, momentum, lars_momentum, dpsgd, proximal_gd.

In the formulas ``g`` is the gradient, ``p`` the parameter, ``lr`` the learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.random import Generator
from paddlelike.core.tensor import SelectedRows
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Context, Float, Int, Kernel, RowUpdate, register
from paddlelike.framework.quirks import follows_fluid
from paddlelike.ops.kernels.fast import updates as fast
from paddlelike.ops.update.blocks import BLOCK, is_empty_sparse, iterate_blocks, iterate_touched
from paddlelike.ops.update.step import (
    Update,
    is_like,
    is_plain_rate,
    norm,
    read_scalar,
    require_dense,
    shrink,
)

__all__ = ["Dpsgd", "LarsMomentum", "Momentum", "ProximalGd", "Sgd", "draw_normal"]


_COMPILED: Final = 1 << 11  # elements from which on a compiled pass is looked for


@register
class Sgd(Update):
    """``p -= lr g``. Param may be SelectedRows, if Grad is sparse and holds rows among its rows."""

    type = "sgd"
    inputs = ("Param", "LearningRate", "Grad")
    outputs = ("ParamOut",)
    inplace = {"ParamOut": "Param"}
    elements = ("Param", "Grad")
    operands = True

    @staticmethod
    def forward(param: Array | SelectedRows, rate: Array, grad: Array | SelectedRows) -> Array | SelectedRows:
        lr = read_scalar(rate)
        if isinstance(param, SelectedRows):
            return _sgd_table(param, lr, grad)
        for p, g in iterate_touched(param, grad, rule=Sgd.make_rule((lr,))):
            p -= lr * g
        return param

    @staticmethod
    def read_numbers(rate: Array) -> tuple[float, ...]:
        return (read_scalar(rate),)

    @staticmethod
    def make_rule(numbers: tuple[float, ...]) -> fast.Rule:
        return fast.Rule(fast.descend, fast.descend_rows, numbers)

    @staticmethod
    def update(numbers: tuple[float, ...], p: Array, g: Array) -> None:
        (lr,) = numbers
        p -= lr * g

    @classmethod
    def get_row_update(cls, keywords: Mapping[str, Any]) -> RowUpdate | None:
        return RowUpdate((), lambda param, rate, grad: is_plain_rate(rate, param))

    @classmethod
    def specialize(cls, keywords: Mapping[str, Any], variables: Sequence[Any]) -> Kernel | None:
        if any(v is None or v.type != VarType.LOD_TENSOR or min(v.shape) < 1 for v in variables):
            return None
        if math.prod(variables[0].shape) > BLOCK:  # which is updated in parts that stay in the cache
            return None
        return _descend


def _descend(param: Array, rate: Array, grad: Array) -> Array | SelectedRows:
    if type(grad) is not np.ndarray or param.shape != grad.shape or rate.dtype is not grad.dtype:
        return Sgd.forward(param, rate, grad)  # in loops, it may be sparse after all
    if param.size > _COMPILED and Sgd.make_rule((rate.item(),)).update((param, grad)):
        return param
    return np.subtract(param, grad * rate.reshape(()), param)


def _sgd_table(param: SelectedRows, lr: float, grad: Array | SelectedRows) -> SelectedRows:
    if not isinstance(grad, SelectedRows):
        raise ShapeError("sgd: Param holds selected rows; Grad must be sparse, with rows among them")
    if is_empty_sparse(grad):
        return param
    held = grad.merge()
    places = param.find_rows(held.row_array)
    if (places < 0).any():
        missing = int(held.row_array[places < 0][0])
        raise ShapeError(f"sgd: Grad holds row {missing}, Param holds selected rows without it")
    assert param.array is not None
    assert held.array is not None
    param.array[places] -= lr * held.array
    param.get_tensor().touch()
    return param


@register
class Momentum(Update):
    """``v = mu v + g; p -= lr v``, or with Nesterov's look ahead ``p -= lr (g + mu v)``."""

    type = "momentum"
    inputs = ("Param", "Grad", "Velocity", "LearningRate")
    outputs = ("ParamOut", "VelocityOut")
    attrs = {"mu": Float(), "use_nesterov": Bool(False)}
    inplace = {"ParamOut": "Param", "VelocityOut": "Velocity"}
    elements = ("Param", "Grad", "Velocity")
    operands = True

    @staticmethod
    def forward(
        param: Array,
        grad: Array | SelectedRows,
        velocity: Array,
        rate: Array,
        *,
        mu: float,
        use_nesterov: bool,
    ) -> tuple[Array, Array]:
        numbers = Momentum.read_numbers(rate, mu=mu, use_nesterov=use_nesterov)
        for block in iterate_blocks(param, grad, velocity, rule=Momentum.make_rule(numbers)):
            Momentum.update(numbers, *block)
        return param, velocity

    @classmethod
    def get_row_update(cls, keywords: Mapping[str, Any]) -> RowUpdate:
        def holds(param: Array, grad: SelectedRows, velocity: Array, rate: Array) -> bool:
            return not is_empty_sparse(grad) and is_like(param, velocity)

        return RowUpdate((), holds, whole=True)

    @staticmethod
    def make_rule(numbers: tuple[float, ...]) -> fast.Rule:
        lr, mu, use_nesterov = numbers
        return fast.Rule(fast.momentum, None, (lr, mu), (bool(use_nesterov),))

    @staticmethod
    def read_numbers(rate: Array, *, mu: float, use_nesterov: bool) -> tuple[float, ...]:
        return read_scalar(rate), mu, use_nesterov

    @staticmethod
    def update(numbers: tuple[float, ...], p: Array, g: Array, v: Array) -> None:
        lr, mu, use_nesterov = numbers
        v *= mu
        v += g
        p -= lr * (g + mu * v) if use_nesterov else lr * v


@register
class LarsMomentum(Update):
    """``v = mu v + l (g + wd p); p -= v``, with a rate of its own for every parameter.

    ``l = lr coeff |p| / (|g| + wd |p|)``; where a norm is zero, ``l = lr``. You et al., Large batch
    training of convolutional networks, 2017.
    """

    type = "lars_momentum"
    inputs = ("Param", "Grad", "Velocity", "LearningRate")
    outputs = ("ParamOut", "VelocityOut")
    attrs = {"mu": Float(), "lars_coeff": Float(0.001), "lars_weight_decay": Float(0.0005)}
    inplace = {"ParamOut": "Param", "VelocityOut": "Velocity"}

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
    ) -> tuple[Array, Array]:
        grad = require_dense("lars_momentum", grad)
        decay, local = lars_weight_decay, read_scalar(rate)
        p_norm, g_norm = norm(param), norm(grad)
        if p_norm > 0 and g_norm > 0:
            local *= lars_coeff * p_norm / (g_norm + decay * p_norm)
        for p, g, v in iterate_blocks(param, grad, velocity):
            v *= mu
            v += local * (g + decay * p)
            p -= v
        return param, velocity


class DpsgdAttrs(Attrs):
    """Attributes of dpsgd."""

    clip: float = Float(10.0)
    batch_size: float = Float(16.0)
    sigma: float = Float(1.0)
    seed: int = Int(0)


@register
class Dpsgd(Update):
    """``p -= lr (g / max(1, |g| / clip) + noise / batch_size)`` with ``noise ~ N(0, sigma)``.

    Abadi et al., Deep learning with differential privacy, 2016; but as Paddle has it, all elements
    of a parameter share one noise.
    """

    type = "dpsgd"
    inputs = ("Param", "Grad", "LearningRate")
    outputs = ("ParamOut",)
    attrs = DpsgdAttrs.table()
    inplace = {"ParamOut": "Param"}
    context = True

    @staticmethod
    def forward(
        ctx: Context, param: Array, grad: Array | SelectedRows, rate: Array, *, attrs: DpsgdAttrs
    ) -> Array:
        grad = require_dense("dpsgd", grad)
        lr, scale = read_scalar(rate), max(1.0, norm(grad) / attrs.clip)
        random, share = ctx.random(attrs.seed), attrs.sigma / attrs.batch_size
        if not follows_fluid("dpsgd_noise"):
            param -= lr * (grad / scale + random.gaussian(param.shape, 0.0, share, param.dtype))
            return param
        noise = share * draw_normal(random)
        for p, g in iterate_blocks(param, grad):
            p -= lr * (g / scale + noise)
        return param


def draw_normal(random: Generator) -> float:
    """Return one normal number by the polar method, float32 step by step."""
    while True:
        x, y = 2 * random.draw(2) - 1
        square = x * x + y * y
        if 0 < square < 1:
            return float(x * np.sqrt(-2 * np.log(square) / square))


@register
class ProximalGd(Update):
    """``p = shrink(p - lr g)``: pulled towards zero by ``lr l1``, then divided by ``1 + lr l2``."""

    type = "proximal_gd"
    inputs = ("Param", "Grad", "LearningRate")
    outputs = ("ParamOut",)
    attrs = {"l1": Float(0.0), "l2": Float(0.0)}
    inplace = {"ParamOut": "Param"}
    elements = ("Param", "Grad")

    @staticmethod
    def forward(param: Array, grad: Array | SelectedRows, rate: Array, *, l1: float, l2: float) -> Array:
        numbers = ProximalGd.read_numbers(rate, l1=l1, l2=l2)
        for block in iterate_blocks(param, require_dense("proximal_gd", grad)):
            ProximalGd.update(numbers, *block)
        return param

    @staticmethod
    def read_numbers(rate: Array, *, l1: float, l2: float) -> tuple[float, ...]:
        return read_scalar(rate), l1, l2

    @staticmethod
    def update(numbers: tuple[float, ...], p: Array, g: Array) -> None:
        lr, l1, l2 = numbers
        p -= lr * g
        shrink(p, lr * l1, lr * l2)
