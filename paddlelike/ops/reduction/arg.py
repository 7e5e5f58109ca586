"""arg_max and arg_min of Paddle 2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paddlelike.framework.opdef import Array, Attrs, Bool, Int, Long
from paddlelike.ops.later import INTEGERS, register_kernel


class ArgAttrs(Attrs):
    """Attributes of the later arg_max and arg_min."""

    axis: int = Long(-1)
    keepdims: bool = Bool(False)
    flatten: bool = Bool(False)
    dtype: int = Int(3)


def _make_arg(function: Callable[..., Array]) -> Callable[..., Array]:
    def find(x: Array, tensor: Array | None, *, attrs: ArgAttrs) -> Array:
        axis = attrs.axis if tensor is None else int(tensor.item())
        axes = None if attrs.flatten or not x.ndim else axis
        places = np.asarray(function(x, axes, keepdims=attrs.keepdims))
        return places.astype(INTEGERS.get(attrs.dtype, INTEGERS[3]))

    return find


register_kernel("arg_max", "X Axis? -> Out", ArgAttrs.table(), changed=True)(_make_arg(np.argmax))


register_kernel("arg_min", "X Axis? -> Out", ArgAttrs.table(), changed=True)(_make_arg(np.argmin))
