"""The second gradient of instance_norm."""

from __future__ import annotations

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.nn.normalization import layer_norm  # noqa: F401  (it registers the operator)
from paddlelike.ops.second_order.registration import register_second_order

Maybe = Array | None


def _instance_norm(
    x: Array,
    scale: Array,
    mean: Array,
    inverse: Array,
    dd_x: Maybe,
    dd_scale: Maybe,
    dd_bias: Maybe,
    d_y: Array,
) -> tuple[Array, Array, Array]:
    """The gradients of instance_norm_grad by X, Scale and the gradient of Y.

    They are the gradients of one sum. With h the normalized X, i the inverse deviation and g the gradient of
    Y, that is the sum of ``dd_x scale i (g - mean(g) - h mean(g h)) + dd_scale g h + dd_bias g``.
    """
    planes = (*x.shape[:2], -1)
    once = (*x.shape[:2], 1)
    i = inverse.reshape(once)
    h = (x.reshape(planes) - mean.reshape(once)) * i
    g = d_y.reshape(planes)
    a = np.zeros_like(h) if dd_x is None else dd_x.reshape(planes)
    by_channel = (1, -1, 1)
    factor = scale.reshape(by_channel)
    more_scale = np.zeros_like(factor) if dd_scale is None else dd_scale.reshape(by_channel)
    more_bias = np.zeros_like(factor) if dd_bias is None else dd_bias.reshape(by_channel)
    centered_a = a - _mean(a) - h * _mean(a * h)
    centered_g = g - _mean(g) - h * _mean(g * h)
    d_scale = (a * i * centered_g).sum((0, 2))
    by_h = -factor * i * (a * _mean(g * h) + g * _mean(a * h)) + more_scale * g
    by_inverse = (factor * a * centered_g).sum(2, keepdims=True)
    d_x = i * (by_h - _mean(by_h) - h * _mean(by_h * h)) - by_inverse * i * i * h / h.shape[2]
    dd_y = factor * i * centered_a + more_scale * h + more_bias
    return dd_y.reshape(x.shape), d_scale, d_x.reshape(x.shape)


def _mean(values: Array) -> Array:
    return np.asarray(values.mean(2, keepdims=True))


register_second_order(
    "instance_norm",
    {
        "X": "X",
        "Scale": "Scale",
        "SavedMean": "SavedMean",
        "SavedVariance": "SavedVariance",
        "DDX": "X@GRAD",
        "DDScale": "Scale@GRAD",
        "DDBias": "Bias@GRAD",
        "DY": "Y@GRAD",
    },
    {"DDY": "Y@GRAD", "DScale": "Scale", "DX": "X"},
    _instance_norm,
)
