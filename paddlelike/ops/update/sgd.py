"""The updates of SGD and Dpsgd: sgd, dpsgd.

In the rules ``g`` is the gradient, ``p`` the parameter, ``lr`` the learning rate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core import Generator, SelectedRows, VarType
from paddlelike.core.row_changes import note_rows
from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Attrs, Context, Float, Int, Kernel, RowUpdate, register
from paddlelike.ops.kernels.growing_rows import GrowingRows
from paddlelike.ops.kernels.recording import LEAST
from paddlelike.ops.update.base import Update, is_plain_rate, norm, read_scalar, require_dense
from paddlelike.ops.update.rules import BLOCK, Rows, Rule, Step, apply, is_empty_sparse


@functools.partial(Rule, is_linear=True)
def descend(p: Array, g: Array, /, lr: float) -> Array:
    return p - lr * g


@register
class Sgd(Update):
    """``p -= lr g``. Param may be SelectedRows if Grad is sparse and its rows are among the rows of Param."""

    type = "sgd"
    inputs = ("Param", "LearningRate", "Grad")
    outputs = ("ParamOut",)
    elements = ("Param", "Grad")
    rows = Rows.KEPT

    @staticmethod
    def read_step(rate: Array) -> Step:
        return descend(read_scalar(rate))

    @classmethod
    def forward(cls, *inputs: Any, **keywords: Any) -> Any:
        param, rate, grad = inputs
        if isinstance(param, SelectedRows) and not isinstance(param, GrowingRows):
            return _sgd_table(param, read_scalar(rate), grad)
        if isinstance(grad, SelectedRows) and _holds_rows(param, grad):
            (target,) = note_rows((param,), grad.row_array)
            if target.flags.c_contiguous:
                _descend_rows(target, grad.row_array, np.asarray(grad.array), read_scalar(rate))
                return param
        return cls.run(inputs, keywords)

    @classmethod
    def get_row_update(cls, keywords: Mapping[str, Any]) -> RowUpdate | None:
        return RowUpdate((), lambda param, rate, grad: is_plain_rate(rate, param))

    @classmethod
    def specialize(cls, keywords: Mapping[str, Any], variables: Sequence[Any]) -> Kernel | None:
        if any(v is None or v.type != VarType.LOD_TENSOR or min(v.shape, default=1) < 1 for v in variables):
            return None
        if math.prod(variables[0].shape) > BLOCK:  # which is updated in parts that stay in the cache
            return None
        return _descend


def _holds_rows(param: object, grad: SelectedRows) -> bool:
    """Return whether a parameter is an array whose rows a gradient updates one by one."""
    rows, values = grad.row_array, grad.array
    if type(param) is not np.ndarray or values is None or not param.flags.c_contiguous:
        return False
    return bool(
        values.shape[1:] == param.shape[1:] and rows.size and rows.min() >= 0 and rows.max() < len(param)
    )


def _descend_rows(param: Array, rows: Array, values: Array, lr: float) -> None:
    """Update rows one by one, as Fluid does: repeated ids are rounded after each update."""
    width = param.size // len(param)
    places = rows if width == 1 else (rows[:, None] * width + np.arange(width)).reshape(-1)
    np.subtract.at(param.reshape(-1), places, (values * param.dtype.type(lr)).reshape(-1))


def _descend(param: Array, rate: Array, grad: Array) -> Array | SelectedRows:
    if type(grad) is not np.ndarray or param.shape != grad.shape or rate.dtype is not grad.dtype:
        found: Array | SelectedRows = Sgd.forward(param, rate, grad)  # in loops, it may be sparse after all
        return found
    if param.size >= LEAST:
        descend(rate.item()).update(param, grad)
    else:
        descend.record({}).evaluate(param, grad, rate.reshape(()))
    return param


def _sgd_table(param: SelectedRows, lr: float, grad: Array | SelectedRows) -> SelectedRows:
    if not isinstance(grad, SelectedRows):
        raise ShapeError("sgd: Param holds selected rows; Grad must be sparse, with rows among them")
    if is_empty_sparse(grad):
        return param
    places = param.find_rows(grad.row_array)
    if (places < 0).any():
        missing = int(grad.row_array[places < 0][0])
        raise ShapeError(f"sgd: Grad holds row {missing}, Param holds selected rows without it")
    assert param.held_array is not None
    assert grad.array is not None
    _descend_rows(param.held_array, places, grad.array, lr)
    param.get_tensor().touch()
    return param


class DpsgdAttrs(Attrs):
    """Attributes of dpsgd."""

    clip: float = Float(10.0)
    batch_size: float = Float(16.0)
    sigma: float = Float(1.0)
    seed: int = Int(0)


@Rule
def descend_with_noise(p: Array, g: Array, noise: Array, /, lr: float, scale: float) -> tuple[Array, Array]:
    return p - lr * (g / scale + noise), noise


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

    @staticmethod
    def forward(
        ctx: Context, param: Array, grad: Array | SelectedRows, rate: Array, *, attrs: DpsgdAttrs
    ) -> Array:
        grad = require_dense("dpsgd", grad)
        noise = draw_noise(ctx, param, attrs)
        step = descend_with_noise(read_scalar(rate), np.maximum(1.0, norm(grad) / attrs.clip))
        return apply(step, param, grad, noise)[0]


def draw_noise(ctx: Context, param: Array, attrs: DpsgdAttrs) -> Array:
    """Return the noise of dpsgd divided by the batch size, an array like the parameter."""
    random, share = ctx.random(attrs.seed), attrs.sigma / attrs.batch_size
    if follows_fluid("dpsgd_noise"):
        return np.full_like(param, share * draw_normal(random))
    return random.gaussian(param.shape, 0.0, share, param.dtype)


def draw_normal(random: Generator) -> float:
    """Return one normal number by the polar method, float32 step by step."""
    while True:
        x, y = 2 * random.draw(2) - 1
        square = x * x + y * y
        if 0 < square < 1:
            return float(x * np.sqrt(-2 * np.log(square) / square))
