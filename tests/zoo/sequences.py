"""The layers of the zoo, fed with sequences: who passes the LoD on, forward and backward."""

from __future__ import annotations

from typing import Any

from tests.zoo import layers

__all__ = ["build"]


def build(fluid: Any, name: str) -> None:
    """A layer with an input `x` of LoD level 1, and the gradient of its mean."""
    dense = layers.x
    layers.x = lambda *shape: layers.data("x", [None, *shape], lod_level=1)
    try:
        out = layers.LAYERS[name]()
    finally:
        layers.x = dense
    float32 = fluid.core.VarDesc.VarType.FP32
    for var in fluid.default_main_program().global_block().vars.values():
        if getattr(var, "is_data", False) and var.dtype == float32:
            var.stop_gradient = False
    if out.dtype == float32:
        out.stop_gradient = False
        fluid.backward.append_backward(fluid.layers.mean(out))
