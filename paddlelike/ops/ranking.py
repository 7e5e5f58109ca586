"""Operators of ranking: counts of shows and clicks beside an embedding, and tags of instances."""

from __future__ import annotations

import itertools

import numpy as np

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import OWN, Array, Bool, Context, Gradient, Long, OpDef, Spec, register
from paddlelike.ops.kernels.lod import expand_ranges, make_lod, read_levels


@register
class Cvm(OpDef):
    """``Y``: X with the logarithms of its first two columns, or without these columns.

    X ``(N, D)`` begins with the counts of shows and of clicks; with ``use_cvm`` these become ``log(show +
    1)`` and ``log(click + 1) - log(show + 1)``. As in Paddle, CVM ``(N, 2)``, with one row per sequence,
    replaces the gradient of the first two columns: the parameter server counts by it.
    """

    type = "cvm"
    by_row = True
    inputs = ("X", "CVM")
    outputs = ("Y",)
    attrs = {"use_cvm": Bool(True)}
    gradient = Gradient("X", "CVM", "Y@GRAD", outputs=("X@GRAD",), lod=OWN)
    lod = "X"

    @staticmethod
    def infer(x: Spec, cvm: Spec, *, use_cvm: bool) -> Spec:
        if len(x.shape) != 2 or 0 <= x.shape[1] < 2:
            raise ShapeError(f"cvm: X has shape {x.shape}; it needs (N, D) with two columns or more")
        return Spec((x.shape[0], x.shape[1] if use_cvm else x.shape[1] - 2), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, cvm: Array, *, use_cvm: bool) -> Array:
        if not use_cvm:
            return x[:, 2:].copy()
        out = x.copy()
        out[:, :2] = np.log(x[:, :2] + x.dtype.type(1))
        out[:, 1] -= out[:, 0]
        return out

    @staticmethod
    def backward(ctx: Context, x: Array, cvm: Array, d_out: Array, *, use_cvm: bool) -> Array:
        lod = ctx.lod("X")
        lengths = np.diff(lod[0]) if lod else np.ones(len(x), np.int64)
        if len(cvm) < len(lengths) or lengths.sum() != len(x):
            raise EnforceNotMet(
                f"cvm: X has {len(x)} rows in {len(lengths)} sequences, CVM has {len(cvm)} rows",
                hint="CVM needs one row for each sequence, or for each row of X without LoD",
            )
        dx = np.empty_like(x)
        dx[:, :2] = np.repeat(cvm[: len(lengths)], lengths, axis=0)
        dx[:, 2:] = d_out[:, 2:] if use_cvm else d_out
        return dx


@register
class FilterByInstag(OpDef):
    """``Out``: the instances of Ins with a tag of Filter_tag.

    An instance is a row of Ins ``(N, D)`` or, if ``is_lod``, a sequence. Ins_tag ``(T, 1)`` int64 has one
    sequence of tags per instance; Filter_tag is ``(F,)`` int64. LossWeight ``(M, 1)`` is 1 for each of the M
    instances that are left. IndexMap ``(M, 3)`` holds their starts in Out and in Ins, and their lengths. When
    no instance is left, Out is one row of ``out_val_if_empty`` with a LossWeight of 0.
    """

    type = "filter_by_instag"
    until = "1"
    inputs = ("Ins", "Ins_tag", "Filter_tag")
    outputs = ("Out", "LossWeight", "IndexMap")
    attrs = {"is_lod": Bool(), "out_val_if_empty": Long(0)}
    gradient = Gradient("IndexMap", "LossWeight", "Ins", "Out@GRAD", outputs=("Ins@GRAD",), lod_in_run=OWN)

    @staticmethod
    def infer(ins: Spec, tags: Spec, wanted: Spec) -> tuple[Spec, Spec, Spec]:
        if len(ins.shape) != 2:
            raise ShapeError(f"filter_by_instag: Ins has shape {ins.shape}; it needs (N, D)")
        # As the layer declares them: LossWeight holds float32, IndexMap has three columns.
        return Spec((-1, ins.shape[1]), ins.dtype), Spec((-1, 1), VarType.FP64), Spec((-1, 2), tags.dtype)

    @staticmethod
    def forward(
        ctx: Context, ins: Array, tags: Array, wanted: Array, *, is_lod: bool, out_val_if_empty: int
    ) -> tuple[Array, Array, Array]:
        offsets = np.array(read_levels(ctx, "Ins")[0] if is_lod else range(len(ins) + 1), np.int64)
        of_tags = read_levels(ctx, "Ins_tag")[0]
        if len(of_tags) != len(offsets):
            raise EnforceNotMet(
                f"filter_by_instag: {len(offsets) - 1} instances, {len(of_tags) - 1} sequences of Ins_tag",
                hint="Ins_tag needs one sequence of tags for each instance",
            )
        found = np.isin(tags.reshape(-1), wanted)
        kept = np.flatnonzero([found[a:b].any() for a, b in itertools.pairwise(of_tags)])
        if not len(kept):
            for slot in ("Out", "LossWeight", "IndexMap"):
                ctx.set_lod(slot, [[0, 1]])
            out = np.full((1, ins.shape[1]), out_val_if_empty, ins.dtype)
            return out, np.zeros((1, 1), np.float32), np.array([[0, 1, 1]], np.int64)
        lengths = np.diff(offsets)[kept]
        starts = make_lod(lengths)
        ctx.set_lod("Out", [starts])
        for slot in ("LossWeight", "IndexMap"):
            ctx.set_lod(slot, [list(range(len(kept) + 1))])
        places = np.column_stack([starts[:-1], offsets[kept], lengths]).astype(np.int64)
        return ins[expand_ranges(offsets[kept], lengths)], np.ones((len(kept), 1), np.float32), places

    @staticmethod
    def backward(ctx: Context, places: Array, weight: Array, ins: Array, d_out: Array) -> Array:
        d_ins = np.zeros_like(ins)
        if weight.size != 1 or weight.reshape(-1)[0] != 0:
            d_ins[expand_ranges(places[:, 1], places[:, 2])] = d_out
        return d_ins
