"""The updates of Adam, Adamax and Lamb: adam, adamax, lamb.

In the rules ``g`` is the gradient, ``p`` the parameter, ``m1`` and ``m2`` the moments, ``lr`` the learning
rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.core import SelectedRows
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Attrs, Bool, Float, Long, RowUpdate, register
from paddlelike.ops.update.base import Update, choose, norm, read_scalar
from paddlelike.ops.update.rules import Rows, Rule, Step, apply, is_empty_sparse
from paddlelike.ops.update.sgd import descend


class AdamAttrs(Attrs):
    """Attributes of adam."""

    beta1: float = Float(0.9)
    beta2: float = Float(0.999)
    epsilon: float = Float(1e-8)
    lazy_mode: bool = Bool(False)


@Rule
def adam(
    p: Array, g: Array, m1: Array, m2: Array, /,
    lr: float, b1: float, rest1: float, b2: float, rest2: float, epsilon: float,
) -> tuple[Array, Array, Array]:  # fmt: skip
    m1 = m1 * b1 + g * rest1
    m2 = m2 * b2 + g * g * rest2
    return p - m1 / (np.sqrt(m2) + epsilon) * lr, m1, m2


@register
class Adam(Update):
    """``m1 = b1 m1 + (1 - b1) g; m2 = b2 m2 + (1 - b2) g^2; p -= lr c m1 / (sqrt(m2) + eps)``.

    ``c = sqrt(1 - b2pow) / (1 - b1pow)``; every step multiplies the powers ``b1pow`` and ``b2pow`` by b1 and
    b2. A sparse gradient is zero in the rows it does not hold; with ``lazy_mode`` those rows are not updated.
    Kingma and Ba, 2015 (end of section 2).
    """

    type = "adam"
    inputs = (
        "Param",
        "Grad",
        "LearningRate",
        "Moment1",
        "Moment2",
        "Beta1Pow",
        "Beta2Pow",
        "Beta1Tensor?",
        "Beta2Tensor?",
    )
    outputs = ("ParamOut", "Moment1Out", "Moment2Out", "Beta1PowOut", "Beta2PowOut")
    attrs = AdamAttrs.table(min_row_size_to_use_multithread=Long(1000))
    elements = ("Param", "Grad", "Moment1", "Moment2")
    rows = Rows.SPARED

    @classmethod
    def choose_rows(cls, keywords: Mapping[str, Any], *, as_dense: bool) -> Rows:
        return Rows.KEPT if keywords["attrs"].lazy_mode and not as_dense else cls.rows

    @classmethod
    def get_row_update(cls, keywords: Mapping[str, Any]) -> RowUpdate:
        return cls.make_row_update(keywords)

    @staticmethod
    def read_step(
        rate: Array,
        beta1_pow: Array,
        beta2_pow: Array,
        beta1: Array | None,
        beta2: Array | None,
        *,
        attrs: AdamAttrs,
    ) -> Step:
        b1, b2 = _read_betas(attrs, beta1, beta2)
        pow1, pow2 = read_scalar(beta1_pow), read_scalar(beta2_pow)
        lr = read_scalar(rate) * np.sqrt(1 - pow2) / (1 - pow1)
        return adam(lr, b1, 1 - b1, b2, 1 - b2, attrs.epsilon)

    @classmethod
    def read_sparse_step(cls, *others: Any, **keywords: Any) -> Step:
        if follows_fluid("adam_sparse_correction"):  # by the powers of the next step
            others = cls.move_on(*(None if one is None else one.copy() for one in others), **keywords)
        return cls.read_step(*others, **keywords)

    @classmethod
    def move_on(cls, *others: Any, **keywords: Any) -> tuple[Any, ...]:
        rate, beta1_pow, beta2_pow, *betas = others
        b1, b2 = _read_betas(keywords["attrs"], *betas)
        beta1_pow *= b1
        beta2_pow *= b2
        return rate, beta1_pow, beta2_pow, *betas


def _read_betas(attrs: AdamAttrs, beta1: Array | None, beta2: Array | None) -> tuple[float, float]:
    """Return the betas, from the inputs if these are given."""
    first = attrs.beta1 if beta1 is None else read_scalar(beta1)
    return first, attrs.beta2 if beta2 is None else read_scalar(beta2)


@Rule
def adamax(
    p: Array, g: Array, m: Array, u: Array, /, lr: float, b1: float, rest1: float, b2: float, epsilon: float
) -> tuple[Array, Array, Array]:
    m = m * b1 + rest1 * g
    u = np.maximum(np.abs(g), u * b2 + epsilon)
    return p - lr * (m / u), m, u


@register
class Adamax(Update):
    """``m = b1 m + (1 - b1) g; u = max(|g|, b2 u + eps); p -= lr / (1 - b1pow) m / u``.

    Kingma and Ba, 2015 (section 7.1). A ``scale`` operator updates ``b1pow``.
    """

    type = "adamax"
    inputs = ("Param", "Grad", "LearningRate", "Moment", "InfNorm", "Beta1Pow")
    outputs = ("ParamOut", "MomentOut", "InfNormOut")
    attrs = {"beta1": Float(0.9), "beta2": Float(0.999), "epsilon": Float(1e-8)}
    elements = ("Param", "Grad", "Moment", "InfNorm")

    @staticmethod
    def read_step(rate: Array, beta1_pow: Array, *, beta1: float, beta2: float, epsilon: float) -> Step:
        lr = read_scalar(rate) / (1 - read_scalar(beta1_pow))
        return adamax(lr, beta1, 1 - beta1, beta2, epsilon)


class LambAttrs(Attrs):
    """Attributes of lamb."""

    weight_decay: float = Float()
    beta1: float = Float(0.9)
    beta2: float = Float(0.999)
    epsilon: float = Float(1e-6)


@Rule
def lamb(
    p: Array, g: Array, m1: Array, m2: Array, r: Array, /,
    b1: float, rest1: float, b2: float, rest2: float, epsilon: float, decay: float,
    start1: float, start2: float, *, is_corrected: bool,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    m1 = m1 * b1 + rest1 * g
    m2 = m2 * b2 + rest2 * (g * g)
    first, second = (m1 / start1, m2 / start2) if is_corrected else (m1, m2)
    return p, m1, m2, first / (np.sqrt(second) + epsilon) + decay * p


@register
class Lamb(Update):
    """``r = m1 / (sqrt(m2) + eps) + wd p; p -= lr |p| / |r| r``; ``m1``, ``m2`` as in Adam.

    You et al., Large batch optimization for deep learning, 2019. As in Paddle, the powers of the betas
    correct nothing and never change, unless ``FLAGS_fluid_quirks`` is False.
    """

    type = "lamb"
    inputs = ("Param", "Grad", "LearningRate", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow")
    outputs = ("ParamOut", "Moment1Out", "Moment2Out")
    attrs = LambAttrs.table()

    @staticmethod
    def forward(
        param: Array,
        grad: Array | SelectedRows,
        rate: Array,
        moment1: Array,
        moment2: Array,
        beta1_pow: Array,
        beta2_pow: Array,
        *,
        attrs: LambAttrs,
    ) -> tuple[Array, Array, Array]:
        if is_empty_sparse(grad):
            return param, moment1, moment2
        b1, b2 = attrs.beta1, attrs.beta2
        numbers = b1, 1 - b1, b2, 1 - b2, attrs.epsilon, attrs.weight_decay
        starts = 1 - read_scalar(beta1_pow), 1 - read_scalar(beta2_pow)
        step = lamb(*numbers, *starts, is_corrected=not follows_fluid("lamb_correction"))
        param, moment1, moment2, move = apply(step, param, grad, moment1, moment2, np.empty_like(param))
        p_norm, r_norm = norm(param), norm(move)
        both = (p_norm > 0) & (r_norm > 0)
        ratio = choose(both, p_norm, 1.0) / choose(both, r_norm, 1.0)
        (param,) = apply(descend(read_scalar(rate) * ratio), param, move)
        return param, moment1, moment2
