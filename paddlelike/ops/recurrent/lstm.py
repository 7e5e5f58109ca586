"""Long short-term memory: lstm over sequences; lstmp, which feeds back a projection of its output; lstm_unit,
a single step on projected gates.

Hochreiter & Schmidhuber 1997; peepholes: Gers & Schmidhuber 2000; projections: Sak et al. 2014.

In float32, with a width that is a multiple of 8 and no ``cell_clip``, gradients stop at the cell as they do
in Paddle 1.8.5 on today's CPUs; ``fluid.set_flags({"FLAGS_fluid_quirks": False})`` lets them through.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Array, Context, Float, Gradient, OpDef, Shapes, Spec, String, register
from paddlelike.ops.kernels.lod import read_last_level
from paddlelike.ops.kernels.recurrent import lstm as lstm_steps
from paddlelike.ops.kernels.recurrent.lstm import Cell, LstmAttrs, Projection, find_activations, make_cell
from paddlelike.ops.kernels.recurrent.steps import (
    Steps,
    find_activation,
    restore_initial_gradient,
    scatter_rows,
)
from paddlelike.ops.kernels.special import sigmoid
from paddlelike.ops.operands import can_be_equal


class LstmpAttrs(LstmAttrs):
    """Attributes of lstmp."""

    cell_clip: float = Float(0.0)
    proj_clip: float = Float(0.0)
    proj_activation: str = String("tanh")

    def make_projecting_cell(self, weight: Array, proj_weight: Array, bias: Array) -> Cell:
        """Return the cell of all steps, with its projection."""
        known = find_activation("lstmp", "proj_activation", self.proj_activation)
        is_identity = self.proj_activation == "identity"
        act = known if is_identity else find_activation("lstmp", "cell_activation", self.cell_activation)
        projection = Projection(proj_weight, act, self.proj_clip)
        return make_cell("lstmp", weight, bias, self, self.cell_clip, projection)


@register
class Lstm(OpDef):
    """``c = f c' + i g``, ``h = o cell_act(c)`` along every sequence; c' and h' are the previous c and h.

    Input (T, 4H) is the projected input x. Weight W is (H, 4H), Bias b (1, 4H), or (1, 7H) with the peepholes
    w: ``g = candidate_act(x_g + h' W_g + b_g)``, ``i = gate_act(x_i + h' W_i + b_i + w_i c')``, f likewise,
    ``o = gate_act(x_o + h' W_o + b_o + w_o c)``. H0, C0 (sequences, H) are the first h', c'.
    """

    type = "lstm"
    inputs = ("Input", "H0?", "C0?", "Weight", "Bias")
    outputs = ("Hidden", "Cell", "BatchGate", "BatchCellPreAct")
    attrs = LstmAttrs.table()
    lod = {"Hidden": "Input", "Cell": "Input"}
    gradient = Gradient(
        "Hidden@GRAD", "Input", "H0", "C0", "Weight", "Bias",
        "Hidden", "Cell", "BatchGate", "BatchCellPreAct",
        outputs=("Input@GRAD", "H0@GRAD", "C0@GRAD", "Weight@GRAD", "Bias@GRAD"),
    )  # fmt: skip

    @staticmethod
    def infer(
        x: Spec, h0: Spec | None, c0: Spec | None, weight: Spec, bias: Spec, *, attrs: LstmAttrs
    ) -> tuple[Spec, Spec, Spec, Spec]:
        find_activations("lstm", attrs)
        width = _check_width("lstm", x, weight, bias, x.shape[-1] // 4, attrs.use_peepholes)
        _check_initial("lstm", h0, c0)
        out = Spec((x.shape[0], width), x.dtype)
        return out, out, Spec(x.shape, x.dtype), out

    @staticmethod
    def count_products(shapes: Shapes, attrs: Mapping[str, Any]) -> int:
        return math.prod(shapes["Input"]) * shapes["Weight"][0]

    @staticmethod
    def forward(
        ctx: Context,
        x: Array,
        h0: Array | None,
        c0: Array | None,
        weight: Array,
        bias: Array,
        *,
        attrs: LstmAttrs,
    ) -> tuple[Array, Array, Array, Array]:
        steps = Steps.of(read_last_level(ctx, "Input", len(x)), reverse=attrs.is_reverse)
        cell = make_cell("lstm", weight, bias, attrs)
        initial = lstm_steps.order_initial(cell, steps, h0, c0, x.dtype)
        ran = lstm_steps.run_steps(cell, steps, x + cell.bias, initial)
        hidden, state = (scatter_rows(rows, steps.rows) for rows in (ran.hidden, ran.cell))
        return hidden, state, ran.gates, ran.pre_act

    @staticmethod
    def backward(
        ctx: Context,
        d_hidden: Array,
        x: Array,
        h0: Array | None,
        c0: Array | None,
        weight: Array,
        bias: Array,
        hidden: Array,
        state: Array,
        gates: Array,
        pre_act: Array,
        *,
        attrs: LstmAttrs,
    ) -> tuple[Array | None, ...]:
        steps = Steps.of(read_last_level(ctx, "Input", len(x)), reverse=attrs.is_reverse)
        cell = make_cell("lstm", weight, bias, attrs)
        initial = lstm_steps.order_initial(cell, steps, h0, c0, x.dtype)
        hidden, state, d_hidden = (rows.take(steps.rows, axis=0) for rows in (hidden, state, d_hidden))
        ran = lstm_steps.StepResults(gates, state, pre_act, hidden, hidden)
        back = lstm_steps.run_steps_back(cell, steps, ran, d_hidden, initial)
        return (
            scatter_rows(back.gates, steps.rows),
            restore_initial_gradient(back.initial.fed_back, steps, h0),
            restore_initial_gradient(back.initial.cell, steps, c0),
            lstm_steps.weight_gradient(cell, back.gates, steps.before(hidden, initial.fed_back)),
            lstm_steps.bias_gradient(cell, steps, back.gates, state, initial),
        )


@register
class Lstmp(OpDef):
    """``lstm`` whose output Projection ``r = act(h ProjWeight)`` takes the place of h in the next step.

    Weight is (P, 4H), ProjWeight (H, P), H0 (sequences, P). ``cell_clip`` and ``proj_clip``, where above 0,
    limit c and r. As in Paddle, act is ``cell_activation``, unless ``proj_activation`` is identity.
    """

    type = "lstmp"
    until = "1"
    inputs = ("Input", "H0?", "C0?", "Weight", "ProjWeight", "Bias")
    outputs = ("Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden")
    fluid_order = (
        "use_peepholes is_reverse cell_clip proj_clip gate_activation cell_activation "
        "candidate_activation proj_activation"
    )
    attrs = LstmpAttrs.table()
    lod = {"Projection": "Input", "Cell": "Input"}
    gradient = Gradient(
        "Projection@GRAD", "H0", "C0", "Weight", "ProjWeight", "Bias",
        "Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden",
        outputs=("Input@GRAD", "H0@GRAD", "C0@GRAD", "Weight@GRAD", "ProjWeight@GRAD", "Bias@GRAD"),
    )  # fmt: skip

    @staticmethod
    def infer(
        x: Spec,
        h0: Spec | None,
        c0: Spec | None,
        weight: Spec,
        proj_weight: Spec,
        bias: Spec,
        *,
        attrs: LstmpAttrs,
    ) -> tuple[Spec, Spec, Spec, Spec, Spec]:
        find_activations("lstmp", attrs)
        find_activation("lstmp", "proj_activation", attrs.proj_activation)
        projected = proj_weight.shape[-1]
        width = _check_width("lstmp", x, weight, bias, projected, attrs.use_peepholes)
        if tuple(proj_weight.shape) != (width, projected):
            raise ShapeError(f"lstmp: ProjWeight is {list(proj_weight.shape)}, expected ({width}, P)")
        _check_initial("lstmp", h0, c0)
        out = Spec((x.shape[0], width), x.dtype)
        return Spec((x.shape[0], projected), x.dtype), out, Spec(x.shape, x.dtype), out, out

    @staticmethod
    def forward(
        ctx: Context,
        x: Array,
        h0: Array | None,
        c0: Array | None,
        weight: Array,
        proj_weight: Array,
        bias: Array,
        *,
        attrs: LstmpAttrs,
    ) -> tuple[Array, Array, Array, Array, Array]:
        steps = Steps.of(read_last_level(ctx, "Input", len(x)), reverse=attrs.is_reverse)
        cell = attrs.make_projecting_cell(weight, proj_weight, bias)
        initial = lstm_steps.order_initial(cell, steps, h0, c0, x.dtype)
        ran = lstm_steps.run_steps(cell, steps, x + cell.bias, initial)
        projection, state = (scatter_rows(rows, steps.rows) for rows in (ran.fed_back, ran.cell))
        return projection, state, ran.gates, ran.pre_act, ran.hidden

    @staticmethod
    def backward(
        ctx: Context,
        d_projection: Array,
        h0: Array | None,
        c0: Array | None,
        weight: Array,
        proj_weight: Array,
        bias: Array,
        projection: Array,
        state: Array,
        gates: Array,
        pre_act: Array,
        hidden: Array,
        *,
        attrs: LstmpAttrs,
    ) -> tuple[Array | None, ...]:
        steps = Steps.of(read_last_level(ctx, "Projection", len(projection)), reverse=attrs.is_reverse)
        cell = attrs.make_projecting_cell(weight, proj_weight, bias)
        initial = lstm_steps.order_initial(cell, steps, h0, c0, gates.dtype)
        fed_back, state, d_fed_back = (x.take(steps.rows, axis=0) for x in (projection, state, d_projection))
        ran = lstm_steps.StepResults(gates, state, pre_act, hidden, fed_back)
        back = lstm_steps.run_steps_back(cell, steps, ran, d_fed_back, initial)
        return (
            scatter_rows(back.gates, steps.rows),
            restore_initial_gradient(back.initial.fed_back, steps, h0),
            restore_initial_gradient(back.initial.cell, steps, c0),
            lstm_steps.weight_gradient(cell, back.gates, steps.before(fed_back, initial.fed_back)),
            hidden.T @ d_fed_back,
            lstm_steps.bias_gradient(cell, steps, back.gates, state, initial),
        )


def _check_width(op: str, x: Spec, weight: Spec, bias: Spec, rows: int, use_peepholes: bool) -> int:
    """Return the width H of the cell; raise ShapeError when the shapes do not fit.

    ``rows`` is the number of rows that Weight must have.
    """
    width = x.shape[-1] // 4
    biases = 7 if use_peepholes else 4
    fits = len(x.shape) == len(weight.shape) == 2 and x.shape[1] == weight.shape[1] == 4 * width
    fits = fits and tuple(bias.shape) == (1, biases * width) and can_be_equal(weight.shape[0], rows)
    if not fits:
        raise ShapeError(
            f"{op}: Input is {list(x.shape)}, Weight {list(weight.shape)}, Bias {list(bias.shape)}; with "
            f"use_peepholes={use_peepholes} expected (T, 4 H), ({'H' if op == 'lstm' else 'P'}, 4 H), "
            f"(1, {biases} H)",
            hint="the input must be projected: the layer before has 4 times the width of the cell",
        )
    return width


def _check_initial(op: str, h0: Spec | None, c0: Spec | None) -> None:
    if (h0 is None) != (c0 is None):
        raise ShapeError(f"{op}: H0 and C0 must be given together; one is missing")


@register
class LstmUnit(OpDef):
    """``C = s(f + forget_bias) C_prev + s(i) tanh(g)``, ``H = s(o) tanh(C)`` with s the sigmoid.

    X is (N, 4D) with the columns i, f, o, g; C_prev is (N, D).
    """

    type = "lstm_unit"
    until = "1"
    by_row = True
    inputs = ("X", "C_prev")
    outputs = ("C", "H")
    attrs = {"forget_bias": Float(0.0)}
    gradient = Gradient("X", "C_prev", "C", "C@GRAD", "H@GRAD", traceable=False)

    @staticmethod
    def infer(x: Spec, c_prev: Spec) -> tuple[Spec, Spec]:
        fits = len(x.shape) == len(c_prev.shape) == 2 and can_be_equal(x.shape[0], c_prev.shape[0])
        if not fits or x.shape[1] != 4 * c_prev.shape[1]:
            raise ShapeError(
                f"lstm_unit: X is {list(x.shape)}, C_prev {list(c_prev.shape)}, expected (N, 4 D) and (N, D)"
            )
        out = Spec((x.shape[0], c_prev.shape[1]), x.dtype)
        return out, out

    @staticmethod
    def forward(x: Array, c_prev: Array, *, forget_bias: float) -> tuple[Array, Array]:
        i, f, o, g = _split_gates(x, forget_bias)
        c = f * c_prev
        c += i * g
        return c, o * np.tanh(c)

    @staticmethod
    def backward(
        x: Array, c_prev: Array, c: Array, d_c: Array, d_h: Array, *, forget_bias: float
    ) -> tuple[Array, Array]:
        i, f, o, g = _split_gates(x, forget_bias)
        tanh_c = np.tanh(c)
        d_state = d_h * o * (1 - tanh_c * tanh_c)
        d_state += d_c
        d_x = np.empty_like(x)
        d_i, d_f, d_o, d_g = np.split(d_x, 4, axis=1)
        np.multiply(d_state * g, i * (1 - i), out=d_i)
        np.multiply(d_state * c_prev, f * (1 - f), out=d_f)
        np.multiply(d_h * tanh_c, o * (1 - o), out=d_o)
        np.multiply(d_state * i, 1 - g * g, out=d_g)
        d_state *= f
        return d_x, d_state


def _split_gates(x: Array, forget_bias: float) -> tuple[Array, Array, Array, Array]:
    i, f, o, g = np.split(x, 4, axis=1)
    return sigmoid(i), sigmoid(f + forget_bias), sigmoid(o), np.tanh(g)
