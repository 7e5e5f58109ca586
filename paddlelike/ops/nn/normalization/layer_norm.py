"""layer_norm: each sample normalized over its last dims."""

from __future__ import annotations

import math

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Float, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.kernels.fast import rows as fast
from paddlelike.ops.kernels.nn.normalization.rows import normalize, normalize_dx
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import is_known


@register
class LayerNorm(OpDef):
    """``Y = Scale (X - mean) / sqrt(var + epsilon) + Bias`` over the dims from ``begin_norm_axis`` on.

    Mean and Variance (biased) hold one number per row, Scale and Bias one per column of X as a
    matrix. Ba et al., 2016.
    """

    type = "layer_norm"
    by_row = staticmethod(lambda attrs: attrs["begin_norm_axis"] > 0)
    inputs = ("X", "Scale?", "Bias?")
    outputs = ("Y", "Mean", "Variance")
    attrs = {"epsilon": Float(1e-5), "begin_norm_axis": Int(1)}
    lod = {"Y": "X"}
    gradient = Gradient("X", "Scale", "Bias", "Mean", "Variance", "Y@GRAD")

    @staticmethod
    def infer(
        x: Spec, scale: Spec | None, bias: Spec | None, *, begin_norm_axis: int
    ) -> tuple[Spec, Spec, Spec]:
        if not 0 < begin_norm_axis < len(x.shape):
            raise ShapeError(
                f"layer_norm: begin_norm_axis is {begin_norm_axis}; for X of shape {x.shape} it can be "
                f"1 to {len(x.shape) - 1}"
            )
        columns = x.shape[begin_norm_axis:]
        for name, spec in (("Scale", scale), ("Bias", bias)):
            if spec is None or not is_known((*columns, *spec.shape)):
                continue
            if spec.shape != (math.prod(columns),):
                raise ShapeError(
                    f"layer_norm: {name} has shape {spec.shape}; X of shape {x.shape} from axis "
                    f"{begin_norm_axis} on needs ({math.prod(columns)},)"
                )
        rows = Spec((math.prod(x.shape[:begin_norm_axis]),), x.dtype)
        return Spec(x.shape, x.dtype), rows, rows

    @staticmethod
    def forward(
        x: Array, scale: Array | None, bias: Array | None, *, epsilon: float, begin_norm_axis: int
    ) -> tuple[Array, Array, Array]:
        matrix = x.reshape(math.prod(x.shape[:begin_norm_axis]), math.prod(x.shape[begin_norm_axis:]))
        if (kernel := fast.normalize.choose(x.size, matrix)) is not None:
            factor, shift = _fill_in(scale, 1, matrix), _fill_in(bias, 0, matrix)
            y, mean, variance = np.empty_like(matrix), *np.empty((2, len(matrix)), x.dtype)
            kernel(matrix, factor, shift, x.dtype.type(epsilon), y, mean, variance)
            return y.reshape(x.shape), mean, variance
        y, mean, variance, _ = normalize(matrix, 1, epsilon)
        if scale is not None:
            y *= scale
        if bias is not None:
            y += bias
        return y.reshape(x.shape), mean.reshape(-1), variance.reshape(-1)

    @staticmethod
    def backward(
        x: Array,
        scale: Array | None,
        bias: Array | None,
        mean: Array,
        variance: Array,
        d_y: Array,
        *,
        epsilon: float,
        wanted: tuple[bool, bool, bool],
    ) -> tuple[Array | None, Array | None, Array | None]:
        matrix = x.reshape(len(mean), x.size // (len(mean) or 1))
        inverse = 1 / np.sqrt(variance + epsilon)
        if (kernel := fast.normalize_dx.choose(x.size, matrix, d_y, mean, inverse)) is not None and wanted[0]:
            d_x, d_factor, d_shift = np.empty_like(matrix), *np.empty((2, matrix.shape[1]), x.dtype)
            factor = _fill_in(scale, 1, matrix)
            kernel(matrix, factor, mean, inverse, d_y.reshape(matrix.shape), d_x, d_factor, d_shift)
            return d_x.reshape(x.shape), d_factor if wanted[1] else None, d_shift if wanted[2] else None
        inverse = inverse.reshape(-1, 1)
        x_hat = matrix - mean.reshape(-1, 1)
        x_hat *= inverse
        d_y = d_y.reshape(matrix.shape)
        dx = None
        if wanted[0]:
            g = d_y if scale is None else d_y * scale
            dx = normalize_dx(g, x_hat, inverse, 1).reshape(x.shape)
        d_scale = (d_y * x_hat).sum(0) if wanted[1] else None
        return dx, d_scale, d_y.sum(0) if wanted[2] else None


def _fill_in(values: Array | None, default: float, matrix: Array) -> Array:
    """Return one number per column, contiguous, in the type of the matrix."""
    if values is None:
        return np.full(matrix.shape[1], default, matrix.dtype)
    return np.require(values, matrix.dtype, ("C", "A", "W"))


@register_kernel(
    "fused_rms_norm_quant",
    "x bias? residual? norm_weight? norm_bias? -> out residual_out? inv_var?",
    {"epsilon": Float(1e-5), "begin_norm_axis": Int(1)},
    since="3",
)
def _normalize_rms(
    x: Array,
    bias: Array | None,
    residual: Array | None,
    weight: Array | None,
    norm_bias: Array | None,
    *,
    epsilon: float,
    begin_norm_axis: int,
) -> tuple[Array, Array, Array]:
    """``norm_weight z / sqrt(mean(z^2) + epsilon) + norm_bias`` of ``z = x + bias + residual``."""
    for term in (bias, residual):
        x = x if term is None else x + term
    axes = tuple(range(begin_norm_axis, x.ndim))
    factor = 1 / np.sqrt(np.square(x).mean(axes, keepdims=True) + x.dtype.type(epsilon))
    out = x * factor
    columns = x.shape[begin_norm_axis:]
    out = out if weight is None else out * weight.reshape(columns)
    out = out if norm_bias is None else out + norm_bias.reshape(columns)
    return out, x, factor.reshape(x.shape[:begin_norm_axis])
