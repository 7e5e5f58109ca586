"""Normalization over the batch: batch_norm, inplace_abn."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import ShapeError, UnsupportedError
from paddlelike.framework.opdef import (
    OWN,
    Array,
    Attrs,
    Bool,
    Float,
    Gradient,
    GradOp,
    OpDef,
    OpView,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.nn.normalization.images import (
    normalize_channels,
    normalize_channels_dx,
    scale_channels,
)
from paddlelike.ops.operands import can_be_equal


class BatchNormAttrs(Attrs):
    """Attributes of normalization over the batch."""

    momentum: float = Float(0.9)
    epsilon: float = Float(1e-5)
    is_test: bool = Bool(False)
    use_global_stats: bool = Bool(False)
    trainable_statistics: bool = Bool(False)
    data_layout: str = String("NCHW")

    @property
    def fixed_statistics(self) -> bool:
        """Whether Mean and Variance are used instead of the statistics of the batch."""
        return self.use_global_stats or (self.is_test and not self.trainable_statistics)


class InplaceAbnAttrs(BatchNormAttrs):
    """Attributes of normalization with an activation."""

    activation: str = String("")
    alpha: float = Float(0.1)


_UNREAD = {"fuse_with_relu": Bool(False), "use_mkldnn": Bool(False)}


class _BatchNorm(OpDef):
    """Normalization over the batch, without the activation that may follow."""

    inputs = ("X", "Scale", "Bias", "Mean", "Variance", "MomentumTensor?")
    outputs = ("Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance", "ReserveSpace?")
    any_order = reorders = True
    keeps_dtype = True
    lod = {"Y": "X"}
    inplace = {"MeanOut": "Mean", "VarianceOut": "Variance"}

    @classmethod
    def infer(
        cls,
        x: Spec,
        scale: Spec,
        bias: Spec,
        mean: Spec,
        variance: Spec,
        momentum_tensor: Spec | None,
        *,
        attrs: BatchNormAttrs,
    ) -> tuple[Spec | None, ...]:
        if not 2 <= len(x.shape) <= 5:
            raise ShapeError(f"{cls.type}: X has shape {x.shape}; it needs 2 to 5 dims")
        channels = x.shape[-1 if attrs.data_layout == "NHWC" else 1]
        for name, spec in {"Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance}.items():
            if len(spec.shape) != 1 or not can_be_equal(spec.shape[0], channels):
                raise ShapeError(
                    f"{cls.type}: X of shape {x.shape} ({attrs.data_layout}) has {channels} channels, "
                    f"{name} has shape {spec.shape}; it needs one number per channel"
                )
        dtype = VarType.FP32 if x.dtype == VarType.FP16 else x.dtype
        statistic = Spec((channels,), dtype)
        return Spec(x.shape, x.dtype), statistic, statistic, statistic, statistic, None


def _forward(
    x: Array,
    scale: Array,
    bias: Array,
    moving: tuple[Array, Array],
    momentum_tensor: Array | None,
    attrs: BatchNormAttrs,
) -> tuple[Array, Array, Array, Array, Array, None]:
    """Return the outputs without the activation; ``moving`` are Mean and Variance, changed in place."""
    if _has_one_element(x, scale) and not attrs.fixed_statistics:
        return x.copy(), *moving, np.zeros_like(moving[0]), np.zeros_like(moving[1]), None
    if attrs.fixed_statistics:
        mean, variance = moving
        inverse = 1 / np.sqrt(variance + attrs.epsilon)
        y = scale_channels(x, scale * inverse, bias - mean * scale * inverse, attrs.data_layout)
        return y, mean, variance, mean.copy(), inverse, None
    y, mean, variance, inverse = normalize_channels(x, scale, bias, attrs.epsilon, attrs.data_layout)
    momentum = attrs.momentum if momentum_tensor is None else float(momentum_tensor.item())
    for average, batch in zip(moving, (mean, variance), strict=True):
        average *= momentum
        average += (1 - momentum) * batch
    return y, *moving, mean, inverse, None


def _has_one_element(x: Array, scale: Array) -> bool:
    """Return whether each channel has one element, in which case Paddle returns X without normalizing."""
    return x.size == scale.size


def _compute_gradients(
    x: Array, d_y: Array, statistics: tuple[Array, Array], factor: Array, attrs: BatchNormAttrs
) -> tuple[Array, Array, Array]:
    """Return the gradients of X, Scale and Bias, where ``Y = Scale x^ + Bias, x^ = (x - mean) inverse``.

    ``statistics`` are mean and inverse; ``factor`` is Scale divided by the deviation.
    """
    if _has_one_element(d_y, factor) and not attrs.fixed_statistics:
        return d_y.copy(), np.zeros_like(factor), np.zeros_like(factor)
    fixed = attrs.fixed_statistics
    return normalize_channels_dx(x, d_y, *statistics, factor, attrs.data_layout, fixed=fixed)


@register
class BatchNorm(_BatchNorm):
    """``Y = Scale (X - mean) / sqrt(var + epsilon) + Bias`` with mean and biased variance per channel.

    In training the statistics of the batch are used, and update Mean and Variance: ``m = momentum m + (1 -
    momentum) batch``. With ``is_test`` or ``use_global_stats`` Mean and Variance are used. SavedVariance
    holds ``1 / sqrt(var + epsilon)``. As in Paddle, a training batch with one element per channel gives Y =
    X: Mean and Variance stay, and Scale and Bias get no gradient. Ioffe and Szegedy, 2015.
    """

    type = "batch_norm"
    fluid_order = (
        "is_test momentum epsilon data_layout use_mkldnn fuse_with_relu use_global_stats trainable_statistics"
    )
    attrs = BatchNormAttrs.table(**_UNREAD)
    gradient = Gradient(
        "X",
        "Scale",
        "Bias",
        "SavedMean",
        "SavedVariance",
        "ReserveSpace",
        "Mean?",
        "Variance?",
        "Y@GRAD",
        outputs=("X@GRAD", "Scale@GRAD", "Bias@GRAD"),
    )

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        (grad,) = super().make_grad(op)
        for slot in ("Mean", "Variance"):  # the moving ones, where they were used
            if op.attrs["use_global_stats"]:
                grad.inputs[slot] = op.output(slot + "Out")
            else:
                del grad.inputs[slot]
        if not op.output("ReserveSpace"):
            del grad.inputs["ReserveSpace"]
        return [grad]

    @staticmethod
    def forward(
        x: Array,
        scale: Array,
        bias: Array,
        mean: Array,
        variance: Array,
        momentum_tensor: Array | None,
        *,
        attrs: BatchNormAttrs,
    ) -> tuple[Array | None, ...]:
        return _forward(x, scale, bias, (mean, variance), momentum_tensor, attrs)

    @staticmethod
    def backward(
        x: Array,
        scale: Array,
        bias: Array,
        saved_mean: Array,
        saved_variance: Array,
        reserve_space: Array | None,
        mean: Array | None,
        variance: Array | None,
        d_y: Array,
        *,
        attrs: BatchNormAttrs,
    ) -> tuple[Array, Array, Array]:
        return _compute_gradients(x, d_y, (saved_mean, saved_variance), scale * saved_variance, attrs)


@register
class InplaceAbn(_BatchNorm):
    """``activation(batch_norm(X))``, where Y may overwrite X: the backward pass reads only Y.

    The activation is the identity, leaky_relu or elu, each with ``alpha``. Rota Bulo et al., 2018.
    """

    type = "inplace_abn"
    until = "1"
    fluid_order = (
        "is_test momentum epsilon data_layout use_mkldnn fuse_with_relu use_global_stats "
        "trainable_statistics activation alpha use_sync_bn"
    )
    attrs = InplaceAbnAttrs.table(use_sync_bn=Bool(False), **_UNREAD)
    gradient = Gradient(
        "Y",
        "Scale",
        "Bias",
        "SavedMean",
        "SavedVariance",
        "Y@GRAD",
        outputs=("X@GRAD", "Scale@GRAD", "Bias@GRAD"),
        lod=OWN,
    )

    @staticmethod
    def forward(
        x: Array,
        scale: Array,
        bias: Array,
        mean: Array,
        variance: Array,
        momentum_tensor: Array | None,
        *,
        attrs: InplaceAbnAttrs,
    ) -> tuple[Array | None, ...]:
        y, *statistics = _forward(x, scale, bias, (mean, variance), momentum_tensor, attrs)
        return _find_activation(attrs.activation)[0](y, attrs.alpha), *statistics

    @staticmethod
    def backward(
        y: Array,
        scale: Array,
        bias: Array,
        saved_mean: Array,
        saved_variance: Array,
        d_y: Array,
        *,
        attrs: InplaceAbnAttrs,
    ) -> tuple[Array, Array, Array]:
        _, inverse, derivative = _find_activation(attrs.activation)
        d_y = d_y * derivative(y, attrs.alpha)
        before = inverse(y, attrs.alpha)  # Scale x^ + Bias
        return _compute_gradients(before, d_y, (bias, 1 / scale), scale * saved_variance, attrs)


# The activation, its inverse, and its derivative in terms of its value.
_ACTIVATIONS: dict[str, tuple[Any, Any, Any]] = {
    "": (lambda x, a: x, lambda y, a: y, lambda y, a: 1),
    "identity": (lambda x, a: x, lambda y, a: y, lambda y, a: 1),
    "leaky_relu": (
        lambda x, a: np.where(x > 0, x, a * x),
        lambda y, a: np.where(y > 0, y, y / a),
        lambda y, a: np.where(y > 0, 1, a).astype(y.dtype),
    ),
    "elu": (
        lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0))),
        lambda y, a: np.where(y > 0, y, np.log1p(np.minimum(y, 0) / a)),
        lambda y, a: np.where(y > 0, 1, y + a),
    ),
}


def _find_activation(name: str) -> tuple[Any, Any, Any]:
    if name not in _ACTIVATIONS:
        raise UnsupportedError(
            f"inplace_abn: activation is {name!r}; it can be {', '.join(filter(None, _ACTIVATIONS))}"
        )
    return _ACTIVATIONS[name]
