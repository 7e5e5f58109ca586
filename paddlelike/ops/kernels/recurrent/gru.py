"""The steps of gated recurrent units, forwards and backwards. Cho et al. 2014.

Gates are in the order update, reset, candidate. The weight, declared (H, 3H), is two blocks one after the
other in memory: (H, 2H) for update and reset, (H, H) for the candidate. Arrays of all steps are in batch
order (:mod:`paddlelike.ops.kernels.recurrent.steps`).

With few narrow rows the calls of numpy take most of the time, and twice as much over columns of a wider
array. So a step works on blocks: its update gates, then its reset gates, then its candidates, ``(3 n, H)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast import recurrent as fast
from paddlelike.ops.kernels.recurrent.steps import (
    ACTIVATIONS,
    LARGEST,
    Activation,
    Steps,
    find_activation,
    transpose_weight,
)


class GruCell(NamedTuple):
    """The parameters of all steps."""

    both: Array  # weights of the update and the reset gate, (2, H, H)
    candidate: Array
    gate_act: Activation
    act: Activation
    origin: bool

    @classmethod
    def of(cls, weight: Array, gate_act: Activation, act: Activation, origin: bool) -> GruCell:
        width = len(weight)
        flat = weight.reshape(-1)
        cut = 2 * width * width
        both = np.ascontiguousarray(flat[:cut].reshape(width, 2, width).swapaxes(0, 1))
        return cls(both, flat[cut:].reshape(width, width), gate_act, act, origin)

    def weight_gradient(self, d_gates: Array, last: Array, reset_last: Array) -> Array:
        """Return the gradient of the weight, as its two blocks one after the other."""
        width = len(self.candidate)
        blocks = (last.T @ d_gates[:, : 2 * width], reset_last.T @ d_gates[:, 2 * width :])
        return np.concatenate([block.reshape(-1) for block in blocks]).reshape(width, 3 * width)


def make_cell(op: str, weight: Array, gate: str, act: str, origin: bool) -> GruCell:
    """Return the cell that an operator's inputs and attributes describe."""
    return GruCell.of(
        weight, find_activation(op, "gate_activation", gate), find_activation(op, "activation", act), origin
    )


def run_steps(
    cell: GruCell, steps: Steps, x: Array, bias: Array | None, first: Array
) -> tuple[Array, Array, Array]:
    """Run all steps for the projected input ``x``, whose rows are the rows of the sequences.

    Return the gates, the reset states and the hidden states. ``first`` are the states before the first step.
    """
    x = x if bias is None else x + bias.reshape(-1)
    if (ran := _run_at_once(cell, steps, x, first)) is not None:
        return ran
    width, blocks = len(cell.candidate), steps.find_blocks(3)
    gates = x.reshape(-1, width).take(blocks.source, axis=0)
    reset_last, hidden = (np.empty((len(x), width), x.dtype) for _ in range(2))
    room = np.empty((2 * steps.first, width), x.dtype)
    usual = cell.gate_act is ACTIVATIONS["sigmoid"]
    compiled = usual and fast.add_to_gates.choose(gates.size, gates, first, reset_last) is not None
    run, count = _run_step_compiled if compiled else _run_step, -1
    for begin, end, before in steps.spans:
        if end - begin != count:
            count = end - begin
            fed = room[: 2 * count]
            products = fed.reshape(2, count, width)
        last = hidden[before : before + count] if before >= 0 else first
        np.matmul(last, cell.both, out=products)
        run(cell, gates[3 * begin : 3 * end], fed, last, reset_last[begin:end], hidden[begin:end])
    return gates.take(blocks.in_batch, axis=0).reshape(x.shape), reset_last, hidden


def _run_at_once(cell: GruCell, steps: Steps, x: Array, first: Array) -> tuple[Array, Array, Array] | None:
    """Run all steps in one compiled kernel; None if no kernel fits this cell or amount of work."""
    width = len(cell.candidate)
    fits = _is_usual(cell) and steps.are_small(len(cell.candidate))
    if not fits or (kernel := fast.run_gru.choose(x.size, x, first, *cell[:2])) is None:
        return None
    gates, out = x.take(steps.rows, axis=0), np.empty((2, len(x), width), x.dtype)
    kernel(gates, *cell[:2], cell.origin, first, np.array(steps.bounds), out)
    return gates, out[0], out[1]


def _is_usual(cell: GruCell) -> bool:
    return cell.gate_act is ACTIVATIONS["sigmoid"] and cell.act is ACTIVATIONS["tanh"]


def _run_step(cell: GruCell, gates: Array, fed: Array, last: Array, reset_last: Array, hidden: Array) -> None:
    """Run one step; ``gates`` hold the input, and ``fed`` the feedback for the update and reset gates."""
    count = len(last)
    both, u, r, candidate = gates[: 2 * count], gates[:count], gates[count : 2 * count], gates[2 * count :]
    np.add(both, fed, both)
    cell.gate_act.apply(both)
    np.multiply(r, last, reset_last)
    np.add(candidate, np.dot(reset_last, cell.candidate, hidden), candidate)
    cell.act.apply(candidate)
    old, new = (candidate, last) if cell.origin else (last, candidate)
    np.subtract(new, old, hidden)
    np.multiply(hidden, u, hidden)
    np.add(hidden, old, hidden)


def _run_step_compiled(
    cell: GruCell, gates: Array, fed: Array, last: Array, reset_last: Array, hidden: Array
) -> None:
    """Run one step with the same bits, with one compiled pass each between products and exponentials."""
    dtype, count = gates.dtype, len(last)
    both, u, r, candidate = gates[: 2 * count], gates[:count], gates[count : 2 * count], gates[2 * count :]
    fast.add_to_gates.get_compiled(dtype)(both, fed, 0, both.shape[1], dtype.type(LARGEST))
    np.exp(both, out=both)
    fast.reset_states.get_compiled(dtype)(u, r, last, reset_last)
    candidate += np.dot(reset_last, cell.candidate)
    cell.act.apply(candidate)
    fast.blend_states.get_compiled(dtype)(u, candidate, last, cell.origin, hidden)


def run_steps_back(
    cell: GruCell, steps: Steps, gates: Array, last: Array, d_hidden: Array
) -> tuple[Array, Array]:
    """Run all steps from the last to the first, after :func:`run_steps`.

    ``last`` holds the state before each row; ``d_hidden``, the gradients of the hidden states, is
    overwritten. Return the gradients of the gates and of the states before the first step.
    """
    factors = _compute_factors(cell, gates, last)
    kernel = fast.run_gru_back.choose(gates.size, d_hidden) if steps.are_small(len(cell.candidate)) else None
    if kernel is not None:
        d_gates, d_first = np.empty_like(gates), np.empty_like(d_hidden[: steps.first])
        weights_t = np.stack([*cell.both, cell.candidate]).swapaxes(1, 2).copy()
        kernel(np.asarray(factors), weights_t, np.array(steps.bounds), d_hidden, d_gates, d_first)
        return d_gates, d_first
    candidate_t, update_t, reset_t = (transpose_weight(w, steps) for w in (cell.candidate, *cell.both))
    first = fast.multiply_gate_gradients.choose(gates.size, d_hidden, *factors[:2])
    second = fast.add_state_gradients.choose(gates.size, d_hidden) if first is not None else None
    d_next = d_hidden[:0]
    for begin, end, _ in reversed(steps.spans):
        d_step = d_hidden[begin:end]
        d_candidate, d_update, d_kept, d_reset, d_through_reset = [each[begin:end] for each in factors]
        if first is not None:
            first(d_next, d_step, d_candidate, d_update)
        else:
            if len(d_next):
                d_step[: len(d_next)] += d_next
            np.multiply(d_candidate, d_step, d_candidate)
            np.multiply(d_update, d_step, d_update)
        d_reset_last = np.dot(d_candidate, candidate_t)
        np.multiply(d_reset, d_reset_last, d_reset)
        d_next = np.dot(d_update, update_t)
        if second is not None:
            second(d_next, np.dot(d_reset, reset_t), d_kept, d_step, d_through_reset, d_reset_last)
            continue
        np.add(d_next, np.dot(d_reset, reset_t), d_next)
        np.add(d_next, np.multiply(d_kept, d_step, d_kept), d_next)
        np.add(d_next, np.multiply(d_through_reset, d_reset_last, d_reset_last), d_next)
    return np.concatenate([factors[1], factors[3], factors[0]], axis=1), d_next


def _compute_factors(cell: GruCell, gates: Array, last: Array) -> Sequence[Array] | Array:
    """Return the factors that turn gradients of states into gradients of the gates.

    The gradient of hidden states times the first three gives the gradients of candidate, update gate and
    previous state. The gradient of reset states times the last two gives the gradients of reset gate and
    previous state.
    """
    if _is_usual(cell) and (kernel := fast.find_gru_factors.choose(gates.size, gates, last)) is not None:
        factors = np.empty((5, *last.shape), last.dtype)
        kernel(gates, last, cell.origin, factors)
        return factors
    u, r, candidate = (np.ascontiguousarray(gate) for gate in np.split(gates, 3, axis=1))
    keep, renew = (u, 1 - u) if cell.origin else (1 - u, u)  # parts of the last state and of the candidate
    new, old = (last, candidate) if cell.origin else (candidate, last)
    by_candidate, by_update = cell.act.slope(candidate) * renew, cell.gate_act.slope(u) * (new - old)
    return [by_candidate, by_update, keep, cell.gate_act.slope(r) * last, r]
