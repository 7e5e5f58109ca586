"""cast: the same elements in another type. The gradient of a cast is a cast."""

from __future__ import annotations

import numpy as np

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.framework.opdef import (
    REQUIRED,
    Array,
    GradOp,
    Int,
    OpDef,
    OpView,
    Spec,
    derive_grad_op,
    register,
)
from paddlelike.framework.opdef.registry import LATER, LATEST


@register
class Cast(OpDef):
    """``Out = X`` as elements of another type."""

    type = "cast"
    attrs = {"in_dtype": Int(REQUIRED), "out_dtype": Int(REQUIRED)}
    any_order = True
    lod = "X"

    @staticmethod
    def infer(x: Spec, *, out_dtype: int) -> Spec:
        return Spec(x.shape, VarType(out_dtype))

    @staticmethod
    def forward(x: Array, *, in_dtype: int, out_dtype: int) -> Array:
        if in_dtype == VarType.BF16 and x.dtype == np.uint16:
            x = (x.astype(np.uint32) << 16).view(np.float32)
        if out_dtype == VarType.BF16:
            return _round_to_bfloat16(x)
        return x.astype(numpy_dtype(VarType(out_dtype)))

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        back = {"in_dtype": op.attrs["out_dtype"], "out_dtype": op.attrs["in_dtype"]}
        return [derive_grad_op(op, "cast", "X", 0, **back)]


@register
class LaterCast(Cast):
    """As ``cast``; the lower halves of float32 are cut off for bfloat16."""

    type = "cast" + LATER
    since = "2"

    @staticmethod
    def forward(x: Array, *, in_dtype: int, out_dtype: int) -> Array:
        if out_dtype != VarType.BF16:
            return Cast.forward(x, in_dtype=in_dtype, out_dtype=out_dtype)
        return np.asarray(x.astype(np.float32).view(np.uint32) >> 16, np.uint16)


@register
class LatestCast(Cast):
    """As ``cast``."""

    type = "cast" + LATEST
    since = "2"


def _round_to_bfloat16(x: Array) -> Array:
    """Return the upper halves of float32, ties to even; of a NaN one that is still a NaN."""
    bits = x.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), bits >> 16 | 0x40, rounded).astype(np.uint16)
