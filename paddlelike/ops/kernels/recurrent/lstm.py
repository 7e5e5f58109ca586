"""The steps of long short-term memory, forwards and backwards, for lstm and lstmp.

Arrays are in batch order (:mod:`paddlelike.ops.kernels.recurrent.steps`). Gates are columns of one array, in
the order candidate, input, forget, output. A step works on blocks ``(4, n, H)``: numpy takes twice as long
over columns of a wider array.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Attrs, Bool, Kernel, String
from paddlelike.ops.kernels.fast import recurrent as fast
from paddlelike.ops.kernels.fast.late import FastKernel
from paddlelike.ops.kernels.linalg import multiply
from paddlelike.ops.kernels.recurrent.steps import (
    ACTIVATIONS,
    LARGEST,
    Activation,
    Steps,
    clip,
    clip_gradient,
    find_activation,
    order_initial_rows,
    transpose_weight,
)

_ROWS: Final = 128  # rows whose factors are computed at once: they stay in the cache


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
    peepholes: Array | None  # (3, 1, H): from the cell to the input, forget and output gate
    gate: Activation
    cell: Activation
    candidate: Activation
    limit: float = 0.0  # of the cell; 0: none
    projection: Projection | None = None
    stops_gradients: bool = False


class Initial(NamedTuple):
    """The states before the first step, with one row per sequence."""

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
    """The gradients of the gates before their activations, and of the initial states."""

    gates: Array
    initial: Initial


class LstmAttrs(Attrs):
    """Attributes of lstm and of operators like it."""

    use_peepholes: bool = Bool(True)
    is_reverse: bool = Bool(False)
    gate_activation: str = String("sigmoid")
    cell_activation: str = String("tanh")
    candidate_activation: str = String("tanh")


def find_activations(op: str, attrs: Attrs) -> tuple[Activation, Activation, Activation]:
    """Return the activations of gates, cell and candidate; raise EnforceNotMet for an unknown one."""
    names = ("gate_activation", "cell_activation", "candidate_activation")
    gate, cell, candidate = (find_activation(op, name, getattr(attrs, name)) for name in names)
    return gate, cell, candidate


def make_cell(
    op: str,
    weight: Array,
    bias: Array,
    attrs: LstmAttrs,
    limit: float = 0.0,
    projection: Projection | None = None,
) -> Cell:
    """Return the cell that an operator's inputs and attributes describe."""
    width = weight.shape[1] // 4
    parts = bias.reshape(-1, width)
    peepholes = parts[4:7, None] if attrs.use_peepholes else None
    found = find_activations(op, attrs)
    stops = must_stop_gradients(weight, limit)
    return Cell(width, weight, parts[:4].reshape(-1), peepholes, *found, limit, projection, stops)


def order_initial(
    cell: Cell, steps: Steps, fed_back: Array | None, state: Array | None, dtype: np.dtype[np.generic]
) -> Initial:
    """Return the initial states in the order of the steps, given them by sequence; zeros by default."""
    return Initial(
        order_initial_rows(fed_back, steps, len(cell.weight), dtype),
        order_initial_rows(state, steps, cell.width, dtype),
    )


def run_steps(cell: Cell, steps: Steps, x: Array, initial: Initial) -> StepResults:
    """Run all steps for the projected input ``x`` plus the bias; its rows are the rows of the sequences."""
    if (ran := _run_at_once(cell, steps, x, initial)) is not None:
        return ran
    width, blocks = cell.width, steps.find_blocks(4)
    gates = x.reshape(-1, width).take(blocks.source, axis=0)
    cells, pre_acts, hiddens = (np.empty((len(x), width), x.dtype) for _ in range(3))
    fed_back = hiddens
    if cell.projection is not None:
        fed_back = np.empty((len(x), len(cell.weight)), x.dtype)
    weights = np.ascontiguousarray(cell.weight.reshape(-1, 4, width).swapaxes(0, 1))
    room = np.empty((4 * steps.first, width), x.dtype)
    usual = _choose(fast.add_to_gates, cell, gates, *initial) is not None
    run, count = _run_cell_compiled if usual else _run_cell, -1
    for begin, end, before in steps.spans:
        if end - begin != count:
            count = end - begin
            fed = room[: 4 * count].reshape(4, count, width)
        last, last_state = initial
        if before >= 0:
            last, last_state = fed_back[before : before + count], cells[before : before + count]
        np.matmul(last, weights, out=fed)  # takes half as long as four small products
        g = gates[4 * begin : 4 * end].reshape(4, count, width)
        run(cell, g, fed, last_state, cells[begin:end], pre_acts[begin:end], hiddens[begin:end])
        _project(cell.projection, hiddens[begin:end], fed_back[begin:end])
    return StepResults(
        gates.take(blocks.in_batch, axis=0).reshape(x.shape), cells, pre_acts, hiddens, fed_back
    )


def _run_at_once(cell: Cell, steps: Steps, x: Array, initial: Initial) -> StepResults | None:
    """Run all steps in one compiled kernel; None if no kernel fits this cell or amount of work."""
    peepholes = np.empty((0, cell.width), x.dtype) if cell.peepholes is None else cell.peepholes[:, 0]
    is_usual = cell.cell is cell.candidate is ACTIVATIONS["tanh"] and cell.projection is None
    if not is_usual or not steps.are_small(cell.width) or len(peepholes) != 3 * (cell.peepholes is not None):
        return None
    kernel = _choose(fast.run_lstm, cell._replace(peepholes=None), x, cell.weight)
    if kernel is None:
        return None
    gates, out = x.take(steps.rows, axis=0), np.empty((3, len(x), cell.width), x.dtype)
    # Copies: the signature is for contiguous arrays that can be written.
    kernel(gates, cell.weight, peepholes.copy(), np.stack(initial), np.array(steps.bounds), out)
    return StepResults(gates, out[0], out[1], out[2], out[2])


def _run_cell(
    cell: Cell, gates: Array, fed: Array, last: Array, state: Array, active: Array, hidden: Array
) -> None:
    """Run one step; ``gates`` (4, n, H) hold the input. ``fed`` holds the feedback, then it is scratch
    memory.
    """
    np.add(gates, fed, gates)
    candidate, i, f, o = gates
    cell.candidate.apply(candidate)
    if cell.peepholes is None:
        cell.gate.apply(gates[1:])
    else:
        both, seen = gates[1:3], fed[1:3]
        np.multiply(last, cell.peepholes[:2], seen)
        np.add(both, seen, both)
        cell.gate.apply(both)
    np.multiply(candidate, i, state)
    np.multiply(last, f, active)
    np.add(state, active, state)
    clip(state, cell.limit)
    if cell.peepholes is not None:
        np.add(o, np.multiply(state, cell.peepholes[2], hidden), o)
        cell.gate.apply(o)
    active[...] = state
    cell.cell.apply(active)
    np.multiply(o, active, hidden)


def _run_cell_compiled(
    cell: Cell, gates: Array, fed: Array, last: Array, state: Array, active: Array, hidden: Array
) -> None:
    """Run one step with the same bits, with one compiled pass each between product and exponentials."""
    dtype, size = gates.dtype, last.size
    add = fast.add_to_gates.get_compiled(dtype)
    add(gates.reshape(1, -1), fed.reshape(1, -1), size, 4 * size, dtype.type(LARGEST))
    cell.candidate.apply(gates[0])
    np.exp(gates[1:], out=gates[1:])
    fast.update_cells.get_compiled(dtype)(gates, last, state, active)
    np.multiply(gates[3], cell.cell.apply(active), out=hidden)


def _choose(kernel: FastKernel, cell: Cell, gates: Array, *others: Array) -> Kernel | None:
    """Return the compiled kernel for a cell with usual gates, without peepholes or limit, else None."""
    usual = cell.peepholes is None and cell.limit <= 0 and cell.gate is ACTIVATIONS["sigmoid"]
    return kernel.choose(gates.size, gates, *others) if usual else None


def _project(projection: Projection | None, hidden: Array, out: Array) -> None:
    """Write the projection of the output, if there is one."""
    if projection is not None:
        projected = np.matmul(hidden, projection.weight, out=out)
        clip(projection.act.apply(projected), projection.limit)


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
    d_gates, by_state = _compute_factors(cell, steps, ran, initial)
    learning = 3 * width if cell.stops_gradients else 0  # the first gate that gets gradients
    weight_t = transpose_weight(cell.weight[:, learning:], steps)
    if cell.stops_gradients and projection is None and steps.are_small(width):
        kernel = fast.run_lstm_back.choose(d_gates.size, d_gates, d_fed_back)
        if kernel is not None:
            d_first = np.empty_like(d_fed_back[: steps.first])
            kernel(d_gates, np.ascontiguousarray(weight_t), np.array(steps.bounds), d_fed_back, d_first)
            return StepGradients(d_gates, Initial(d_first, np.zeros_like(d_first)))
    projected_t = None if projection is None else transpose_weight(projection.weight, steps)
    d_next, d_next_state = d_fed_back[:0], ran.cell[:0] if d_last is None else d_last
    for begin, end, _ in reversed(steps.spans):
        d_g = d_gates[begin:end]
        d_o = d_g[:, 3 * width :]
        d_h = d_fed_back[begin:end]
        d_h[: len(d_next)] += d_next
        if projection is not None:
            d_h *= projection.act.slope(ran.fed_back[begin:end])
            clip_gradient(d_h, ran.fed_back[begin:end], projection.limit)
            d_h = d_h @ projected_t
        d_o *= d_h
        d_next_state = _run_cell_back(cell, ran, slice(begin, end), d_h, d_g, by_state, d_next_state)
        d_next = d_g[:, learning:] @ weight_t
    return StepGradients(d_gates, Initial(d_next, d_next_state))


def _compute_factors(cell: Cell, steps: Steps, ran: StepResults, initial: Initial) -> tuple[Array, Array]:
    """Return the factors that turn gradients of cell and output into gradients of the gates.

    Return also the factor that turns the gradient of the output into the gradient of the cell.
    """
    factors, by_state = np.empty_like(ran.gates), np.empty_like(ran.cell)
    before = ran.cell if cell.stops_gradients else steps.before(ran.cell, initial.cell)
    tangent = ACTIVATIONS["tanh"]
    if cell.candidate is tangent and cell.cell is tangent:
        kernel = _choose(fast.find_factors, cell, ran.gates, ran.pre_act, before)
        if kernel is not None:
            kernel(ran.gates, ran.pre_act, before, cell.stops_gradients, factors, by_state)
            return factors, by_state
    for start in range(0, len(factors), _ROWS):
        part = slice(start, start + _ROWS)
        candidate, i, f, o = _split_gates(ran.gates[part], cell.width)
        of_candidate, of_i, of_f, of_o = _split_gates(factors[part], cell.width)
        np.multiply(ran.pre_act[part], cell.gate.slope(o), out=of_o)
        if cell.stops_gradients:
            factors[part, : 3 * cell.width] = 0
            continue
        np.multiply(i, cell.candidate.slope(candidate), out=of_candidate)
        np.multiply(candidate, cell.gate.slope(i), out=of_i)
        np.multiply(before[part], cell.gate.slope(f), out=of_f)
        np.multiply(o, cell.cell.slope(ran.pre_act[part]), out=by_state[part])
    return factors, by_state


def _run_cell_back(
    cell: Cell, ran: StepResults, rows: slice, d_h: Array, d_g: Array, by_state: Array, d_next_state: Array
) -> Array:
    """Multiply the gates' factors, except the output gate's, into gradients. Return the gradient of the
    previous cell.

    At the start ``d_g`` holds the gates' factors, but the gradient of the output gate.
    """
    if cell.stops_gradients:
        return np.zeros_like(d_h) if rows.start == 0 else d_h[:0]
    _, d_i, d_f, d_o = _split_gates(d_g, cell.width)
    d_state = d_h * by_state[rows]
    if cell.peepholes is not None:
        d_state += d_o * cell.peepholes[2]
    d_state[: len(d_next_state)] += d_next_state
    clip_gradient(d_state, ran.cell[rows], cell.limit)
    three = d_g.reshape(len(d_g), 4, cell.width)[:, :3]
    three *= d_state[:, None]
    d_state *= ran.gates[rows, 2 * cell.width : 3 * cell.width]
    if cell.peepholes is not None:
        d_state += d_i * cell.peepholes[0]
        d_state += d_f * cell.peepholes[1]
    return d_state


def weight_gradient(cell: Cell, d_gates: Array, fed_back_before: Array) -> Array:
    """Return the gradient of the weight, given the output fed back to each row."""
    if not cell.stops_gradients:
        return multiply(fed_back_before.T, d_gates)
    out = np.zeros_like(cell.weight)
    out[:, 3 * cell.width :] = multiply(fed_back_before.T, d_gates[:, 3 * cell.width :])
    return out


def bias_gradient(cell: Cell, steps: Steps, d_gates: Array, states: Array, initial: Initial) -> Array:
    """Return sums over all rows: of the gates' gradients, then of the peepholes' gradients."""
    sums = [np.ones(len(d_gates), d_gates.dtype) @ d_gates]  # BLAS adds rows faster than np.sum
    if cell.peepholes is not None:
        before = steps.before(states, initial.cell)
        _, d_i, d_f, d_o = _split_gates(d_gates, cell.width)
        for d_gate, seen in ((d_i, before), (d_f, before), (d_o, states)):
            sums.append(np.einsum("th,th->h", d_gate, seen))
    return np.concatenate(sums).reshape(1, -1)


def _split_gates(gates: Array, width: int) -> list[Array]:
    return [gates[:, k * width : (k + 1) * width] for k in range(4)]


def must_stop_gradients(weight: Array, limit: float) -> bool:
    """Return whether gradients stop at the cell, as in Paddle 1.8.5 on CPUs with AVX.

    Its kernel for float32 and widths that are multiples of 8 leaves the gradient of the cell at 0 unless the
    cell is clipped, so that only the output gate learns. Fluid's models were trained like that, so it is the
    default (see :mod:`paddlelike.framework.quirks`).
    """
    quirk = weight.dtype == np.float32 and weight.shape[1] % 32 == 0 and limit <= 0
    return quirk and follows_fluid("lstm_cell_gradient")
