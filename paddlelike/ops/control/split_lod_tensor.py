"""Operators that divide rows between two branches and merge the results, for IfElse."""

from __future__ import annotations

import numpy as np

from paddlelike.errors import EnforceNotMet
from paddlelike.framework.opdef import Array, Context, GradOp, Int, OpDef, OpView, Spec, grad_name, register
from paddlelike.ops.kernels.lod import join_lods, pick_sequences
from paddlelike.ops.operands import same_shape


@register
class SplitLodTensor(OpDef):
    """The rows (or sequences) of X where Mask is true in ``OutTrue``, the others in ``OutFalse``."""

    type = "split_lod_tensor"
    inputs = ("X", "Mask")
    outputs = ("OutTrue", "OutFalse")
    attrs = {"level": Int(0)}
    context = True

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return an operator that merges the gradients of both."""
        inputs = {
            "X": op.input("X"),
            "Mask": op.input("Mask"),
            "InTrue": [grad_name(name) for name in op.output("OutTrue")],
            "InFalse": [grad_name(name) for name in op.output("OutFalse")],
        }
        outputs = {"Out": [grad_name(name) for name in op.input("X")]}
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
    """``Out``: the rows (or sequences) of InTrue where Mask is true, those of InFalse where it is not."""

    inputs = ("X", "Mask", "InTrue", "InFalse")
    attrs = {"level": Int(0)}
    context = True

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
        raise EnforceNotMet(f"{ctx.op.type}: Mask is bool, one for each row; got {mask.dtype}")
    return mask.reshape(-1)


@register
class MergeLodTensor(_Merge):
    __doc__ = _Merge.__doc__
    type = "merge_lod_tensor"

    @classmethod
    def make_grad(cls, op: OpView) -> list[GradOp]:
        """Return an operator that splits the gradient."""
        inputs = {"X": [grad_name(name) for name in op.output("Out")], "Mask": op.input("Mask")}
        outputs = {
            "OutTrue": [grad_name(name) for name in op.input("InTrue")],
            "OutFalse": [grad_name(name) for name in op.input("InFalse")],
        }
        return [GradOp("split_lod_tensor", inputs, outputs, {"level": op.attrs["level"]})]


@register
class MergeLodTensorInfer(_Merge):
    __doc__ = _Merge.__doc__
    type = "merge_lod_tensor_infer"
