"""affine_channel: a scale and a bias for each channel.

Parameters
----------
x
    (N, C, H, W), or (N, H, W, C) for NHWC.
scale, bias
    Variables (C,).
"""

from __future__ import annotations

from paddlelike.framework.graph.variable import Variable
from paddlelike.layers.checks import WIDE_FLOATS, check_variable
from paddlelike.layers.emit import emit

__all__ = ["affine_channel"]


def affine_channel(
    x: Variable,
    scale: Variable | None = None,
    bias: Variable | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    act: str | None = None,
) -> Variable:
    """Return ``act(scale * x + bias)``; ``scale`` and ``bias``, (C,), have one element per channel.

    Operator ``affine_channel``. Raises TypeError unless ``x``, ``scale`` and ``bias`` are variables of
    supported dtypes.

    >>> import paddlelike as fluid
    >>> x = fluid.data("x", [None, 3, 8, 8])
    >>> scale, bias = (fluid.layers.create_parameter([3], "float32") for _ in "ab")
    >>> fluid.layers.affine_channel(x, scale, bias).shape
    (-1, 3, 8, 8)
    """
    check_variable("affine_channel", "x", x, WIDE_FLOATS)
    check_variable("affine_channel", "scale", scale)
    check_variable("affine_channel", "bias", bias)
    inputs = {"X": x, "Scale": scale, "Bias": bias}
    return emit("affine_channel", inputs, {"data_layout": data_layout}, name=name, act=act)
