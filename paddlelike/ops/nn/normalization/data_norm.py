"""Normalization by sums over a whole data set: data_norm."""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    Array,
    Bool,
    Float,
    Gradient,
    GradOp,
    Int,
    OpDef,
    OpView,
    Spec,
    String,
    register,
)
from paddlelike.ops.operands import can_be_equal

_SHOWN: Final = 1e-7  # a slot whose first number is smaller was not shown
_SUMS: Final = ("BatchSize", "BatchSum", "BatchSquareSum")


@register
class DataNorm(OpDef):
    """``Y = (X - Means) * Scales`` per column, optionally times ``scale_w`` plus ``bias``.

    ``Means = BatchSum / BatchSize``, ``Scales = sqrt(BatchSize / BatchSquareSum)``. The three sums are
    trained like parameters: the batch adds to them through their gradients. With ``slot_dim`` the columns
    form slots. Where the first number of a slot is 0, the row does not show the slot, and Y is 0.
    """

    type = "data_norm"
    inputs = ("scale_w?", "bias?", "X", "BatchSize", "BatchSum", "BatchSquareSum")
    outputs = ("Y", "Means", "Scales")
    attrs = {
        "epsilon": Float(1e-4),
        "slot_dim": Int(-1),
        "summary_decay_rate": Float(0.9999999),
        "enable_scale_and_shift": Bool(False),
        "data_layout": String("NCHW"),
        "sync_stats": Bool(False),
        "use_mkldnn": Bool(False),
    }
    lod = {"Y": "X"}
    gradient = Gradient(
        "X",
        "scale_w",
        "bias",
        "Means",
        "Scales",
        "Y@GRAD",
        outputs=(*_SUMS, "scale_w@GRAD", "bias@GRAD", "X@GRAD", *(f"{slot}@GRAD" for slot in _SUMS)),
    )

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        (grad,) = super().make_grad(op)
        grad.outputs.update({slot: op.input(slot) for slot in _SUMS})
        return [grad]

    @staticmethod
    def infer(
        scale: Spec | None, bias: Spec | None, x: Spec, size: Spec, total: Spec, square: Spec
    ) -> tuple[Spec, Spec, Spec]:
        columns = x.shape[-1]
        for name, spec in zip(_SUMS, (size, total, square), strict=True):
            if len(spec.shape) != 1 or not can_be_equal(spec.shape[0], columns):
                raise ShapeError(
                    f"data_norm: {name} has shape {spec.shape}; X of shape {x.shape} has {columns} columns"
                )
        return Spec(x.shape, x.dtype), Spec((columns,), x.dtype), Spec((columns,), x.dtype)

    @staticmethod
    def forward(
        scale: Array | None,
        bias: Array | None,
        x: Array,
        size: Array,
        total: Array,
        square: Array,
        *,
        slot_dim: int,
        enable_scale_and_shift: bool,
    ) -> tuple[Array, Array, Array]:
        means, scales = total / size, np.sqrt(size / square)
        y = x - means
        y *= scales
        if enable_scale_and_shift and scale is not None and bias is not None:
            y *= scale
            y += bias
        if slot_dim > 0:
            y *= _find_shown(x, slot_dim)
        return y, means, scales

    @staticmethod
    def backward(
        x: Array,
        scale: Array | None,
        bias: Array | None,
        means: Array,
        scales: Array,
        d_y: Array,
        *,
        epsilon: float,
        slot_dim: int,
        enable_scale_and_shift: bool,
    ) -> tuple[Array | None, ...]:
        shown = _find_shown(x, slot_dim) if slot_dim > 0 else np.ones_like(x)
        x_hat = x - means
        size = shown.sum(0)
        total = (x * shown).sum(0)
        square = (np.square(x_hat) * shown).sum(0)
        if slot_dim > 0:  # as in Paddle: means over the rows that show the slot
            rows = np.maximum(size, 1)
            size, total, square = size / rows, total / rows, square / rows + epsilon * size
        else:
            square += epsilon * size
        d_scale = d_bias = None
        dx = d_y * scales
        if enable_scale_and_shift and scale is not None:
            d_shown = d_y * shown
            x_hat *= scales
            d_scale, d_bias = (x_hat * d_shown).sum(0), d_shown.sum(0)
            dx = d_shown * (scales * scale)
        return None, None, None, d_scale, d_bias, dx, size, total, square


def _find_shown(x: Array, slot_dim: int) -> Array:
    """Return 1 where the slot of a column was shown in a row, else 0."""
    first = np.abs(x[:, ::slot_dim]) >= _SHOWN
    return np.repeat(first, slot_dim, 1)[:, : x.shape[1]].astype(x.dtype)
