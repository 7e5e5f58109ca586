"""The steps of long short-term memory, forwards and backwards, for lstm and lstmp.

Arrays are in batch order (:mod:`paddlelike.ops.kernels.recurrent`). Gates are columns of one array, in the
order candidate, input, forget, output.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.framework.quirks import follows_fluid
from paddlelike.ops.kernels.recurrent import Activation, Steps, clip, clip_gradient, find_activation

__all__ = [
    "Cell",
    "Initial",
    "Projection",
    "StepGradients",
    "StepResults",
    "bias_gradient",
    "make_cell",
    "run_steps",
    "run_steps_back",
]


class Projection(NamedTuple):
    """The projection that lstmp feeds back instead of its output: ``act(output @ weight)``, clipped."""

    weight: Array
    act: Activation
    limit: float


class Cell(NamedTuple):
    """The parameters of all steps."""

    width: int
    weight: Array  # of what is fed back, (H or P, 4H)
    bias: Array  # of the gates, (4H,)
    peepholes: list[Array] | None  # from the cell to the input, forget and output gate
    gate: Activation
    cell: Activation
    candidate: Activation
    limit: float = 0.0  # of the cell; 0: none
    projection: Projection | None = None
    stops_gradients: bool = False


class Initial(NamedTuple):
    """The states that the first step starts from, a row per sequence."""

    fed_back: Array
    cell: Array


class StepResults(NamedTuple):
    """The results of all steps."""

    gates: Array  # (T, 4H), after their activations
    cell: Array
    pre_act: Array  # the cell after its activation
    hidden: Array
    fed_back: Array  # hidden, or its projection


class StepGradients(NamedTuple):
    """The gradients of the gates before their activations, and of what the first step started from."""

    gates: Array
    initial: Initial


def make_cell(
    op: str,
    weight: Array,
    bias: Array,
    *,
    use_peepholes: bool,
    gate_activation: str,
    cell_activation: str,
    candidate_activation: str,
    limit: float = 0.0,
    projection: Projection | None = None,
) -> Cell:
    """Return the cell that an operator's inputs and attributes describe."""
    width = weight.shape[1] // 4
    parts = bias.reshape(-1, width)
    return Cell(
        width,
        weight,
        parts[:4].reshape(-1),
        list(parts[4:7]) if use_peepholes else None,
        find_activation(op, "gate_activation", gate_activation),
        find_activation(op, "cell_activation", cell_activation),
        find_activation(op, "candidate_activation", candidate_activation),
        limit,
        projection,
        _must_stop_gradients(weight, limit),
    )


def run_steps(cell: Cell, steps: Steps, gates: Array, initial: Initial) -> StepResults:
    """Run all steps; ``gates`` hold the projected input plus the bias, and are overwritten."""
    width, projection = cell.width, cell.projection
    cells, pre_acts, hiddens = (np.empty((len(gates), width), gates.dtype) for _ in range(3))
    fed_back = hiddens
    if projection is not None:
        fed_back = np.empty((len(gates), len(cell.weight)), gates.dtype)
    for begin, end, before in steps.forwards():
        g, state = gates[begin:end], cells[begin:end]
        last, last_state = initial
        if before >= 0:
            last, last_state = (x[before : before + end - begin] for x in (fed_back, cells))
        g += last @ cell.weight
        candidate, i, f, o = _split_gates(g, width)
        cell.candidate.apply(candidate)
        if cell.peepholes is not None:
            i += last_state * cell.peepholes[0]
            f += last_state * cell.peepholes[1]
        cell.gate.apply(g[:, width : 3 * width])
        np.multiply(candidate, i, out=state)
        state += last_state * f
        clip(state, cell.limit)
        if cell.peepholes is not None:
            o += state * cell.peepholes[2]
        cell.gate.apply(o)
        active, hidden = pre_acts[begin:end], hiddens[begin:end]
        active[...] = state
        cell.cell.apply(active)
        np.multiply(o, active, out=hidden)
        if projection is not None:
            projected = np.matmul(hidden, projection.weight, out=fed_back[begin:end])
            clip(projection.act.apply(projected), projection.limit)
    return StepResults(gates, cells, pre_acts, hiddens, fed_back)


def run_steps_back(
    cell: Cell,
    steps: Steps,
    ran: StepResults,
    d_fed_back: Array,
    initial: Initial,
    d_last: Array | None = None,
) -> StepGradients:
    """Return all gradients; ``d_fed_back`` is overwritten by the gradient before the activation.

    ``d_last`` is the gradient of the cells after the last step.
    """
    width, projection = cell.width, cell.projection
    d_gates = np.empty_like(ran.gates)
    weight_t = cell.weight.T
    d_next, d_next_state = d_fed_back[:0], ran.cell[:0] if d_last is None else d_last
    for begin, end, before in steps.backwards():
        candidate, i, f, o = _split_gates(ran.gates[begin:end], width)
        d_candidate, d_i, d_f, d_o = _split_gates(d_gates[begin:end], width)
        active = ran.pre_act[begin:end]
        last_state = ran.cell[before : before + end - begin] if before >= 0 else initial.cell
        d_h = d_fed_back[begin:end]
        d_h[: len(d_next)] += d_next
        if projection is not None:
            d_h *= projection.act.slope(ran.fed_back[begin:end])
            clip_gradient(d_h, ran.fed_back[begin:end], projection.limit)
            d_h = d_h @ projection.weight.T
        np.multiply(d_h * active, cell.gate.slope(o), out=d_o)
        d_state = d_h * o
        d_state *= cell.cell.slope(active)
        if cell.peepholes is not None:
            d_state += d_o * cell.peepholes[2]
        d_state[: len(d_next_state)] += d_next_state
        clip_gradient(d_state, ran.cell[begin:end], cell.limit)
        if cell.stops_gradients:
            d_state[...] = 0
        np.multiply(d_state * i, cell.candidate.slope(candidate), out=d_candidate)
        np.multiply(d_state * candidate, cell.gate.slope(i), out=d_i)
        np.multiply(d_state * last_state, cell.gate.slope(f), out=d_f)
        d_state *= f
        if cell.peepholes is not None:
            d_state += d_i * cell.peepholes[0]
            d_state += d_f * cell.peepholes[1]
        d_next_state = d_state
        d_next = d_gates[begin:end] @ weight_t
    return StepGradients(d_gates, Initial(d_next, d_next_state))


def bias_gradient(cell: Cell, d_gates: Array, states: Array, states_before: Array) -> Array:
    """Return sums over the rows: of the gates, then of the gates times the cell that their peepholes see."""
    sums = [d_gates.sum(0)]
    if cell.peepholes is not None:
        _, d_i, d_f, d_o = _split_gates(d_gates, cell.width)
        for d_gate, seen in ((d_i, states_before), (d_f, states_before), (d_o, states)):
            sums.append(np.einsum("th,th->h", d_gate, seen))
    return np.concatenate(sums).reshape(1, -1)


def _split_gates(gates: Array, width: int) -> list[Array]:
    return [gates[:, k * width : (k + 1) * width] for k in range(4)]


def _must_stop_gradients(weight: Array, limit: float) -> bool:
    """Return whether gradients stop at the cell, as in Paddle 1.8.5 on CPUs with AVX.

    Its kernel for float32 and widths that are multiples of 8 leaves the gradient of the cell at 0 unless
    the cell is clipped: only the output gate learns. Models trained there went on like that, so it is the
    default here as well (see :mod:`paddlelike.framework.quirks`).
    """
    quirk = weight.dtype == np.float32 and weight.shape[1] % 32 == 0 and limit <= 0
    return quirk and follows_fluid("lstm_cell_gradient")
