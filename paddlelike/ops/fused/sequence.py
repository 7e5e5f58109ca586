"""Sequence operators joined with their neighbours: convolutions, pools and expansions with projections."""

from __future__ import annotations

from typing import Any

import numpy as np

from paddlelike.core import SelectedRows, VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Context,
    Gradient,
    Int,
    Long,
    OpDef,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.lod import index_sequences, read_last_level
from paddlelike.ops.kernels.recurrent.steps import find_activation


def _pool(op: str, x: Array, offsets: Array, kind: str) -> Array:
    """Return the sum of each sequence, divided by its length (AVERAGE) or by the root of its length
    (SQRT).
    """
    lengths = np.diff(offsets)
    out = np.zeros((len(lengths), *x.shape[1:]), x.dtype)
    full = lengths > 0
    if full.any():
        out[full] = np.add.reduceat(x, offsets[:-1][full], axis=0)
    if kind == "SUM":
        return out
    if kind not in ("AVERAGE", "SQRT"):
        raise EnforceNotMet(f"{op}: pooltype is {kind!r}, expected SUM, AVERAGE or SQRT")
    by = np.maximum(lengths if kind == "AVERAGE" else np.sqrt(lengths), 1).astype(x.dtype)
    return out / by.reshape(-1, *(1,) * (x.ndim - 1))


def _pool_all(ctx: Context, xs: list[Array], kind: str) -> list[Array]:
    return [_pool(ctx.op.type, x, read_last_level(ctx, "X", len(x), i), kind) for i, x in enumerate(xs)]


def _join(ctx: Context, pooled: list[Array]) -> Array:
    """Concatenate the columns; every row is a sequence of its own, as in Paddle."""
    out = np.concatenate(pooled, 1)
    ctx.set_lod("Out", [list(range(len(out) + 1))])
    return out


@register
class FusionSeqPoolConcat(OpDef):
    """``Out``: the sequences of each X ``(T, D)``, pooled by ``pooltype``, side by side."""

    type = "fusion_seqpool_concat"
    inputs = ("X*",)
    attrs = {"pooltype": String("SUM"), "axis": Int(1)}

    @staticmethod
    def infer(xs: list[Spec], *, axis: int) -> Spec:
        if axis != 1 or not xs or any(len(x.shape) != 2 for x in xs):
            raise ShapeError(
                f"fusion_seqpool_concat: axis is {axis}, X have shapes {[x.shape for x in xs]}; expected "
                "axis 1 and two dims each"
            )
        return Spec((-1, sum(x.shape[1] for x in xs)), xs[0].dtype, 1)

    @staticmethod
    def forward(ctx: Context, xs: list[Array], *, pooltype: str) -> Array:
        return _join(ctx, _pool_all(ctx, xs, pooltype))


@register
class FusionSeqPoolCvmConcat(OpDef):
    """``Out``: pooled sequences of each X ``(T, D)``, side by side, the first two columns as in cvm.

    The input CVM is not read.
    """

    type = "fusion_seqpool_cvm_concat"
    inputs = ("X*", "CVM")
    attrs = {"pooltype": String("SUM"), "use_cvm": Bool(True), "axis": Int(1)}

    @staticmethod
    def infer(xs: list[Spec], cvm: Spec, *, axis: int, use_cvm: bool) -> Spec:
        if axis != 1 or not use_cvm or not xs or any(len(x.shape) != 2 for x in xs):
            raise ShapeError(
                f"fusion_seqpool_cvm_concat: axis is {axis}, use_cvm {use_cvm}, X have shapes "
                f"{[x.shape for x in xs]}; expected axis 1, use_cvm, and two dims each"
            )
        return Spec((-1, sum(x.shape[1] for x in xs)), xs[0].dtype)

    @staticmethod
    def forward(ctx: Context, xs: list[Array], cvm: Array, *, pooltype: str) -> Array:
        pooled = _pool_all(ctx, xs, pooltype)
        for each in pooled:
            each[:, :2] = np.log(each[:, :2] + each.dtype.type(1))
            each[:, 1] -= each[:, 0]
        return _join(ctx, pooled)


@register
class FusedEmbeddingSeqPool(OpDef):
    """``Out``: the sum of the rows of W for each sequence of Ids.

    W is ``(V, D)``; Ids ``(T, K)`` int64 has one level of LoD. Out is ``(N, K D)``, with D columns for each
    column of Ids. Rows of ``padding_idx`` count as 0.
    """

    type = "fused_embedding_seq_pool"
    inputs = ("W", "Ids")
    attrs = {
        "combiner": String("sum"),
        "padding_idx": Long(-1),
        "grad_inplace": Bool(False),
        "is_sparse": Bool(False),
        "@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@": Bool(True),
    }
    gradient = Gradient("W", "Ids", "Out@GRAD", outputs=("W@GRAD",))

    @staticmethod
    def infer(w: Spec, ids: Spec, *, combiner: str) -> Spec:
        if combiner != "sum" or len(w.shape) != 2 or len(ids.shape) != 2:
            raise ShapeError(
                f"fused_embedding_seq_pool: combiner is {combiner!r}, W has shape {w.shape}, "
                f"Ids {ids.shape}; expected sum and two dims each"
            )
        return Spec((-1, ids.shape[1] * w.shape[1]), w.dtype)

    @staticmethod
    def infer_grad(slot: str, spec: Spec, attrs: Any) -> Spec:
        kind = VarType.SELECTED_ROWS if attrs["is_sparse"] else VarType.LOD_TENSOR
        return spec._replace(kind=kind)

    @staticmethod
    def forward(ctx: Context, w: Array, ids: Array, *, padding_idx: int) -> Array:
        rows = w[_check_ids(ids, len(w), padding_idx)]
        rows[ids == padding_idx] = 0
        offsets = read_last_level(ctx, "Ids", len(ids))
        return _pool("fused_embedding_seq_pool", rows.reshape(len(ids), -1), offsets, "SUM")

    @staticmethod
    def backward(
        ctx: Context, w: Array, ids: Array, d_out: Array, *, is_sparse: bool, padding_idx: int
    ) -> Array | SelectedRows:
        offsets = read_last_level(ctx, "Ids", len(ids))
        each = d_out[index_sequences(offsets)].reshape(-1, w.shape[1])
        flat = _check_ids(ids, len(w), padding_idx).reshape(-1)
        each[ids.reshape(-1) == padding_idx] = 0
        if is_sparse:
            return SelectedRows(flat.tolist(), len(w), each)
        dw = np.zeros_like(w)
        np.add.at(dw, flat, each)
        return dw


def _check_ids(ids: Array, count: int, padding: int) -> Array:
    """Return the ids, with 0 in place of padding. Raises EnforceNotMet for other ids outside the table."""
    known = np.where(ids == padding, 0, ids)
    if known.size and not (known.min() >= 0 and known.max() < count):
        raise EnforceNotMet(
            f"fused_embedding_seq_pool: Ids are in [{known.min()}, {known.max()}], W has {count} rows"
        )
    return known


class _ConvAttrs(Attrs):
    contextLength: int = Int()  # noqa: N815  (Paddle's names)
    contextStart: int = Int(0)  # noqa: N815
    contextStride: int = Int(1)  # noqa: N815


@register
class FusionSeqConvEltAddRelu(OpDef):
    """``Out = relu(rows Filter + Bias)``: ``contextLength`` rows of a sequence of X from ``contextStart`` on.

    X is ``(T, D)``, Filter ``(contextLength D, M)``, Bias ``(M,)``, Out ``(T, M)``. ColMat holds the rows
    side by side, with zeros outside of the sequence.
    """

    type = "fusion_seqconv_eltadd_relu"
    inputs = ("X", "Filter", "Bias")
    outputs = ("Out", "ColMat")
    attrs = _ConvAttrs.table()
    lod = {"Out": "X"}

    @classmethod
    def infer(cls, x: Spec, w: Spec, bias: Spec, *, attrs: _ConvAttrs) -> tuple[Spec, Spec]:
        if attrs.contextStride != 1 or w.shape[0] != x.shape[1] * attrs.contextLength:
            raise ShapeError(
                f"{cls.type}: X has shape {x.shape}, Filter {w.shape}, contextLength {attrs.contextLength}, "
                f"contextStride {attrs.contextStride}; expected (T, D), (contextLength D, M) and stride 1"
            )
        return Spec((x.shape[0], w.shape[1]), x.dtype), Spec((x.shape[0], w.shape[0]), x.dtype)

    @staticmethod
    def forward(ctx: Context, x: Array, w: Array, bias: Array, *, attrs: _ConvAttrs) -> tuple[Array, Array]:
        offsets = read_last_level(ctx, "X", len(x))
        owner = index_sequences(offsets)
        starts, ends = offsets[:-1][owner], offsets[1:][owner]
        columns = np.zeros((len(x), attrs.contextLength, x.shape[1]), x.dtype)
        for i in range(attrs.contextLength):
            row = np.arange(len(x)) + attrs.contextStart + i
            inside = (row >= starts) & (row < ends)
            columns[inside, i] = x[row[inside]]
        flat = columns.reshape(len(x), attrs.contextLength * x.shape[1])
        out = flat @ w
        out += bias.reshape(-1)
        return np.maximum(out, 0, out=out), flat


@register
class FusionSeqExpandConcatFc(OpDef):
    """``Out = act([X[0], rows of the others] FCWeight + FCBias)``: rows are repeated along X[0]'s sequences.

    X[0] ``(T, D0)`` has one level of LoD, the others are ``(N, D)``; FCWeight ``(D0 + ..., M)``.
    """

    type = "fusion_seqexpand_concat_fc"
    inputs = ("X*", "FCWeight", "FCBias?")
    outputs = ("Out", "FCOut")
    attrs = {"fc_activation": String("identity")}
    lod = {"Out": "X"}

    @classmethod
    def infer(cls, xs: list[Spec], w: Spec, bias: Spec | None) -> tuple[Spec, None]:
        columns = sum(x.shape[1] for x in xs)
        if len(xs) < 2 or columns != w.shape[0]:
            raise ShapeError(
                f"{cls.type}: X have shapes {[x.shape for x in xs]}, FCWeight {w.shape}; expected at "
                f"least two X, and FCWeight with {columns} rows"
            )
        return Spec((xs[0].shape[0], w.shape[1]), xs[0].dtype), None

    @classmethod
    def forward(
        cls, ctx: Context, xs: list[Array], w: Array, bias: Array | None, *, fc_activation: str
    ) -> tuple[Array, None]:
        owner = index_sequences(read_last_level(ctx, "X", len(xs[0])))
        joined = np.concatenate([xs[0], *(x[owner] for x in xs[1:])], 1)
        out = joined @ w
        if bias is not None:
            out += bias.reshape(-1)
        return find_activation(cls.type, "fc_activation", fc_activation).apply(out), None
