"""Gated recurrent units: gru along sequences, gru_unit for one step. Cho et al. 2014."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import (
    Array,
    Attrs,
    Bool,
    Context,
    Gradient,
    Int,
    OpDef,
    Shapes,
    Spec,
    String,
    register,
)
from paddlelike.ops.kernels.lod import read_last_level
from paddlelike.ops.kernels.recurrent.gru import GruCell, make_cell, run_steps, run_steps_back
from paddlelike.ops.kernels.recurrent.steps import (
    ACTIVATIONS,
    Steps,
    order_initial_rows,
    restore_initial_gradient,
    scatter_rows,
)
from paddlelike.ops.operands import can_be_equal

_BY_INDEX: Final = ("identity", "sigmoid", "tanh", "relu")  # as gru_unit's attributes have it


def _check_width(op: str, x: Spec, weight: Spec, bias: Spec | None) -> int:
    """Return the width H; raise ShapeError when the shapes do not fit."""
    width = weight.shape[0]
    fits = len(x.shape) == len(weight.shape) == 2 and weight.shape[1] == 3 * width
    fits = fits and can_be_equal(x.shape[1], 3 * width)
    if not fits or (bias is not None and tuple(bias.shape) != (1, 3 * width)):
        shown = "none" if bias is None else list(bias.shape)
        raise ShapeError(
            f"{op}: Input is {list(x.shape)}, Weight {list(weight.shape)}, Bias {shown}; expected "
            "(T, 3 H), (H, 3 H), (1, 3 H)",
            hint="the input must be projected: the layer before has 3 times the width of the unit",
        )
    return width


class GruAttrs(Attrs):
    """Attributes of gru."""

    activation: str = String("tanh")
    gate_activation: str = String("sigmoid")
    is_reverse: bool = Bool(False)
    origin_mode: bool = Bool(False)


@register
class Gru(OpDef):
    """``h = (1 - u) h' + u c`` along every sequence; with ``origin_mode`` ``h = u h' + (1 - u) c``.

    h' is the previous h. Input (T, 3H) is the projected input x. The update gate is ``u = gate_act(x_u + h'
    W_u + b_u)``, the reset gate r likewise, the candidate ``c = act(x_c + (r h') W_c + b_c)``. H0 (sequences,
    H) is the first h'.
    """

    type = "gru"
    inputs = ("Input", "H0?", "Weight", "Bias?")
    outputs = ("BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden")
    attrs = GruAttrs.table()
    lod = {"Hidden": "Input"}
    gradient = Gradient(
        "Hidden@GRAD", "Input", "H0", "Weight", "Bias",
        "BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden",
        outputs=("Input@GRAD", "H0@GRAD", "Weight@GRAD", "Bias@GRAD"),
    )  # fmt: skip

    @staticmethod
    def infer(x: Spec, h0: Spec | None, weight: Spec, bias: Spec | None) -> tuple[Spec, Spec, Spec, Spec]:
        width = _check_width("gru", x, weight, bias)
        out = Spec((x.shape[0], width), x.dtype)
        return Spec(x.shape, x.dtype), out, out, out

    @staticmethod
    def count_products(shapes: Shapes, attrs: Mapping[str, Any]) -> int:
        return math.prod(shapes["Input"]) * shapes["Weight"][0]

    @staticmethod
    def forward(
        ctx: Context, x: Array, h0: Array | None, weight: Array, bias: Array | None, *, attrs: GruAttrs
    ) -> tuple[Array, Array, Array, Array]:
        cell = make_cell("gru", weight, attrs.gate_activation, attrs.activation, attrs.origin_mode)
        steps = Steps.of(read_last_level(ctx, "Input", len(x)), reverse=attrs.is_reverse)
        first = order_initial_rows(h0, steps, len(weight), x.dtype)
        gates, reset_last, hidden = run_steps(cell, steps, x, bias, first)
        return gates, reset_last, hidden, scatter_rows(hidden, steps.rows)

    @staticmethod
    def backward(
        ctx: Context,
        d_out: Array,
        x: Array,
        h0: Array | None,
        weight: Array,
        bias: Array | None,
        gates: Array,
        reset_last: Array,
        hidden: Array,
        out: Array,
        *,
        attrs: GruAttrs,
    ) -> tuple[Array | None, ...]:
        cell = make_cell("gru", weight, attrs.gate_activation, attrs.activation, attrs.origin_mode)
        steps = Steps.of(read_last_level(ctx, "Input", len(x)), reverse=attrs.is_reverse)
        last = steps.before(hidden, order_initial_rows(h0, steps, len(weight), x.dtype))
        d_gates, d_next = run_steps_back(cell, steps, gates, last, d_out.take(steps.rows, axis=0))
        return (
            scatter_rows(d_gates, steps.rows),
            restore_initial_gradient(d_next, steps, h0),
            cell.weight_gradient(d_gates, last, reset_last),
            None if bias is None else d_gates.sum(0, keepdims=True),
        )


@register
class GruUnit(OpDef):
    """One step of ``gru``: Input (N, 3H) and HiddenPrev (N, H) give Hidden (N, H).

    Activations are numbers: 0 identity, 1 sigmoid, 2 tanh, 3 relu.
    """

    type = "gru_unit"
    by_row = True
    inputs = ("Input", "HiddenPrev", "Weight", "Bias?")
    outputs = ("Gate", "ResetHiddenPrev", "Hidden")
    attrs = {"activation": Int(2), "gate_activation": Int(1), "origin_mode": Bool(False)}
    gradient = Gradient(
        "Hidden@GRAD", "Input", "HiddenPrev", "Weight", "Bias", "Gate", "ResetHiddenPrev",
        outputs=("Input@GRAD", "HiddenPrev@GRAD", "Weight@GRAD", "Bias@GRAD"),
    )  # fmt: skip

    @staticmethod
    def infer(x: Spec, last: Spec, weight: Spec, bias: Spec | None) -> tuple[Spec, Spec, Spec]:
        width = _check_width("gru_unit", x, weight, bias)
        if len(last.shape) != 2 or not can_be_equal(last.shape[1], width):
            raise ShapeError(f"gru_unit: HiddenPrev is {list(last.shape)}, expected (N, {width})")
        out = Spec((x.shape[0], width), x.dtype)
        return Spec((x.shape[0], 3 * width), x.dtype), out, out

    @staticmethod
    def forward(
        x: Array,
        last: Array,
        weight: Array,
        bias: Array | None,
        *,
        activation: int,
        gate_activation: int,
        origin_mode: bool,
    ) -> tuple[Array, Array, Array]:
        cell = _make_indexed_cell(weight, gate_activation, activation, origin_mode)
        return run_steps(cell, Steps.side_by_side(1, len(x)), x, bias, last)

    @staticmethod
    def backward(
        d_hidden: Array,
        x: Array,
        last: Array,
        weight: Array,
        bias: Array | None,
        gates: Array,
        reset_last: Array,
        *,
        activation: int,
        gate_activation: int,
        origin_mode: bool,
    ) -> tuple[Array, Array, Array, Array | None]:
        cell = _make_indexed_cell(weight, gate_activation, activation, origin_mode)
        d_gates, d_last = run_steps_back(cell, Steps.side_by_side(1, len(x)), gates, last, d_hidden)
        d_weight = cell.weight_gradient(d_gates, last, reset_last)
        return d_gates, d_last, d_weight, None if bias is None else d_gates.sum(0, keepdims=True)


def _make_indexed_cell(weight: Array, gate: int, act: int, origin: bool) -> GruCell:
    for name, index in (("gate_activation", gate), ("activation", act)):
        if not 0 <= index < len(_BY_INDEX):
            raise ShapeError(f"gru_unit: {name} is {index}, expected 0 (identity) to 3 (relu)")
    return GruCell.of(weight, ACTIVATIONS[_BY_INDEX[gate]], ACTIVATIONS[_BY_INDEX[act]], origin)
