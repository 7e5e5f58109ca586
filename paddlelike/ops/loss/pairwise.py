"""Losses that compare two predictions, or a prediction and a target: huber, smooth_l1, rank losses."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import REQUIRED, Array, Float, Gradient, OpDef, Spec, register
from paddlelike.ops.kernels.special import sigmoid, softplus
from paddlelike.ops.operands import check_same_shape, same_shape


@register
class HuberLoss(OpDef):
    """``Out = R^2 / 2`` where ``|R| <= delta``, else ``delta (|R| - delta / 2)``; R = Y - X, Residual.

    Source: Huber, "Robust estimation of a location parameter", 1964.
    """

    type = "huber_loss"
    pairs_rows = True
    by_row = True
    inputs = ("X", "Y")
    outputs = ("Residual", "Out")
    attrs = {"delta": Float(REQUIRED)}
    lod = {"Out": "X"}
    gradient = Gradient("Out@GRAD", "Residual", outputs=("X@GRAD", "Y@GRAD"))

    infer = same_shape("X", "Y")

    @staticmethod
    def forward(x: Array, y: Array, *, delta: float) -> tuple[Array, Array]:
        residual = y - x
        size = np.abs(residual)
        inner = np.minimum(size, delta)
        return residual, inner * (size - inner / 2)

    @staticmethod
    def backward(
        d_out: Array, residual: Array, *, delta: float, wanted: tuple[bool, bool]
    ) -> tuple[Array | None, Array | None]:
        # As in Fluid, the slope is below 0 for a delta below 0, and NaN counts as below 0.
        slope = np.where(residual > 0, delta, -delta).astype(residual.dtype)
        d_y = d_out * np.where(np.abs(residual) <= delta, residual, slope)
        return -d_y if wanted[0] else None, d_y if wanted[1] else None


@register
class SmoothL1Loss(OpDef):
    """``Out``: per row, the sum of OutsideWeight times f(Diff), Diff = InsideWeight (X - Y).

    f(d) is ``(sigma d)^2 / 2`` where ``|d| < 1 / sigma^2``, else ``|d| - 1 / (2 sigma^2)``.
    Source: Girshick, "Fast R-CNN", 2015.
    """

    type = "smooth_l1_loss"
    until = "1"
    pairs_rows = True
    by_row = True
    inputs = ("X", "Y", "InsideWeight?", "OutsideWeight?")
    outputs = ("Diff", "Out")
    attrs = {"sigma": Float(1.0)}
    gradient = Gradient("Out@GRAD", "Diff", "InsideWeight", "OutsideWeight", outputs=("X@GRAD", "Y@GRAD"))

    @staticmethod
    def infer(x: Spec, y: Spec, inside: Spec | None, outside: Spec | None) -> tuple[Spec, Spec]:
        same = check_same_shape("smooth_l1_loss", X=x, Y=y)
        for name, weight in (("InsideWeight", inside), ("OutsideWeight", outside)):
            if weight is not None:
                check_same_shape("smooth_l1_loss", **{"X": x, name: weight})
        return same, Spec((x.shape[0], 1), x.dtype)

    @staticmethod
    def forward(
        x: Array, y: Array, inside: Array | None, outside: Array | None, *, sigma: float
    ) -> tuple[Array, Array]:
        diff = x - y
        if inside is not None:
            diff *= inside
        size, square = np.abs(diff), sigma * sigma
        bound = 1 / square if square else np.inf
        loss = np.where(size < bound, size * size * (square / 2), size - bound / 2)
        if outside is not None:
            loss *= outside
        return diff, loss.reshape(len(x), -1).sum(1, keepdims=True)

    @staticmethod
    def backward(
        d_out: Array,
        diff: Array,
        inside: Array | None,
        outside: Array | None,
        *,
        sigma: float,
        wanted: tuple[bool, bool],
    ) -> tuple[Array | None, Array | None]:
        d_x = np.clip(sigma * sigma * diff, -1, 1)
        for factor in (inside, outside, d_out.reshape(-1, *[1] * (diff.ndim - 1))):
            if factor is not None:
                d_x = d_x * factor
        return d_x if wanted[0] else None, -d_x if wanted[1] else None


@register
class RankLoss(OpDef):
    """``Out = log(1 + e^O) - Label O``, O = Left - Right: how well the order of both agrees with Label.

    Source: Burges et al., "Learning to rank using gradient descent" (RankNet), 2005.
    """

    type = "rank_loss"
    pairs_rows = True
    by_row = True
    inputs = ("Label", "Left", "Right")
    gradient = Gradient("Out@GRAD", "Label", "Left", "Right", outputs=("Left@GRAD", "Right@GRAD"))

    infer = same_shape("Label", "Left", "Right")

    @staticmethod
    def forward(label: Array, left: Array, right: Array) -> Array:
        order = left - right
        return softplus(order) - label * order

    @staticmethod
    def backward(
        d_out: Array, label: Array, left: Array, right: Array, *, wanted: tuple[bool, bool]
    ) -> tuple[Array | None, Array | None]:
        d_left = d_out * (sigmoid(left - right) - label)
        return d_left if wanted[0] else None, -d_left if wanted[1] else None


@register
class MarginRankLoss(OpDef):
    """``Out = max(0, margin - Label (X1 - X2))``, Label is 1 or -1; Activated is 1 where Out > 0."""

    type = "margin_rank_loss"
    until = "1"
    pairs_rows = True
    by_row = True
    inputs = ("X1", "X2", "Label")
    outputs = ("Activated", "Out")
    attrs = {"margin": Float(0.0)}
    gradient = Gradient("Out@GRAD", "Label", "Activated", outputs=("X1@GRAD", "X2@GRAD"))

    @staticmethod
    def infer(x1: Spec, x2: Spec, label: Spec) -> tuple[Spec, Spec]:
        same = check_same_shape("margin_rank_loss", Label=label, X1=x1, X2=x2)
        return same._replace(dtype=x1.dtype), same._replace(dtype=x1.dtype)

    @staticmethod
    def forward(x1: Array, x2: Array, label: Array, *, margin: float) -> tuple[Array, Array]:
        out = margin - label * (x1 - x2)
        above = out > 0
        return above.astype(out.dtype), np.where(above, out, np.zeros_like(out))

    @staticmethod
    def backward(
        d_out: Array, label: Array, activated: Array, *, wanted: tuple[bool, bool]
    ) -> tuple[Array | None, Array | None]:
        d_x2 = d_out * activated * label
        return -d_x2 if wanted[0] else None, d_x2 if wanted[1] else None
