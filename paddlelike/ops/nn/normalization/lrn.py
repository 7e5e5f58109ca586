"""lrn: local response normalization."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Float, Gradient, Int, OpDef, Spec, String, register
from paddlelike.ops.kernels.nn.image.windows import check_image


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
    by_row = True
    outputs = ("Out", "MidOut")
    fluid_order = "n k alpha beta use_mkldnn data_format is_test"
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
