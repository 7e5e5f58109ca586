"""affine_channel: a scale and a bias for each channel."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Gradient, OpDef, Spec, String, register
from paddlelike.ops.kernels.nn.normalization.images import normalize_channels_dx, scale_channels
from paddlelike.ops.operands import can_be_equal


@register
class AffineChannel(OpDef):
    """``Out = Scale[c] X + Bias[c]``; the channels are the last dim unless ``data_layout`` is NCHW."""

    type = "affine_channel"
    by_row = True
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
