"""The update of RMSProp."""

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
