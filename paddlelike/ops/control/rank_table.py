"""Sequences in the order of their lengths, for loops over steps; and rows that are split by a mask."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddlelike.core import LoD, LoDTensor, LoDTensorArray, VarType
from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import (
    Array,
    Context,
    Gradient,
    GradOp,
    Int,
    OpDef,
    OpView,
    Spec,
    grad_names,
    register,
)
from paddlelike.ops.kernels.lod import find_lod, join_lods, pick_sequences
from paddlelike.ops.operands import one_element, same_shape


class RankTable(NamedTuple):
    """The sequences of one level of a LoD, the longest first."""

    order: list[int]  # indices of the sequences
    lengths: list[int]  # in that order
    level: int
    lod: LoD  # all levels


# The table


@register
class LodRankTable(OpDef):
    """``Out``: the sequences of X in one ``level`` of its LoD sorted by length, the longest first."""

    type = "lod_rank_table"
    attrs = {"level": Int(0)}

    @staticmethod
    def forward(ctx: Context, x: Array, *, level: int) -> RankTable:
        lod = ctx.lod("X")
        if level >= len(lod):
            raise EnforceNotMet(
                f"lod_rank_table: {ctx.op.input('X')[0]!r} has a LoD of {len(lod)} levels, "
                f"but level {level} was requested",
                hint="feed a LoDTensor: fluid.create_lod_tensor(array, [lengths], place)",
            )
        lengths = np.diff(lod[level])
        order = np.argsort(-lengths, kind="stable")
        return RankTable(order.tolist(), lengths[order].tolist(), level, lod)


@register
class MaxSequenceLen(OpDef):
    """``Out``: the length of the longest sequence of a rank table, int64 of shape [1]."""

    type = "max_sequence_len"
    inputs = ("RankTable",)

    infer = one_element(VarType.INT64)

    @staticmethod
    def forward(table: RankTable) -> Array:
        return np.array(table.lengths[:1] or [0], np.int64)


# Sequences and arrays


def _make_inverse(op: OpView, type: str) -> list[GradOp]:  # noqa: A002
    inputs = {"RankTable": op.input("RankTable"), "X": grad_names(op.output("Out"))}
    return [GradOp(type, inputs, {"Out": grad_names(op.input("X"))}, {})]


@register
class LodTensorToArray(OpDef):
    """``Out[t]``: row (or sub-sequence) ``t`` of every sequence of X that has one, the longest first."""

    type = "lod_tensor_to_array"
    inputs = ("X", "RankTable")

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return the operator that undoes this one."""
        return _make_inverse(op, "array_to_lod_tensor")

    @staticmethod
    def infer(x: Spec, table: Spec) -> Spec:
        return Spec(x.shape, x.dtype, max((x.lod_level or 0) - 1, 0), VarType.LOD_TENSOR_ARRAY)

    @staticmethod
    def forward(ctx: Context, x: Array, table: RankTable) -> LoDTensorArray:
        lod = find_lod(ctx, "X") or table.lod
        starts = np.array(lod[table.level], np.int64)[table.order]
        lengths = np.array(table.lengths)
        out = LoDTensorArray()
        for t in range(max(table.lengths, default=0)):
            rows, finer = pick_sequences(x, lod[table.level + 1 :], (starts[lengths > t] + t).tolist())
            out.append(LoDTensor(rows, finer))
        return out


@register
class ArrayToLodTensor(OpDef):
    """``Out``: the sequences whose row ``t`` is in ``X[t]``, in the order before the table sorted them."""

    type = "array_to_lod_tensor"
    inputs = ("X", "RankTable")

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return the operator that undoes this one."""
        return _make_inverse(op, "lod_tensor_to_array")

    @staticmethod
    def infer(x: Spec, table: Spec) -> Spec:
        return Spec(x.shape, x.dtype, (x.lod_level or 0) + 1, VarType.LOD_TENSOR)

    @staticmethod
    def forward(ctx: Context, x: LoDTensorArray, table: RankTable) -> Array:
        parts = [element.held_array for element in x if element.held_array is not None]
        if len(parts) != max(table.lengths, default=0):
            raise EnforceNotMet(
                f"array_to_lod_tensor: the array has {len(parts)} elements, "
                f"but the longest sequence has {max(table.lengths, default=0)} steps"
            )
        lods = [element.lod() for element in x]
        sizes = [len(lod[0]) - 1 if lod else len(part) for lod, part in zip(lods, parts, strict=True)]
        firsts = np.cumsum([0, *sizes])  # where each element begins, one after the other
        by_sequence = sorted(zip(table.order, table.lengths, range(len(table.order)), strict=True))
        indices = [int(firsts[t]) + rank for _, length, rank in by_sequence for t in range(length)]
        rows, finer = pick_sequences(np.concatenate(parts), join_lods(lods), indices)
        offsets = [0, *np.cumsum([length for _, length, _ in by_sequence]).tolist()]
        ctx.set_lod("Out", [*table.lod[: table.level], offsets, *finer])
        return rows


@register
class ShrinkRnnMemory(OpDef):
    """``Out``: the rows of X that belong to sequences with a step ``I``; they come first."""

    type = "shrink_rnn_memory"
    inputs = ("X", "RankTable", "I")
    gradient = Gradient("X", "Out@GRAD?", outputs=("X@GRAD",), lod="X")

    @staticmethod
    def infer(x: Spec, table: Spec, i: Spec) -> Spec:
        return Spec(x.shape, x.dtype, x.lod_level)

    @staticmethod
    def forward(ctx: Context, x: Array, table: RankTable, i: Array) -> Array:
        step = int(i.item())
        count = sum(length > step for length in table.lengths)
        lod = ctx.lod("X")
        if not lod:
            return x[:count]
        rows, shrunk = pick_sequences(x, lod, list(range(count)))
        ctx.set_lod("Out", shrunk)
        return rows

    @staticmethod
    def backward(ctx: Context, x: Array, d_out: Array | None) -> Array:
        ctx.set_lod("X@GRAD", ctx.lod("X"))
        d_x = np.zeros_like(x)
        if d_out is not None:
            d_x[: len(d_out)] = d_out
        return d_x


# Order


@register
class ReorderLodTensorByRank(OpDef):
    """``Out``: the sequences of X (its rows, without a LoD) in the order of the table."""

    type = "reorder_lod_tensor_by_rank"
    inputs = ("X", "RankTable")

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return an operator that restores the order of X."""
        (grad,) = _make_inverse(op, "reorder_lod_tensor_by_rank_grad")
        return [grad._replace(own_attrs=True)]

    @staticmethod
    def infer(x: Spec, table: Spec) -> Spec:
        return Spec(x.shape, x.dtype, x.lod_level)

    @staticmethod
    def forward(ctx: Context, x: Array, table: RankTable) -> Array:
        out, lod = pick_sequences(x, ctx.lod("X"), table.order)
        ctx.set_lod("Out", lod)
        return out


@register
class ReorderLodTensorByRankGrad(OpDef):
    """Gradient of ``reorder_lod_tensor_by_rank``: restores the order."""

    type = "reorder_lod_tensor_by_rank_grad"
    inputs = ("X", "RankTable")

    @staticmethod
    def infer(x: Spec, table: Spec) -> Spec:
        return Spec(x.shape, x.dtype, x.lod_level)

    @staticmethod
    def forward(ctx: Context, x: Array, table: RankTable) -> Array:
        out, back = pick_sequences(x, find_lod(ctx, "X"), np.argsort(table.order).tolist())
        ctx.set_lod("Out", back)
        return out


@register
class SplitLodTensor(OpDef):
    """``OutTrue``: the rows (or sequences) of X where Mask is true; ``OutFalse``: the others."""

    type = "split_lod_tensor"
    inputs = ("X", "Mask")
    outputs = ("OutTrue", "OutFalse")
    attrs = {"level": Int(0)}

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return an operator that merges the gradients of both."""
        inputs = {
            "X": op.input("X"),
            "Mask": op.input("Mask"),
            "InTrue": grad_names(op.output("OutTrue")),
            "InFalse": grad_names(op.output("OutFalse")),
        }
        outputs = {"Out": grad_names(op.input("X"))}
        return [GradOp("merge_lod_tensor", inputs, outputs, {"level": op.attrs["level"]})]

    infer = same_shape("X")

    @staticmethod
    def forward(ctx: Context, x: Array, mask: Array, *, level: int) -> tuple[Array, Array]:
        chosen = _read_mask(ctx, mask)
        lod = ctx.lod("X")[level:]
        parts = []
        for slot, rows_of_slot in (("OutTrue", chosen), ("OutFalse", ~chosen)):
            rows, finer = pick_sequences(x, lod, np.flatnonzero(rows_of_slot).tolist())
            ctx.set_lod(slot, finer)
            parts.append(rows)
        return parts[0], parts[1]


class _Merge(OpDef):
    """``Out``: rows (or sequences) of InTrue where Mask is true, of InFalse where it is false."""

    inputs = ("X", "Mask", "InTrue", "InFalse")
    attrs = {"level": Int(0)}

    @staticmethod
    def infer(x: Spec, mask: Spec, in_true: Spec, in_false: Spec) -> Spec:
        return Spec(in_true.shape, in_true.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, mask: Array, in_true: Array, in_false: Array, *, level: int) -> Array:
        chosen = _read_mask(ctx, mask)
        indices = np.empty(len(chosen), np.int64)
        indices[chosen] = np.arange(chosen.sum())
        indices[~chosen] = np.arange(chosen.sum(), len(chosen))
        lods = [lod for lod in (ctx.lod("InTrue"), ctx.lod("InFalse")) if lod]
        parts = [part for part in (in_true, in_false) if len(part)] or [in_true]
        lod = join_lods(lods) if lods else []
        rows, finer = pick_sequences(np.concatenate(parts), lod, indices.tolist())
        ctx.set_lod("Out", finer)
        return rows


def _read_mask(ctx: Context, mask: Array) -> Array:
    """Return the mask as one row; raise EnforceNotMet unless it is bool."""
    if mask.dtype != np.bool_:
        raise EnforceNotMet(f"{ctx.op.type}: Mask must be bool, one for each row; got {mask.dtype}")
    return mask.reshape(-1)


@register
class MergeLodTensor(_Merge):
    __doc__ = _Merge.__doc__
    type = "merge_lod_tensor"

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return an operator that splits the gradient."""
        inputs = {"X": grad_names(op.output("Out")), "Mask": op.input("Mask")}
        outputs = {
            "OutTrue": grad_names(op.input("InTrue")),
            "OutFalse": grad_names(op.input("InFalse")),
        }
        return [GradOp("split_lod_tensor", inputs, outputs, {"level": op.attrs["level"]})]


@register
class MergeLodTensorInfer(_Merge):
    __doc__ = _Merge.__doc__
    type = "merge_lod_tensor_infer"
