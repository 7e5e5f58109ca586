"""Projection and recurrent unit in one operator: fusion_gru, fusion_lstm, fused_embedding_fc_lstm."""

from __future__ import annotations

from typing import Any

from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Context, OpDef, Spec, String, register
from paddlelike.ops.kernels.lod import read_last_level
from paddlelike.ops.kernels.recurrent import gru as gru_steps, lstm as lstm_steps
from paddlelike.ops.kernels.recurrent.steps import Steps, order_initial_rows, scatter_rows
from paddlelike.ops.operands import can_be_equal


class _GruAttrs(Attrs):
    activation: str = String("tanh")
    gate_activation: str = String("sigmoid")
    is_reverse: bool = Bool(False)
    use_seq: bool = Bool(True)


@register
class FusionGru(OpDef):
    """``gru`` of ``X WeightX``: Hidden ``(T, D)`` along the sequences of X ``(T, M)``.

    WeightX ``(M, 3 D)``, WeightH ``(D, 3 D)``, Bias ``(1, 3 D)``, H0 ``(N, D)``. XX is the projected input;
    the other outputs are buffers of Paddle's kernel and get no value. As in Paddle 1.8, ``origin_mode`` has
    no effect.
    """

    type = "fusion_gru"
    inputs = ("X", "H0?", "WeightX", "WeightH", "Bias?")
    outputs = ("ReorderedH0", "XX", "BatchedInput", "BatchedOut", "Hidden")
    attrs = _GruAttrs.table(origin_mode=Bool(False))
    lod = {"XX": "X", "Hidden": "X"}

    @classmethod
    def infer(
        cls, x: Spec, h0: Spec | None, wx: Spec, wh: Spec, bias: Spec | None, *, attrs: _GruAttrs
    ) -> tuple[Any, ...]:
        _check(cls.type, x, wx, wh, 3)
        width = wx.shape[1] // 3
        projected = Spec((x.shape[0], _count_columns(x, 3 * width, use_seq=attrs.use_seq)), x.dtype)
        return None, projected, None, None, Spec((x.shape[0], width), x.dtype)

    @classmethod
    def forward(
        cls,
        ctx: Context,
        x: Array,
        h0: Array | None,
        wx: Array,
        wh: Array,
        bias: Array | None,
        *,
        attrs: _GruAttrs,
    ) -> tuple[Any, ...]:
        projected = x.reshape(len(x), -1) @ wx
        if bias is not None:
            projected += bias
        cell = gru_steps.make_cell(cls.type, wh, attrs.gate_activation, attrs.activation, False)
        steps = Steps.of(read_last_level(ctx, "X", len(x)), reverse=attrs.is_reverse)
        first = order_initial_rows(h0, steps, len(wh), x.dtype)
        _, _, hidden = gru_steps.run_steps(cell, steps, projected, None, first)
        return None, projected, None, None, scatter_rows(hidden, steps.rows)


class _LstmAttrs(lstm_steps.LstmAttrs):
    use_seq: bool = Bool(True)


@register
class FusionLstm(OpDef):
    """``lstm`` of ``X WeightX``: Hidden and Cell ``(T, D)`` along the sequences of X ``(T, M)``.

    WeightX ``(M, 4 D)``, WeightH ``(D, 4 D)``, Bias ``(1, 4 D)``, or ``(1, 7 D)`` with peepholes; H0 and C0
    ``(N, D)``. XX is the projected input; the other outputs are buffers of Paddle's kernel and get no value.
    """

    type = "fusion_lstm"
    inputs = ("X", "WeightX", "WeightH", "Bias", "H0?", "C0?")
    outputs = (
        "Hidden", "Cell", "XX", "BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0",
        "CheckedCell",
    )  # fmt: skip
    fluid_order = "use_peepholes is_reverse use_seq gate_activation cell_activation candidate_activation"
    attrs = _LstmAttrs.table()
    lod = {"Hidden": "X", "Cell": "X", "XX": "X"}

    @classmethod
    def infer(
        cls, x: Spec, wx: Spec, wh: Spec, bias: Spec, h0: Spec | None, c0: Spec | None, *, attrs: _LstmAttrs
    ) -> tuple[Any, ...]:
        _check(cls.type, x, wx, wh, 4)
        width = wx.shape[1] // 4
        out = Spec((x.shape[0], width), x.dtype)
        columns = _count_columns(x, 4 * width, use_seq=attrs.use_seq)
        return out, out, Spec((x.shape[0], columns), x.dtype), *(None,) * 6

    @classmethod
    def forward(
        cls,
        ctx: Context,
        x: Array,
        wx: Array,
        wh: Array,
        bias: Array,
        h0: Array | None,
        c0: Array | None,
        *,
        attrs: _LstmAttrs,
    ) -> tuple[Any, ...]:
        projected = x.reshape(len(x), -1) @ wx
        projected += bias.reshape(-1)[: wx.shape[1]]
        hidden, cell = _run_lstm(ctx, "X", projected, wh, bias, (h0, c0), attrs)
        return hidden, cell, projected, *(None,) * 6


@register
class FusedEmbeddingFcLstm(OpDef):
    """``lstm`` whose projected input is a row of Embeddings for each of Ids: Hidden and Cell ``(T, D)``.

    Ids ``(T, 1)`` int64 has one level of LoD. Embeddings ``(V, 4 D)`` is a table of words, already multiplied
    by the weight of the projection and with the biases added. So a Bias ``(1, 4 D)`` is not read, and a Bias
    ``(1, 7 D)`` only for its peepholes. WeightH is ``(D, 4 D)``, H0 and C0 ``(N, D)``.
    """

    type = "fused_embedding_fc_lstm"
    inputs = ("Ids", "Embeddings", "WeightH", "Bias", "H0?", "C0?")
    outputs = (
        "Hidden", "Cell", "XX", "BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0"
    )  # fmt: skip
    fluid_order = "use_peepholes is_reverse use_seq gate_activation cell_activation candidate_activation"
    attrs = _LstmAttrs.table()
    lod = {"Hidden": "Ids", "Cell": "Ids", "XX": "Ids"}

    @classmethod
    def infer(
        cls, ids: Spec, table: Spec, wh: Spec, bias: Spec, h0: Spec | None, c0: Spec | None
    ) -> tuple[Any, ...]:
        width = table.shape[1] // 4
        if len(wh.shape) != 2 or wh.shape != (width, 4 * width):
            raise ShapeError(
                f"{cls.type}: Embeddings has shape {table.shape} and WeightH {wh.shape}; expected (V, 4 D) "
                "and (D, 4 D)"
            )
        out = Spec((ids.shape[0], width), table.dtype)
        return out, out, Spec((ids.shape[0], 4 * width), table.dtype), *(None,) * 5

    @classmethod
    def forward(
        cls,
        ctx: Context,
        ids: Array,
        table: Array,
        wh: Array,
        bias: Array,
        h0: Array | None,
        c0: Array | None,
        *,
        attrs: _LstmAttrs,
    ) -> tuple[Any, ...]:
        rows = ids.reshape(-1)
        if len(rows) and not (rows.min() >= 0 and rows.max() < len(table)):
            raise EnforceNotMet(
                f"{cls.type}: Ids are in [{rows.min()}, {rows.max()}], the table has {len(table)} rows"
            )
        projected = table[rows]
        hidden, cell = _run_lstm(ctx, "Ids", projected, wh, bias, (h0, c0), attrs)
        return hidden, cell, projected, *(None,) * 5


def _check(op: str, x: Spec, wx: Spec, wh: Spec, gates: int) -> None:
    """Raise ShapeError unless the weights fit each other and X."""
    width = wx.shape[1] // gates
    columns = x.shape[-1]
    fits = len(wx.shape) == len(wh.shape) == 2 and wh.shape == (width, gates * width)
    if not fits or not can_be_equal(columns, wx.shape[0]):
        raise ShapeError(
            f"{op}: X has shape {x.shape}, WeightX {wx.shape} and WeightH {wh.shape}; expected (T, M), "
            f"(M, {gates} D) and (D, {gates} D)"
        )


def _count_columns(x: Spec, projected: int, *, use_seq: bool) -> int:
    """Return how many columns Paddle declares for XX, which without ``use_seq`` may hold the input as
    well.
    """
    return projected if use_seq else min(x.shape[-1], projected)


def _run_lstm(
    ctx: Context,
    source: str,
    projected: Array,
    wh: Array,
    bias: Array,
    initial: tuple[Array | None, Array | None],
    attrs: _LstmAttrs,
) -> tuple[Array, Array]:
    """Return Hidden and Cell for the projected input along the sequences of a slot."""
    cell = lstm_steps.make_cell(ctx.op.type, wh, bias, attrs)
    steps = Steps.of(read_last_level(ctx, source, len(projected)), reverse=attrs.is_reverse)
    first = lstm_steps.order_initial(cell, steps, *initial, wh.dtype)
    ran = lstm_steps.run_steps(cell, steps, projected, first)
    return scatter_rows(ran.hidden, steps.rows), scatter_rows(ran.cell, steps.rows)
