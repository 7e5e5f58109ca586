"""Operators that join or split arrays along a dim: concat, split, multiplex."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    NO_LOD,
    OWN,
    Array,
    Bool,
    Context,
    Gradient,
    GradOp,
    Int,
    Ints,
    LoD,
    OpDef,
    OpView,
    Spec,
    grad_names,
    register,
    spares_first,
)
from paddlelike.ops.operands import can_be_equal, check_same_dtype, normalize_axis, read_numbers


@register
class Concat(OpDef):
    """``Out``: the arrays of X concatenated along ``axis``.

    Along axis 0 the sequences (LoD) are joined as well; along other axes X[0]'s LoD stays.
    """

    type = "concat"
    by_row = spares_first("axis")
    inputs = ("X*", "AxisTensor?")
    attrs = {"use_mkldnn": Bool(False), "axis": Int(0), "use_quantizer": Bool(False)}
    any_order = True
    lod = "X"
    lods_only = True
    views = True  # the gradients are parts of Out's
    gradient = Gradient("Out@GRAD", "X", "AxisTensor", outputs=("X@GRAD",), lod=OWN)

    @staticmethod
    def infer(x: list[Spec], axis_tensor: Spec | None, *, axis: int) -> Spec:
        if not x:
            raise ShapeError("concat: X is empty, expected one variable at least")
        rank = len(x[0].shape)
        if axis_tensor is not None:
            return Spec((-1,) * rank, x[0].dtype)
        axis = normalize_axis("concat", axis, rank)
        shape = list(x[0].shape)
        for index, other in enumerate(x[1:], 1):
            if len(other.shape) != rank or not all(
                can_be_equal(a, b)
                for i, (a, b) in enumerate(zip(shape, other.shape, strict=True))
                if i != axis
            ):
                raise ShapeError(
                    f"concat: X[{index}] has shape {other.shape}, X[0] {x[0].shape}; "
                    f"all dims but {axis} must be the same"
                )
            along = (shape[axis], other.shape[axis])
            shape[axis] = -1 if -1 in along else sum(along)
        return Spec(tuple(shape), x[0].dtype)

    @staticmethod
    def forward(ctx: Context, x: list[Array], axis_tensor: Array | None, *, axis: int) -> Array:
        axis = axis if axis_tensor is None else int(axis_tensor.reshape(-1)[0])
        lod = ctx.lod("X")
        if lod:
            if axis in (0, -x[0].ndim):
                lod = _join_sequences([ctx.lod("X", i) for i in range(len(x))]) or lod
            ctx.set_lod("Out", lod)
        check_same_dtype("concat", x[0], x[1:], "its inputs")
        return np.concatenate(x, axis)

    @staticmethod
    def backward(
        ctx: Context,
        d_out: Array,
        x: list[Array],
        axis_tensor: Array | None,
        *,
        axis: int,
        wanted: tuple[tuple[bool, ...]],
    ) -> list[Array | None]:
        axis = read_numbers([axis], axis_tensor, None)[0]
        parts = _split_views(d_out, [one.shape[axis] for one in x], axis)
        return [part if want else None for part, want in zip(parts, wanted[0], strict=True)]


def _join_sequences(lods: list[LoD]) -> LoD:
    """Return the sequences of all arrays, level by level; [] when their numbers of levels differ."""
    if len({len(lod) for lod in lods}) != 1:
        return []
    out: LoD = [[0] for _ in lods[0]]
    for lod in lods:
        for level, more in zip(out, lod, strict=True):
            start = level[-1]
            level.extend(start + offset for offset in more[1:])
    return out


def _split_views(x: Array, sizes: Sequence[int], axis: int) -> list[Array]:
    """Return views of ``x``, of the given sizes along ``axis``."""
    before = (slice(None),) * (axis % x.ndim)
    ends = list(itertools.accumulate(sizes))
    return [x[(*before, slice(end - n, end))] for n, end in zip(sizes, ends, strict=True)]


@register
class Split(OpDef):
    """``Out``: X cut along ``axis`` into ``num`` equal parts, or ``sections`` (one may be -1)."""

    type = "split"
    by_row = spares_first("axis")
    inputs = ("X", "AxisTensor?", "SectionsTensorList*?")
    outputs = ("Out*",)
    attrs = {"sections": Ints([]), "num": Int(0), "axis": Int(0)}
    any_order = True
    lod = "X"
    views = True

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        d_out = grad_names(op.output("Out"))
        d_x = grad_names(op.input("X"))
        return [
            GradOp(
                "concat",
                {"X": d_out, "AxisTensor": op.input("AxisTensor")},
                {"Out": d_x},
                {name: op.attrs[name] for name in cls.attrs if name in op.attrs},
            )
        ]

    @staticmethod
    def infer(
        x: Spec,
        axis_tensor: Spec | None,
        tensors: list[Spec] | None,
        *,
        axis: int,
        num: int,
        sections: list[int],
    ) -> list[Spec]:
        count = num or len(sections)
        if axis_tensor is not None:
            return [Spec((-1,) * len(x.shape), x.dtype)] * count
        axis = normalize_axis("split", axis, len(x.shape))
        sizes = list(sections) if tensors else _find_section_sizes(x.shape, axis, num, sections)
        lod_level = NO_LOD if axis == 0 else None
        return [Spec((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype, lod_level) for size in sizes]

    @staticmethod
    def forward(
        x: Array,
        axis_tensor: Array | None,
        tensors: list[Array] | None,
        *,
        axis: int,
        num: int,
        sections: list[int],
    ) -> list[Array]:
        axis = read_numbers([axis], axis_tensor, None)[0]
        sizes = _find_section_sizes(x.shape, axis, num, read_numbers(sections, None, tensors))
        return _split_views(x, sizes, axis)


def _find_section_sizes(shape: Sequence[int], axis: int, num: int, sections: Sequence[int]) -> list[int]:
    """Return the sizes of the parts along ``axis``; -1 where they depend on an unknown dim."""
    size = shape[axis]
    if num > 0:
        if size >= 0 and size % num:
            raise ShapeError(f"split: dim {axis} of X {list(shape)} cannot be cut into {num} equal parts")
        return [size // num if size >= 0 else -1] * num
    given = sum(section for section in sections if section >= 0)
    unknown = [section for section in sections if section < 0]
    if not sections or len(unknown) > 1:
        raise ShapeError(f"split: num is {num} and sections {list(sections)}; at most one may be -1")
    if size < 0:
        return list(sections)
    if given > size or (not unknown and given != size):
        raise ShapeError(
            f"split: sections {list(sections)} add up to {given}, but dim {axis} of X {list(shape)} is {size}"
        )
    return [size - given if section < 0 else section for section in sections]


@register
class Multiplex(OpDef):
    """``Out[i] = X[Ids[i]][i]``: row i comes from the array that Ids names."""

    type = "multiplex"
    by_row = True
    inputs = ("Ids", "X*")
    gradient = Gradient("Out@GRAD", "Ids", outputs=("X@GRAD",))

    @staticmethod
    def infer(ids: Spec, x: list[Spec]) -> Spec:
        if len(x) < 2 or any(len(one.shape) != len(x[0].shape) for one in x):
            raise ShapeError(
                f"multiplex: X has shapes {[one.shape for one in x]}; "
                "expected two variables or more of the same shape"
            )
        return Spec(x[0].shape, x[0].dtype)

    @staticmethod
    def forward(ids: Array, x: list[Array]) -> Array:
        which = ids.reshape(-1)
        if which.size and not 0 <= which.min() <= which.max() < len(x):
            raise EnforceNotMet(
                f"multiplex: Ids go from {which.min()} to {which.max()}, but X has {len(x)} variables"
            )
        out = np.empty((len(which), *x[0].shape[1:]), x[0].dtype)
        for index, source in enumerate(x):
            rows = np.flatnonzero(which == index)
            out[rows] = source[rows]
        return out

    @staticmethod
    def backward(d_out: Array, ids: Array, *, wanted: tuple[tuple[bool, ...]]) -> list[Array | None]:
        mine = ids.reshape(-1, *[1] * (d_out.ndim - 1))
        zero = d_out.dtype.type(0)
        return [
            np.where(mine == index, d_out, zero) if want else None for index, want in enumerate(wanted[0])
        ]
