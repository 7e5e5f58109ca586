"""Arithmetic of whole tensors: scale, minus, clip, clip_by_norm, increment, cast.

The gradients of scale, minus and cast are operators of the same kind.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike.core import SelectedRows, VarType, numpy_dtype
from paddlelike.core.dtypes import widen_bfloat16
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    GRAD,
    REQUIRED,
    Array,
    Bool,
    Float,
    Gradient,
    GradOp,
    Int,
    Kernel,
    OpDef,
    OpView,
    Spec,
    derive_grad_op,
    register,
)
from paddlelike.framework.opdef.registry import LATER, LATEST
from paddlelike.ops.elementwise.binary import map_row_values
from paddlelike.ops.kernels.special import convert
from paddlelike.ops.later import register_kernel
from paddlelike.ops.operands import can_be_equal, keep_spec

Value = Array | SelectedRows


@register
class Scale(OpDef):
    """``Out = scale X + bias``, or ``scale (X + bias)`` without ``bias_after_scale``.

    ScaleTensor, of shape (1,), replaces the attribute. Integers are scaled by integers.
    """

    type = "scale"
    keeps_dtype = True
    keeps_rows = True
    by_row = True
    inputs = ("X", "ScaleTensor?")
    attrs = {"scale": Float(1.0), "bias": Float(0.0), "bias_after_scale": Bool(True)}
    any_order = True
    lod = "X"

    @staticmethod
    def infer(x: Spec, scale_tensor: Spec | None) -> Spec:
        return x._replace(shape=x.shape or (0,))  # Paddle's form of an unknown shape

    @staticmethod
    def forward(
        x: Value, scale_tensor: Array | None, *, scale: float, bias: float, bias_after_scale: bool
    ) -> Value:
        if scale_tensor is not None:
            scale = scale_tensor.reshape(-1)[0].item()
        if isinstance(x, SelectedRows):
            return map_row_values(x, lambda values: _apply_scale(values, scale, bias, bias_after_scale))
        return _apply_scale(x, scale, bias, bias_after_scale)

    @classmethod
    def specialize(cls, keywords: Mapping[str, Any], variables: Sequence[Any]) -> Kernel | None:
        x, scale_tensor = variables
        by, bias = keywords["scale"], keywords["bias"]
        if x is None or scale_tensor is not None or bias != 0 or by == 1 or GRAD in x.name:
            return None  # a gradient may be sparse
        if x.type != VarType.LOD_TENSOR or x.dtype not in (VarType.FP32, VarType.FP64):
            return None
        # An array without dims as second operand takes 0.2 us less than a numpy number.
        return functools.partial(np.multiply, np.array(by, numpy_dtype(x.dtype)))

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        scale = op.attrs["scale"]
        grad = derive_grad_op(op, "scale", "X", 0, scale=scale, bias=0.0, bias_after_scale=True)
        grad.inputs["ScaleTensor"] = list(op.input("ScaleTensor"))
        return [grad]


def _apply_scale(x: Array, scale: float, bias: float, bias_after_scale: bool) -> Array:
    if x.dtype.kind != "f":
        scale, bias = int(scale), int(bias)
    if bias == 0:
        return x.copy() if scale == 1 else x * scale
    if bias_after_scale:
        out = x * scale
        out += bias
    else:
        out = x + bias
        out *= scale
    return out


@register
class Minus(OpDef):
    """``Out = X - Y`` of two tensors of one shape."""

    type = "minus"
    by_row = True
    inputs = ("X", "Y")
    lod = "X"

    @staticmethod
    def infer(x: Spec, y: Spec) -> Spec:
        same = len(x.shape) == len(y.shape) and all(map(can_be_equal, x.shape, y.shape))
        if not same:
            raise ShapeError(f"minus: X has shape {x.shape}, Y {y.shape}; they must be equal")
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, y: Array) -> Array:
        return x - y

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        return [derive_grad_op(op, "scale", slot, 0, scale=by) for slot, by in (("X", 1.0), ("Y", -1.0))]


@register
class Clip(OpDef):
    """``Out = min(max(X, min), max)``; the tensors Min and Max replace the attributes.

    SelectedRows are merged first, so that every row is there once.
    """

    type = "clip"
    keeps_rows = True
    by_row = True
    inputs = ("X", "Min?", "Max?")
    attrs = {"min": Float(REQUIRED), "max": Float(REQUIRED)}
    any_order = True
    lod = "X"
    gradient = Gradient("X", "Min", "Max", "Out@GRAD", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, low: Spec | None, high: Spec | None, *, min: float, max: float) -> Spec:
        if low is None and high is None:
            _find_bounds(None, None, min, max)
        return x

    @staticmethod
    def forward(x: Value, low: Array | None, high: Array | None, *, min: float, max: float) -> Value:
        return _clip(x, _find_bounds(low, high, min, max))

    @staticmethod
    def backward(
        x: Array, low: Array | None, high: Array | None, d_out: Array, *, min: float, max: float
    ) -> Array:
        least, greatest = _find_bounds(low, high, min, max)
        return d_out * ((x > least) & (x < greatest))


def _clip(x: Value, bounds: tuple[float, float]) -> Value:
    if isinstance(x, SelectedRows):
        return map_row_values(x.merge(), lambda values: np.clip(values, *bounds))
    if x.dtype.kind in "iu":  # float64 has fewer digits, and a bound may be beyond the type
        limits = np.iinfo(x.dtype)
        least, greatest = (int(np.clip(bound, limits.min, limits.max)) for bound in bounds)
        return np.clip(x, least, greatest)
    return np.clip(x, *bounds)


def _find_bounds(
    low: Array | None,
    high: Array | None,
    least: float,
    greatest: float,
    are_wrong: Callable[[float, float], bool] = operator.ge,
) -> tuple[float, float]:
    if low is not None:
        least = low.reshape(-1)[0].item()
    if high is not None:
        greatest = high.reshape(-1)[0].item()
    if are_wrong(least, greatest):
        raise EnforceNotMet(f"clip: min is {least} and max {greatest}; min must be below max")
    return least, greatest


@register_kernel(
    "clip",
    "X Min? Max? -> Out",
    Clip.attrs,
    changed=True,
    keeps_rows=True,
    by_row=True,
    any_order=True,
    lod="X",
)
def _later_clip(x: Value, low: Array | None, high: Array | None, *, min: float, max: float) -> Value:
    """``Out = min(max(X, min), max)``; unlike in Fluid, min may be max."""
    return _clip(x, _find_bounds(low, high, min, max, operator.gt))


def _register_clip_grad(mark: str, is_below: Callable[[Any, Any], Any]) -> None:
    def run(
        x: Array, low: Array | None, high: Array | None, d_out: Array, *, min: float, max: float
    ) -> Array:
        least, greatest = _find_bounds(low, high, min, max, operator.gt)
        return d_out * (is_below(least, x) & is_below(x, greatest))

    slots = "X Min? Max? Out@GRAD -> X@GRAD"
    register_kernel("clip_grad", slots, Clip.attrs, changed=True, mark=mark, by_row=True)(run)


_register_clip_grad(LATER, operator.lt)
_register_clip_grad(LATEST, operator.le)  # the gradient passes at the bounds too


@register
class ClipByNorm(OpDef):
    """``Out``: X, scaled down if its Euclidean norm is above ``max_norm``.

    SelectedRows are merged first, so that every row is there once. Zeros stay zeros, where Fluid 1.8.5
    returns NaN: it divides by their norm.
    """

    type = "clip_by_norm"
    attrs = {"max_norm": Float(REQUIRED)}
    lod = "X"

    infer = staticmethod(keep_spec)

    @staticmethod
    def forward(x: Value, *, max_norm: float) -> Value:
        if isinstance(x, SelectedRows):
            return map_row_values(x.merge(), lambda values: _limit_norm(values, max_norm))
        return _limit_norm(x, max_norm)


def _limit_norm(x: Array, max_norm: float) -> Array:
    flat = x.reshape(-1)
    norm = math.sqrt(np.dot(flat, flat))
    return x.copy() if norm <= max_norm else x * (max_norm / norm)  # NaN everywhere if the norm is NaN


@register
class Increment(OpDef):
    """``Out = X + step`` for one number; mostly a counter, where Out is X.

    Its gradient operator subtracts the step, so that counters of loops run backwards.
    """

    type = "increment"
    lod = "X"
    attrs = {"step": Float(1.0)}

    @staticmethod
    def infer(x: Spec) -> Spec:
        if math.prod(x.shape) != 1:
            raise ShapeError(f"increment: X has shape {x.shape}, expected one element")
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, step: float) -> Array:
        return x + x.dtype.type(step)

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        back = {"step": -op.attrs["step"]}
        return [GradOp("increment", {"X": op.output("Out")}, {"Out": op.input("X")}, back, True)]


@register
class Cast(OpDef):
    """``Out = X`` as elements of another type."""

    type = "cast"
    by_row = True
    attrs = {"out_dtype": Int(REQUIRED), "in_dtype": Int(REQUIRED)}
    any_order = True
    lod = "X"

    @staticmethod
    def infer(x: Spec, *, out_dtype: int) -> Spec:
        return Spec(x.shape, VarType(out_dtype))

    @staticmethod
    def forward(x: Array, *, in_dtype: int, out_dtype: int) -> Array:
        if in_dtype == VarType.BF16 and x.dtype == np.uint16:
            x = widen_bfloat16(x)
        if out_dtype == VarType.BF16:
            return _round_to_bfloat16(x)
        return convert(x, numpy_dtype(VarType(out_dtype)))

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        back = {"in_dtype": op.attrs["out_dtype"], "out_dtype": op.attrs["in_dtype"]}
        return [derive_grad_op(op, "cast", "X", 0, **back)]


@register
class LaterCast(Cast):
    """``Cast`` of later versions; for bfloat16 the lower halves of float32 are cut off."""

    type = "cast" + LATER
    since = "2"

    @staticmethod
    def forward(x: Array, *, in_dtype: int, out_dtype: int) -> Array:
        if out_dtype != VarType.BF16:
            return Cast.forward(x, in_dtype=in_dtype, out_dtype=out_dtype)
        return np.asarray(x.astype(np.float32).view(np.uint32) >> 16, np.uint16)


@register
class LatestCast(Cast):
    """``Cast`` of the latest versions."""

    type = "cast" + LATEST
    since = "2"


def _round_to_bfloat16(x: Array) -> Array:
    """Return the upper halves of float32 numbers, rounded with ties to even; a NaN stays a NaN."""
    bits = x.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), bits >> 16 | 0x40, rounded).astype(np.uint16)
