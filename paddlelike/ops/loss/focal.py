"""The focal loss of detectors (Lin et al. 2017): sigmoid_focal_loss."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Float, Gradient, OpDef, Spec, register
from paddlelike.ops.kernels.special import sigmoid


def _split_terms(x: Array, label: Array, fg_num: Array, alpha: float) -> tuple[Array, Array, Array, Array]:
    """Return probabilities, and the weights of targets 1 and of targets 0.

    Class c is column c - 1; class 0 is background, class -1 is ignored.
    """
    classes = np.arange(1, x.shape[1] + 1)
    positive = label == classes
    negative = (label != -1) & ~positive
    count = max(int(fg_num.reshape(-1)[0]), 1)
    p = sigmoid(x)
    log_p = -np.logaddexp(0, -x)
    return p, log_p, positive * x.dtype.type(alpha / count), negative * x.dtype.type((1 - alpha) / count)


def _cut(log_p: Array) -> Array:
    """Return logarithms, at least the logarithm of the smallest normal float32, as in Fluid."""
    return np.maximum(log_p, log_p.dtype.type(math.log(np.finfo(np.float32).tiny)))


@register
class SigmoidFocalLoss(OpDef):
    """``-w * (1 - p)**gamma * log(p)`` for the labelled class, ``-w * p**gamma * log(1 - p)`` for the others.

    ``p`` is the sigmoid of X; ``w`` is ``alpha / FgNum`` for the right class, else ``(1 - alpha) / FgNum``.
    """

    type = "sigmoid_focal_loss"
    until = "1"
    pairs_rows = True
    by_row = True
    inputs = ("X", "Label", "FgNum")
    attrs = {"gamma": Float(2.0), "alpha": Float(0.25)}
    lod = "X"
    gradient = Gradient("X", "Label", "FgNum", "Out@GRAD", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, label: Spec, fg_num: Spec) -> Spec:
        if len(x.shape) != 2 or len(label.shape) != 2 or label.shape[1] not in (1, -1):
            raise ShapeError(
                f"sigmoid_focal_loss: X has shape {x.shape}, Label {label.shape}; expected (N, C) and (N, 1)"
            )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, label: Array, fg_num: Array, *, gamma: float, alpha: float) -> Array:
        p, log_p, up, down = _split_terms(x, label, fg_num, alpha)
        return -up * (1 - p) ** gamma * _cut(log_p) - down * p**gamma * (log_p - x)

    @staticmethod
    def backward(x: Array, label: Array, fg_num: Array, d_out: Array, *, gamma: float, alpha: float) -> Array:
        p, log_p, up, down = _split_terms(x, label, fg_num, alpha)
        rising = (1 - p) ** gamma * (1 - p - p * gamma * _cut(log_p))
        falling = p**gamma * ((1 - p) * gamma * (log_p - x) - p)
        return -(up * rising + down * falling) * d_out
