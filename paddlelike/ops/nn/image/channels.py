"""Operators over the channels of images: lrn, affine_channel."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Float, Gradient, Int, OpDef, Spec, String, register
from paddlelike.ops.kernels.nn.image.windows import check_image
from paddlelike.ops.kernels.nn.normalization.images import normalize_channels_dx, scale_channels
from paddlelike.ops.operands import can_be_equal


class LrnAttrs(Attrs):
    """Attributes of lrn."""

    n: int = Int(5)
    k: float = Float(2.0)
    alpha: float = Float(0.0001)
    beta: float = Float(0.75)
    data_format: str = String("AnyLayout")


@register
class Lrn(OpDef):
    """``Out = X / MidOut^beta``, ``MidOut = k + alpha * sum of X^2`` over ``n`` neighbour channels.

    Krizhevsky et al., 2012.
    """

    type = "lrn"
    outputs = ("Out", "MidOut")
    attrs = LrnAttrs.table(is_test=Bool(False), use_mkldnn=Bool(False))
    lod = {"Out": "X"}
    gradient = Gradient("X", "Out", "MidOut", "Out@GRAD")

    @staticmethod
    def infer(x: Spec, *, attrs: LrnAttrs) -> tuple[Spec, Spec]:
        check_image("lrn", x)
        if attrs.n < 1 or attrs.n % 2 == 0:
            raise ShapeError(f"lrn: n is {attrs.n}; it must be odd, so that a channel is in the middle")
        return Spec(x.shape, x.dtype), Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, attrs: LrnAttrs) -> tuple[Array, Array]:
        mid = _sum_neighbours(np.square(x), attrs.n, attrs.data_format)
        mid *= attrs.alpha
        mid += attrs.k
        return x * mid**-attrs.beta, mid

    @staticmethod
    def backward(x: Array, out: Array, mid: Array, d_out: Array, *, attrs: LrnAttrs) -> Array:
        dx = _sum_neighbours(d_out * out / mid, attrs.n, attrs.data_format)
        dx *= x
        dx *= -2 * attrs.alpha * attrs.beta
        dx += d_out * mid**-attrs.beta
        return dx


def _sum_neighbours(x: Array, n: int, data_format: str) -> Array:
    """Return, for each channel, the sum over the ``n`` channels around it."""
    axis = 3 if data_format == "NHWC" else 1
    out = x.copy()
    source, target = np.moveaxis(x, axis, 0), np.moveaxis(out, axis, 0)
    for away in range(1, min(n // 2 + 1, len(source))):
        target[away:] += source[:-away]
        target[:-away] += source[away:]
    return out


@register
class AffineChannel(OpDef):
    """``Out = Scale[c] X + Bias[c]``; the channels are the last dim unless ``data_layout`` is NCHW."""

    type = "affine_channel"
    inputs = ("X", "Scale", "Bias")
    attrs = {"data_layout": String("AnyLayout")}
    lod = "X"
    any_order = True
    gradient = Gradient("X", "Scale", "Out@GRAD", outputs=("X@GRAD", "Scale@GRAD", "Bias@GRAD"))

    @staticmethod
    def infer(x: Spec, scale: Spec, bias: Spec, *, data_layout: str) -> Spec:
        channels = x.shape[1 if data_layout == "NCHW" else -1]
        for name, spec in (("Scale", scale), ("Bias", bias)):
            if len(spec.shape) != 1 or not can_be_equal(spec.shape[0], channels):
                raise ShapeError(
                    f"affine_channel: X of shape {x.shape} ({data_layout}) has {channels} channels, "
                    f"{name} has shape {spec.shape}"
                )
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, scale: Array, bias: Array, *, data_layout: str) -> Array:
        return scale_channels(x, scale, bias, _find_layout(data_layout))

    @staticmethod
    def backward(
        x: Array, scale: Array, d_out: Array, *, data_layout: str, wanted: tuple[bool, bool, bool]
    ) -> tuple[Array | None, Array | None, Array | None]:
        layout = _find_layout(data_layout)
        if not any(wanted[1:]):
            return scale_channels(d_out, scale, None, layout), None, None
        plain = np.zeros_like(scale), np.ones_like(scale)
        return normalize_channels_dx(x, d_out, *plain, scale, layout, fixed=True)


def _find_layout(layout: str) -> str:
    return "NCHW" if layout == "NCHW" else "NHWC"
