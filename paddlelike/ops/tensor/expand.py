"""Operators that repeat an array or reorder it along its dims: expand, tile, flip, reverse, roll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    REQUIRED,
    Array,
    Gradient,
    GradOp,
    Int,
    Ints,
    Longs,
    OpDef,
    OpView,
    Spec,
    derive_grad_op,
    grad_names,
    register,
)
from paddlelike.ops.later import keep_attrs, register_kernel
from paddlelike.ops.operands import normalize_axis, read_numbers


def _repeat_array(x: Array, times: Sequence[int]) -> Array:
    """Return ``x`` repeated ``times[i]`` times along dim i."""
    apart: list[int] = []
    filled: list[int] = []
    whole: list[int] = []
    for n, dim in zip(times, x.shape, strict=True):
        apart += (1, dim)
        filled += (n, dim)
        whole.append(n * dim)
    out = np.empty(filled, x.dtype)
    out[...] = x.reshape(apart)
    return out.reshape(whole)


def _sum_copies(d_out: Array, dims: Sequence[int]) -> Array:
    """Return the sum of all copies of an array of shape ``dims``."""
    apart = [size for n, dim in zip(d_out.shape, dims, strict=True) for size in (n // dim if dim else 1, dim)]
    copies = tuple(range(0, 2 * len(dims), 2))
    return d_out.reshape(apart).sum(copies)


@register
class Expand(OpDef):
    """``Out``: X repeated ``expand_times[k]`` times along each dim k."""

    type = "expand"
    by_row = staticmethod(lambda attrs: attrs["expand_times"][:1] == [1])
    inputs = ("X", "ExpandTimes?", "expand_times_tensor*?")
    attrs = {"expand_times": Ints([])}
    lod = "X"
    gradient = Gradient("Out@GRAD", "X", "ExpandTimes", "expand_times_tensor", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, tensor: Spec | None, tensors: list[Spec] | None, *, expand_times: list[int]) -> Spec:
        times = expand_times or [-1] * len(x.shape)
        if len(times) != len(x.shape):
            raise ShapeError(f"expand: expand_times is {expand_times}, expected one per dim of X {x.shape}")
        shape = tuple(-1 if dim < 0 or n < 0 else dim * n for dim, n in zip(x.shape, times, strict=True))
        return Spec(shape, x.dtype, None if shape[0] == x.shape[0] else NO_LOD)

    @staticmethod
    def forward(
        x: Array, tensor: Array | None, tensors: list[Array] | None, *, expand_times: list[int]
    ) -> Array:
        return _repeat_array(x, read_numbers(expand_times, tensor, tensors))

    @staticmethod
    def backward(d_out: Array, x: Array, tensor: Array | None, tensors: list[Array] | None) -> Array:
        return _sum_copies(d_out, x.shape)


@register
class ExpandAs(OpDef):
    """``Out``: X repeated until it has the shape of target_tensor."""

    type = "expand_as"
    until = "1"
    inputs = ("X", "target_tensor")
    gradient = Gradient("Out@GRAD", "X", "target_tensor", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, target: Spec) -> Spec:
        dims = list(zip(x.shape, target.shape, strict=False))
        if len(x.shape) != len(target.shape) or any(a > 0 <= b and b % a for a, b in dims):
            raise ShapeError(
                f"expand_as: target_tensor has shape {target.shape}, "
                f"expected multiples of the dims of X {x.shape}"
            )
        return Spec(target.shape, x.dtype)

    @staticmethod
    def forward(x: Array, target: Array) -> Array:
        return _repeat_array(x, [b // a for a, b in zip(x.shape, target.shape, strict=True)])

    @staticmethod
    def backward(d_out: Array, x: Array, target: Array) -> Array:
        return _sum_copies(d_out, x.shape)


def _undo(cls: type[OpDef], op: OpView, *, own_attrs: bool) -> list[GradOp]:
    """Return the gradient of a reversal, which is the same reversal."""
    d_out = grad_names(op.output("Out"))
    d_x = grad_names(op.input("X"))
    attrs = {name: op.attrs[name] for name in cls.attrs}
    return [GradOp(cls.type, {"X": d_out}, {"Out": d_x}, attrs, own_attrs)]


@register
class Reverse(OpDef):
    """``Out``: X reversed along each of the dims ``axis``."""

    type = "reverse"
    attrs = {"axis": Ints(REQUIRED)}
    views = True

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        return _undo(cls, op, own_attrs=True)

    @staticmethod
    def infer(x: Spec, *, axis: list[int]) -> Spec:
        for one in axis:
            normalize_axis("reverse", one, len(x.shape))
        return Spec(x.shape, x.dtype, NO_LOD if 0 in axis else None)

    @staticmethod
    def forward(x: Array, *, axis: list[int]) -> Array:
        return np.flip(x, tuple({one % x.ndim for one in axis}))


@register
class Flip(OpDef):
    """``Out``: X reversed along each of the dims ``dims``."""

    type = "flip"
    keeps_dtype = True
    attrs = {"dims": Ints(REQUIRED)}
    lod = "X"
    views = True

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        return _undo(cls, op, own_attrs=False)

    @staticmethod
    def infer(x: Spec, *, dims: list[int]) -> Spec:
        for one in dims:
            normalize_axis("flip", one, len(x.shape), name="dims")
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, dims: list[int]) -> Array:
        return np.flip(x, tuple(dims))


@register
class Roll(OpDef):
    """``Out``: X moved cyclically by ``shifts`` along ``dims`` (without dims: as one row)."""

    type = "roll"
    attrs = {"shifts": Longs([]), "dims": Longs([])}
    lod = "X"
    gradient = Gradient("Out@GRAD", "X", outputs=("X@GRAD",))

    @staticmethod
    def infer(x: Spec, *, shifts: list[int], dims: list[int]) -> Spec:
        if len(shifts) != (len(dims) or 1):
            raise ShapeError(f"roll: shifts are {shifts} and dims {dims}, expected equally many")
        for one in dims:
            normalize_axis("roll", one, len(x.shape), name="dims")
        return Spec(x.shape, x.dtype)

    @staticmethod
    def forward(x: Array, *, shifts: list[int], dims: list[int]) -> Array:
        return np.roll(x, shifts, dims or None)

    @staticmethod
    def backward(d_out: Array, x: Array, *, shifts: list[int], dims: list[int]) -> Array:
        return np.roll(d_out, [-shift for shift in shifts], dims or None)


@register
class Meshgrid(OpDef):
    """``Out[k][i0, i1, ...] = X[k][ik]``; each Out has the lengths of all X as its dims."""

    type = "meshgrid"
    inputs = ("X*",)
    outputs = ("Out*",)
    views = True
    gradient = Gradient("X", "Out@GRAD", copies_attrs=False)

    @staticmethod
    def infer(x: list[Spec]) -> list[Spec]:
        wrong = [one.shape for one in x if len(one.shape) != 1]
        if wrong:
            raise ShapeError(f"meshgrid: X holds a variable of shape {wrong[0]}, expected vectors")
        shape = tuple(one.shape[0] for one in x)
        return [Spec(shape, one.dtype) for one in x]

    @staticmethod
    def forward(x: list[Array]) -> list[Array]:
        return list(np.meshgrid(*x, indexing="ij"))

    @staticmethod
    def backward(x: list[Array], d_out: list[Array | None]) -> list[Array]:
        dims = range(len(x))
        return [
            np.zeros_like(one) if d is None else d.sum(axis=tuple(i for i in dims if i != k))
            for k, (one, d) in enumerate(zip(x, d_out, strict=True))
        ]


@register_kernel(
    "expand_v2", "X Shape? expand_shapes_tensor*? -> Out", {"shape": Ints([])}, size_slots=("Shape",)
)
def _expand(x: Array, tensor: Array | None, tensors: list[Array], *, shape: list[int]) -> Array:
    """X broadcast to a shape; -1 keeps a dim."""
    return _broadcast(x, read_numbers(shape, tensor, tensors))


@register_kernel("expand_as_v2", "X Y? -> Out", {"target_shape": Ints([])})
def _expand_as(x: Array, y: Array | None, *, target_shape: list[int]) -> Array:
    """X broadcast to the shape of Y."""
    return _broadcast(x, target_shape or ([] if y is None else y.shape))


def _broadcast(x: Array, wanted: Sequence[int]) -> Array:
    dims = (1,) * (len(wanted) - x.ndim) + x.shape
    return np.broadcast_to(x, [d if n < 0 else n for d, n in zip(dims, wanted, strict=True)]).copy()


@register_kernel("tile", "X RepeatTimes? repeat_times_tensor*? -> Out", {"repeat_times": Ints([])})
def _tile(x: Array, tensor: Array | None, tensors: list[Array], *, repeat_times: list[int]) -> Array:
    """X repeated along each dim."""
    return np.tile(x, read_numbers(repeat_times, tensor, tensors))


@register_kernel("broadcast_tensors", "X* -> Out*")
def _broadcast_tensors(arrays: list[Array]) -> list[Array]:
    """Return every array broadcast to the common shape of all."""
    return [np.copy(array) for array in np.broadcast_arrays(*arrays)]


def _make_flip_grad(cls: type[OpDef], op: OpView) -> list[GradOp]:
    return [derive_grad_op(op, "flip", axis=op.attrs["axis"])]


@register_kernel(
    "flip",
    "X -> Out",
    {"axis": Ints([])},
    changed=True,
    views=True,
    make_grad=classmethod(_make_flip_grad),
)
def _flip(x: Array, *, axis: list[int]) -> Array:
    """X reversed along some dims."""
    return np.flip(x, tuple(axis))


_ROLL: Final = {"shifts": Longs([]), "axis": Longs([])}


@register_kernel("roll", "X ShiftsTensor? -> Out", _ROLL, changed=True, make_grad=classmethod(keep_attrs))
def _roll(x: Array, tensor: Array | None, *, shifts: list[int], axis: list[int]) -> Array:
    """X moved cyclically along some dims; without dims, as one row."""
    steps = read_numbers(shifts, tensor, None)
    return np.roll(x, steps, tuple(axis)) if axis else np.roll(x, steps[0])


@register_kernel("roll_grad", "Out@GRAD X ShiftsTensor? -> X@GRAD", _ROLL, changed=True)
def _roll_grad(d_out: Array, x: Array, tensor: Array | None, *, shifts: list[int], axis: list[int]) -> Array:
    """The gradient, moved back."""
    steps = [-step for step in read_numbers(shifts, tensor, None)]
    return np.roll(d_out, steps, tuple(axis)) if axis else np.roll(d_out, steps[0])


@register_kernel("repeat_interleave", "X RepeatsTensor? -> Out", {"Repeats": Int(1), "dim": Int(0)})
def _repeat_interleave(x: Array, tensor: Array | None, *, Repeats: int, dim: int) -> Array:  # noqa: N803
    """X with every element along a dim repeated."""
    return np.repeat(x, Repeats if tensor is None else tensor, dim)
