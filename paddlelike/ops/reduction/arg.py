"""arg_max and arg_min, in the forms of Fluid and of Paddle 2."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.framework.opdef import REQUIRED, Array, Attrs, Bool, Int, Long, OpDef, Spec, register
from paddlelike.ops.extremes import find_extreme
from paddlelike.ops.later import INTEGERS, register_kernel
from paddlelike.ops.operands import normalize_axis


def _find_index_dtype(dtype: int) -> VarType:
    """Return the element type that an operator's ``dtype`` names; -1 is int64."""
    return VarType.INT64 if dtype < 0 else VarType(dtype)


def _register_extreme(type_: str, what: str) -> None:
    is_greatest = type_ == "arg_max"

    def infer(x: Spec, *, axis: int, keepdims: bool, dtype: int) -> Spec:
        axis = normalize_axis(type_, axis, len(x.shape))
        one = (1,) if keepdims else ()
        return Spec((*x.shape[:axis], *one, *x.shape[axis + 1 :]), _find_index_dtype(dtype))

    def forward(x: Array, *, axis: int, keepdims: bool, dtype: int) -> Array:
        where = find_extreme(x, axis, keepdims=keepdims, is_greatest=is_greatest)
        return np.asarray(where, numpy_dtype(_find_index_dtype(dtype)))

    body = {
        "__doc__": f"``Out``: the position of the {what} number along ``axis``, the first if several.",
        "__module__": __name__,
        "type": type_,
        "attrs": {"axis": Long(REQUIRED), "keepdims": Bool(False), "dtype": Int(-1)},
        "infer": staticmethod(infer),
        "forward": staticmethod(forward),
    }
    register(type(type_.title().replace("_", ""), (OpDef,), body))


_register_extreme("arg_max", "largest")
_register_extreme("arg_min", "smallest")


class ArgAttrs(Attrs):
    """Attributes of the later arg_max and arg_min."""

    axis: int = Long(-1)
    keepdims: bool = Bool(False)
    flatten: bool = Bool(False)
    dtype: int = Int(3)


def _make_arg(*, is_greatest: bool) -> Callable[..., Array]:
    def find(x: Array, tensor: Array | None, *, attrs: ArgAttrs) -> Array:
        axis = attrs.axis if tensor is None else int(tensor.item())
        axes = None if attrs.flatten or not x.ndim else axis
        places = find_extreme(x, axes, keepdims=attrs.keepdims, is_greatest=is_greatest)
        return places.astype(INTEGERS.get(attrs.dtype, INTEGERS[3]))

    return find


register_kernel("arg_max", "X Axis? -> Out", ArgAttrs.table(), changed=True)(_make_arg(is_greatest=True))


register_kernel("arg_min", "X Axis? -> Out", ArgAttrs.table(), changed=True)(_make_arg(is_greatest=False))
