"""Normalization over groups of channels: group_norm, and instance_norm, whose groups are single channels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Float, Gradient, Int, OpDef, Spec, String, register
from paddlelike.ops.kernels.nn.normalization.images import normalize_instances, normalize_instances_dx
from paddlelike.ops.kernels.nn.normalization.rows import normalize, normalize_dx
from paddlelike.ops.operands import can_be_equal


@register
class GroupNorm(OpDef):
    """``Y = Scale (X - mean) / sqrt(var + epsilon) + Bias`` over groups of channels of a sample.

    Mean and Variance (biased) are ``(N, groups)``; Scale and Bias hold one number per channel. As in Paddle
    1.8, the last groups may be smaller, and without Scale the gradient lacks a term: see ``fluid.quirks()``.
    Wu and He, 2018.
    """

    type = "group_norm"
    keeps_dtype = True
    by_row = True
    inputs = ("X", "Scale?", "Bias?")
    outputs = ("Y", "Mean", "Variance")
    attrs = {"epsilon": Float(1e-5), "groups": Int(), "data_layout": String("NCHW")}
    lod = {"Y": "X"}
    gradient = Gradient(
        "Y", "Scale", "Bias", "Variance", "Y@GRAD", outputs=("X@GRAD", "Scale@GRAD", "Bias@GRAD")
    )

    @staticmethod
    def infer(
        x: Spec, scale: Spec | None, bias: Spec | None, *, groups: int, data_layout: str
    ) -> tuple[Spec, Spec, Spec]:
        channels = x.shape[-1 if data_layout == "NHWC" else 1] if len(x.shape) > 1 else 0
        uneven = channels > 0 and groups > 0 and channels % groups and not follows_fluid("group_norm_groups")
        if groups < 1 or channels == 0 or uneven:
            raise ShapeError(
                f"group_norm: X of shape {x.shape} ({data_layout}) has {channels} channels, which "
                f"{groups} groups do not divide"
            )
        for name, spec in (("Scale", scale), ("Bias", bias)):
            if spec is not None and not can_be_equal(spec.shape[0], channels):
                raise ShapeError(
                    f"group_norm: {name} has shape {spec.shape}; X of shape {x.shape} has {channels} channels"
                )
        statistic = Spec((x.shape[0], groups), x.dtype)
        return Spec(x.shape, x.dtype), statistic, statistic

    @staticmethod
    def forward(
        x: Array, scale: Array | None, bias: Array | None, *, epsilon: float, groups: int, data_layout: str
    ) -> tuple[Array, Array, Array]:
        if _count_channels(x, data_layout) % groups:
            return _normalize_parts(x, scale, bias, epsilon=epsilon, groups=groups, data_layout=data_layout)
        grouped = _group_channels(x, groups, data_layout)
        axes = _find_group_axes(data_layout)
        y, mean, variance, _ = normalize(grouped, axes, epsilon)
        if scale is not None:
            y *= _per_channel(scale, groups, data_layout)
        if bias is not None:
            y += _per_channel(bias, groups, data_layout)
        shape = (len(x), groups)
        return y.reshape(x.shape), mean.reshape(shape), variance.reshape(shape)

    @staticmethod
    def backward(
        y: Array,
        scale: Array | None,
        bias: Array | None,
        variance: Array,
        d_y: Array,
        *,
        epsilon: float,
        groups: int,
        data_layout: str,
    ) -> tuple[Array, Array, Array]:
        if _count_channels(y, data_layout) % groups:
            return _differentiate_parts(y, scale, bias, variance, d_y, epsilon, groups, data_layout)
        x_hat = _group_channels(y, groups, data_layout)
        g = d_y = _group_channels(d_y, groups, data_layout)
        if bias is not None:
            x_hat = x_hat - _per_channel(bias, groups, data_layout)
        if scale is not None:
            factor = _per_channel(scale, groups, data_layout)
            # Where the scale is 0, the lost value counts as 0.
            x_hat = np.divide(x_hat, factor, out=np.zeros_like(x_hat), where=factor != 0)
            g = d_y * factor
        axes = _find_group_axes(data_layout)
        inverse = 1 / np.sqrt(variance + epsilon)
        inverse = inverse.reshape(*inverse.shape, 1, 1) if axes == (2, 3) else inverse[:, None, :, None]
        if scale is None and follows_fluid("group_norm_gradient"):
            dx = (g - x_hat * (g * x_hat).mean(axes, keepdims=True)) * inverse
        else:
            dx = normalize_dx(g, x_hat, inverse, axes)
        kept = (0, 3) if axes == (2, 3) else (0, 1)
        return dx.reshape(y.shape), (d_y * x_hat).sum(kept).reshape(-1), d_y.sum(kept).reshape(-1)


def _count_channels(x: Array, layout: str) -> int:
    return x.shape[-1 if layout == "NHWC" else 1]


def _cut_groups(x: Array, groups: int, layout: str) -> list[tuple[slice, tuple[Any, ...]]]:
    """Return the channels of each nonempty group, and the index of its part of X.

    All groups have equally many channels, except the last one.
    """
    channels = _count_channels(x, layout)
    size = (channels - 1) // groups + 1
    cuts = [slice(first, min(first + size, channels)) for first in range(0, channels, size)]
    return [(cut, (..., cut) if layout == "NHWC" else (slice(None), cut)) for cut in cuts]


def _normalize_parts(
    x: Array, scale: Array | None, bias: Array | None, *, epsilon: float, groups: int, data_layout: str
) -> tuple[Array, Array, Array]:
    """Return the results of ``group_norm`` for groups of different sizes.

    Groups without channels have the mean NaN or 0.
    """
    y, cuts = np.empty_like(x), _cut_groups(x, groups, data_layout)
    mean = np.zeros((len(x), groups), x.dtype)
    size = (_count_channels(x, data_layout) - 1) // groups + 1
    if len(cuts) * size == _count_channels(x, data_layout):
        # The first group without channels; in Fluid the groups after it have a negative count.
        mean[:, len(cuts) : len(cuts) + 1] = np.nan
    variance = mean.copy()
    for index, (cut, part) in enumerate(cuts):
        given = (None if values is None else values[cut] for values in (scale, bias))
        y[part], mean[:, index : index + 1], variance[:, index : index + 1] = GroupNorm.forward(
            np.ascontiguousarray(x[part]), *given, epsilon=epsilon, groups=1, data_layout=data_layout
        )
    return y, mean, variance


def _differentiate_parts(
    y: Array,
    scale: Array | None,
    bias: Array | None,
    variance: Array,
    d_y: Array,
    epsilon: float,
    groups: int,
    data_layout: str,
) -> tuple[Array, Array, Array]:
    d_x, found = np.empty_like(y), []
    for index, (cut, part) in enumerate(_cut_groups(y, groups, data_layout)):
        d_x[part], *rest = GroupNorm.backward(
            np.ascontiguousarray(y[part]),
            None if scale is None else scale[cut],
            None if bias is None else bias[cut],
            variance[:, index : index + 1],
            np.ascontiguousarray(d_y[part]),
            epsilon=epsilon,
            groups=1,
            data_layout=data_layout,
        )
        found.append(rest)
    d_scale, d_bias = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return d_x, d_scale, d_bias


def _group_channels(x: Array, groups: int, layout: str) -> Array:
    """Return a view ``(N, G, C / G, L)``, or ``(N, L, G, C / G)`` where the channels are last."""
    if layout == "NHWC":
        return x.reshape(len(x), math.prod(x.shape[1:-1]), groups, x.shape[-1] // groups)
    return x.reshape(len(x), groups, x.shape[1] // groups, math.prod(x.shape[2:]))


def _find_group_axes(layout: str) -> tuple[int, int]:
    return (1, 3) if layout == "NHWC" else (2, 3)


def _per_channel(values: Array, groups: int, layout: str) -> Array:
    per_group = values.reshape(groups, -1)
    return per_group if layout == "NHWC" else per_group[..., None]


@register
class InstanceNorm(OpDef):
    """``Y = Scale (X - mean) / sqrt(var + epsilon) + Bias`` over each channel of each sample.

    SavedMean and SavedVariance, which holds ``1 / sqrt(var + epsilon)``, are ``(N C,)``; Scale and Bias
    ``(C,)``. Ulyanov et al., 2016.
    """

    type = "instance_norm"
    keeps_dtype = True
    inputs = ("X", "Scale", "Bias")
    outputs = ("Y", "SavedMean", "SavedVariance")
    attrs = {"epsilon": Float(1e-5)}
    any_order = True
    lod = {"Y": "X"}
    gradient = Gradient(
        "X", "Scale", "SavedMean", "SavedVariance", "Y@GRAD", outputs=("X@GRAD", "Scale@GRAD", "Bias@GRAD")
    )

    @staticmethod
    def infer(x: Spec, scale: Spec, bias: Spec) -> tuple[Spec, Spec, Spec]:
        if not 2 <= len(x.shape) <= 5:
            raise ShapeError(f"instance_norm: X has shape {x.shape}; it needs 2 to 5 dims")
        for name, spec in (("Scale", scale), ("Bias", bias)):
            if len(spec.shape) != 1 or not can_be_equal(spec.shape[0], x.shape[1]):
                raise ShapeError(
                    f"instance_norm: {name} has shape {spec.shape}; X of shape {x.shape} has "
                    f"{x.shape[1]} channels"
                )
        statistic = Spec((x.shape[0] * x.shape[1],), x.dtype)
        return Spec(x.shape, x.dtype), statistic, statistic

    @staticmethod
    def forward(x: Array, scale: Array, bias: Array, *, epsilon: float) -> tuple[Array, Array, Array]:
        y, mean, inverse = normalize_instances(x, scale, bias, epsilon)
        return y, mean.reshape(-1), inverse.reshape(-1)

    @staticmethod
    def backward(
        x: Array, scale: Array, mean: Array, inverse: Array, d_y: Array
    ) -> tuple[Array, Array, Array]:
        shape = x.shape[:2]
        return normalize_instances_dx(x, d_y, mean.reshape(shape), inverse.reshape(shape), scale)
