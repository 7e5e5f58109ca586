"""Optimizer updates with two moments: adam, adamax, lamb.

In the formulas ``g`` is the gradient, ``p`` the parameter, ``lr`` the learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.core.tensor import SelectedRows
from paddlelike.framework.opdef import Array, Attrs, Bool, Float, Long, RowUpdate, register
from paddlelike.framework.quirks import follows_fluid
from paddlelike.ops.kernels.fast import updates as fast
from paddlelike.ops.update.blocks import (
    check_shape,
    is_empty_sparse,
    iterate_blocks,
    iterate_rows,
    iterate_touched,
)
from paddlelike.ops.update.step import (
    Update,
    average,
    is_like,
    norm,
    quotient,
    read_scalar,
    require_dense,
)

__all__ = ["Adam", "Adamax", "Lamb"]


class AdamAttrs(Attrs):
    """Attributes of adam."""

    beta1: float = Float(0.9)
    beta2: float = Float(0.999)
    epsilon: float = Float(1e-8)
    lazy_mode: bool = Bool(False)


@register
class Adam(Update):
    """``m1 = b1 m1 + (1 - b1) g; m2 = b2 m2 + (1 - b2) g^2; p -= lr c m1 / (sqrt(m2) + eps)``.

    ``c = sqrt(1 - b2pow) / (1 - b1pow)``; every step multiplies the powers by their betas. A sparse
    gradient is zero in the rows it does not hold; with ``lazy_mode`` those rows are left alone.
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
    inplace = {
        "ParamOut": "Param",
        "Moment1Out": "Moment1",
        "Moment2Out": "Moment2",
        "Beta1PowOut": "Beta1Pow",
        "Beta2PowOut": "Beta2Pow",
    }
    elements = ("Param", "Grad", "Moment1", "Moment2")
    operands = True

    @staticmethod
    def forward(
        param: Array,
        grad: Array | SelectedRows,
        rate: Array,
        moment1: Array,
        moment2: Array,
        beta1_pow: Array,
        beta2_pow: Array,
        beta1_tensor: Array | None,
        beta2_tensor: Array | None,
        *,
        attrs: AdamAttrs,
    ) -> tuple[Array, Array, Array, Array, Array]:
        if not is_empty_sparse(grad):
            check_shape(param, grad)  # before anything changes
            others = rate, beta1_pow, beta2_pow, beta1_tensor, beta2_tensor
            numbers = Adam.read_numbers(*others, attrs=attrs, is_sparse=isinstance(grad, SelectedRows))
            Adam.update_all(numbers, param, grad, moment1, moment2, lazy=attrs.lazy_mode)
        return param, moment1, moment2, beta1_pow, beta2_pow

    @staticmethod
    def update_all(
        numbers: tuple[float, ...],
        param: Array,
        grad: Array | SelectedRows,
        *moments: Array,
        lazy: bool,
    ) -> None:
        """Apply the formula to all elements, or with ``lazy`` to the rows that a sparse gradient holds."""
        rule = Adam.make_rule(numbers)
        compiled = rule.dense.choose(param.size, param, *moments) is not None
        if isinstance(grad, SelectedRows) and not lazy and not compiled:
            for rows, values, *part in iterate_rows(param, grad, *moments):
                Adam.update_rows(numbers, rows, values, *part)
            return
        iterate = iterate_touched if lazy else iterate_blocks
        for block in iterate(param, grad, *moments, rule=rule):
            Adam.update(numbers, *block)

    @classmethod
    def get_row_update(cls, keywords: Mapping[str, Any]) -> RowUpdate:
        attrs: AdamAttrs = keywords["attrs"]

        def holds(param: Array, grad: SelectedRows, rate: Array, *others: Any) -> bool:
            return bool(grad.row_array.size) and all(is_like(param, moment) for moment in others[:2])

        def forward(param: Array, grad: SelectedRows, rate: Array, *others: Any) -> None:
            moment1, moment2, *powers = others
            numbers = Adam.read_numbers(rate, *powers, attrs=attrs)
            Adam.update_all(numbers, param, grad, moment1, moment2, lazy=False)

        return RowUpdate((), holds, forward, whole=True)

    @staticmethod
    def make_rule(numbers: tuple[float, ...]) -> fast.Rule:
        return fast.Rule(fast.adam, fast.adam_rows, numbers)

    @staticmethod
    def read_numbers(
        rate: Array,
        beta1_pow: Array,
        beta2_pow: Array,
        beta1_tensor: Array | None,
        beta2_tensor: Array | None,
        *,
        attrs: AdamAttrs,
        is_sparse: bool = False,
    ) -> tuple[float, ...]:
        b1 = attrs.beta1 if beta1_tensor is None else read_scalar(beta1_tensor)
        b2 = attrs.beta2 if beta2_tensor is None else read_scalar(beta2_tensor)
        pow1, pow2 = read_scalar(beta1_pow), read_scalar(beta2_pow)
        beta1_pow *= b1
        beta2_pow *= b2
        if is_sparse and follows_fluid("adam_sparse_correction"):
            pow1, pow2 = read_scalar(beta1_pow), read_scalar(beta2_pow)
        lr = read_scalar(rate) * math.sqrt(1 - pow2) / (1 - pow1)
        return lr, b1, 1 - b1, b2, 1 - b2, attrs.epsilon

    @staticmethod
    def update(numbers: tuple[float, ...], p: Array, g: Array, m1: Array, m2: Array) -> None:
        _, b1, rest1, b2, rest2, _ = numbers
        spare = g * rest1  # one array for all steps in between, which stays in the cache
        m1 *= b1
        m1 += spare
        np.multiply(g, g, out=spare)
        spare *= rest2
        m2 *= b2
        m2 += spare
        np.sqrt(m2, out=spare)
        Adam.move(numbers, p, m1, spare)

    @staticmethod
    def update_rows(
        numbers: tuple[float, ...], rows: Array, values: Array, p: Array, m1: Array, m2: Array
    ) -> None:
        """Do the same where the gradient is zero but in some rows, whose additions are left out."""
        _, b1, rest1, b2, rest2, _ = numbers
        m1 *= b1
        m2 *= b2
        if rows.size:
            m1[rows] += values * rest1
            m2[rows] += values * values * rest2
        Adam.move(numbers, p, m1, np.sqrt(m2))

    @staticmethod
    def move(numbers: tuple[float, ...], p: Array, m1: Array, root: Array) -> None:
        """``p -= lr m1 / (root + eps)``; ``root``, that of the second moment, is written over."""
        root += numbers[-1]
        np.divide(m1, root, out=root)
        root *= numbers[0]
        p -= root


@register
class Adamax(Update):
    """``m = b1 m + (1 - b1) g; u = max(|g|, b2 u + eps); p -= lr / (1 - b1pow) m / u``.

    Kingma and Ba, 2015 (section 7.1). The power of beta1 is moved on by a ``scale`` operator.
    """

    type = "adamax"
    inputs = ("Param", "Grad", "LearningRate", "Moment", "InfNorm", "Beta1Pow")
    outputs = ("ParamOut", "MomentOut", "InfNormOut")
    attrs = {"beta1": Float(0.9), "beta2": Float(0.999), "epsilon": Float(1e-8)}
    inplace = {"ParamOut": "Param", "MomentOut": "Moment", "InfNormOut": "InfNorm"}
    elements = ("Param", "Grad", "Moment", "InfNorm")

    @staticmethod
    def forward(
        param: Array,
        grad: Array | SelectedRows,
        rate: Array,
        moment: Array,
        inf_norm: Array,
        beta1_pow: Array,
        *,
        beta1: float,
        beta2: float,
        epsilon: float,
    ) -> tuple[Array, Array, Array]:
        numbers = Adamax.read_numbers(rate, beta1_pow, beta1=beta1, beta2=beta2, epsilon=epsilon)
        for block in iterate_blocks(param, require_dense("adamax", grad), moment, inf_norm):
            Adamax.update(numbers, *block)
        return param, moment, inf_norm

    @staticmethod
    def read_numbers(
        rate: Array, beta1_pow: Array, *, beta1: float, beta2: float, epsilon: float
    ) -> tuple[float, ...]:
        return read_scalar(rate) / (1 - read_scalar(beta1_pow)), beta1, beta2, epsilon

    @staticmethod
    def update(numbers: tuple[float, ...], p: Array, g: Array, m: Array, u: Array) -> None:
        lr, beta1, beta2, epsilon = numbers
        average(m, beta1, g)
        u *= beta2
        u += epsilon
        np.maximum(np.abs(g), u, out=u)
        p -= lr * (m / u)


class LambAttrs(Attrs):
    """Attributes of lamb."""

    weight_decay: float = Float()
    beta1: float = Float(0.9)
    beta2: float = Float(0.999)
    epsilon: float = Float(1e-6)


@register
class Lamb(Update):
    """``r = m1 / (sqrt(m2) + eps) + wd p; p -= lr |p| / |r| r``; ``m1``, ``m2`` as in Adam.

    You et al., Large batch optimization for deep learning, 2019. As Paddle has it, nothing is
    corrected by the powers of the betas, and they never move on, unless ``FLAGS_fluid_quirks`` is False.
    """

    type = "lamb"
    inputs = ("Param", "Grad", "LearningRate", "Moment1", "Moment2", "Beta1Pow", "Beta2Pow")
    outputs = ("ParamOut", "Moment1Out", "Moment2Out")
    attrs = LambAttrs.table()
    inplace = {"ParamOut": "Param", "Moment1Out": "Moment1", "Moment2Out": "Moment2"}

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
        step = np.empty_like(param)
        start1 = start2 = 1.0
        if not follows_fluid("lamb_correction"):
            start1, start2 = 1 - read_scalar(beta1_pow), 1 - read_scalar(beta2_pow)
        rule = None
        if start1 == 1.0:
            b1, b2 = attrs.beta1, attrs.beta2
            numbers = b1, 1 - b1, b2, 1 - b2, attrs.epsilon, attrs.weight_decay
            rule = fast.Rule(fast.average_moments, None, numbers)
        for p, g, m1, m2, r in iterate_blocks(param, grad, moment1, moment2, step, rule=rule):
            average(m1, attrs.beta1, g)
            average(m2, attrs.beta2, g * g)
            if start1 != 1.0:
                np.add(quotient(m1 / start1, m2 / start2, attrs.epsilon), attrs.weight_decay * p, out=r)
            else:
                np.add(quotient(m1, m2, attrs.epsilon), attrs.weight_decay * p, out=r)
        p_norm, r_norm = norm(param), norm(step)
        step *= read_scalar(rate) * (p_norm / r_norm if p_norm > 0 and r_norm > 0 else 1.0)
        param -= step
        return param, moment1, moment2
