"""The steps of gated recurrent units, forwards and backwards. Cho et al. 2014.

Gates are in the order update, reset, candidate. The weight, declared (H, 3H), is two blocks one after the
other in memory: (H, 2H) for update and reset, (H, H) for the candidate. Arrays of all steps are in batch
order (:mod:`paddlelike.ops.kernels.recurrence.steps`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast import recurrence as fast
from paddlelike.ops.kernels.recurrence.steps import ACTIVATIONS, LARGEST, Activation, Steps, find_activation

__all__ = ["GruCell", "make_cell", "run_steps", "run_steps_back"]


class _Slopes(NamedTuple):
    """What gradients of hidden states are multiplied by on their way to the gates and to the last states."""

    u: Array
    r: Array
    candidate: Array
    keep: Array  # the part of the last state that the new one has
    reset: Array

    def cut(self, begin: int, end: int) -> _Slopes:
        """Return those of some rows."""
        u, r, candidate, keep, reset = self
        part = slice(begin, end)
        return _Slopes(u[part], r[part], candidate[part], keep[part], reset[part])


class GruCell(NamedTuple):
    """The parameters of all steps."""

    gates: Array  # weight of the update and reset gate, (H, 2H)
    candidate: Array  # weight of the candidate, (H, H)
    gate_act: Activation
    act: Activation
    origin: bool

    @classmethod
    def of(cls, weight: Array, gate_act: Activation, act: Activation, origin: bool) -> GruCell:
        width = len(weight)
        flat = weight.reshape(-1)
        cut = 2 * width * width
        return cls(
            flat[:cut].reshape(width, 2 * width), flat[cut:].reshape(width, width), gate_act, act, origin
        )

    def step(
        self, gates: Array, last: Array, reset_last: Array, hidden: Array, *, work: int | None = None
    ) -> None:
        """Run one step; ``gates`` hold the input and are worked on in place, the last two are written.

        ``work``: the elements of the gates of all steps, if there are several.
        """
        width = len(self.candidate)
        if self.gate_act is ACTIVATIONS["sigmoid"]:
            add = fast.add_to_gates.choose(work or gates.size, gates, last, reset_last, hidden)
            if add is not None:
                add(gates, last @ self.gates, 0, 2 * width, gates.dtype.type(LARGEST))
                np.exp(gates[:, : 2 * width], out=gates[:, : 2 * width])
                fast.reset_states.get_compiled(gates.dtype)(gates, last, reset_last)
                gates[:, 2 * width :] += reset_last @ self.candidate
                self.act.apply(gates[:, 2 * width :])
                fast.blend_states.get_compiled(gates.dtype)(gates, last, self.origin, hidden)
                return
        both, candidate = gates[:, : 2 * width], gates[:, 2 * width :]
        both += last @ self.gates
        self.gate_act.apply(both)
        u = both[:, :width]
        np.multiply(both[:, width:], last, out=reset_last)
        candidate += reset_last @ self.candidate
        self.act.apply(candidate)
        old, new = (candidate, last) if self.origin else (last, candidate)
        np.subtract(new, old, out=hidden)
        hidden *= u
        hidden += old

    def slopes(self, gates: Array, last: Array) -> _Slopes:
        """Return what the gradients of steps are multiplied by; ``gates`` and ``last`` of one or of all."""
        width = len(self.candidate)
        u, r, candidate = _split_gates(gates)
        by_gate = np.empty_like(gates)
        by_u, by_r, by_candidate = _split_gates(by_gate)
        keep, renew = (u, 1 - u) if self.origin else (1 - u, u)
        np.multiply(self.act.slope(candidate), renew, out=by_candidate)
        slope = self.gate_act.slope(gates[:, : 2 * width])
        np.multiply(slope[:, width:], last, out=by_r)
        difference = last - candidate if self.origin else candidate - last
        np.multiply(slope[:, :width], difference, out=by_u)
        return _Slopes(by_u, by_r, by_candidate, keep, r)

    def step_back(self, d_hidden: Array, slopes: _Slopes, d_gates: Array) -> Array:
        """Return the gradients of one step: those of the gates are written, that of ``last`` is returned."""
        width = len(self.candidate)
        d_candidate = d_gates[:, 2 * width :]
        np.multiply(d_hidden, slopes.candidate, out=d_candidate)
        d_reset_last = d_candidate @ self.candidate.T
        np.multiply(d_reset_last, slopes.r, out=d_gates[:, width : 2 * width])
        np.multiply(d_hidden, slopes.u, out=d_gates[:, :width])
        d_last = d_gates[:, : 2 * width] @ self.gates.T
        d_last += d_hidden * slopes.keep
        d_reset_last *= slopes.reset
        d_last += d_reset_last
        return d_last

    def weight_gradient(self, d_gates: Array, last: Array, reset_last: Array) -> Array:
        """Return the gradient of the weight, its two blocks one after the other."""
        width = len(self.candidate)
        blocks = (last.T @ d_gates[:, : 2 * width], reset_last.T @ d_gates[:, 2 * width :])
        return np.concatenate([block.reshape(-1) for block in blocks]).reshape(width, 3 * width)


def _split_gates(gates: Array) -> list[Array]:
    width = gates.shape[1] // 3
    return [gates[:, k * width : (k + 1) * width] for k in range(3)]


def make_cell(op: str, weight: Array, gate: str, act: str, origin: bool) -> GruCell:
    """Return the cell that an operator's inputs and attributes describe."""
    return GruCell.of(
        weight,
        find_activation(op, "gate_activation", gate),
        find_activation(op, "activation", act),
        origin,
    )


def run_steps(cell: GruCell, steps: Steps, gates: Array, first: Array) -> tuple[Array, Array]:
    """Run all steps; ``gates`` hold the projected input plus the bias, and are overwritten.

    Returns the reset states and the hidden ones. ``first`` are the states that the first step starts from.
    """
    reset_last, hidden = (np.empty((len(gates), len(cell.candidate)), gates.dtype) for _ in range(2))
    for begin, end, before in steps.forwards():
        last = hidden[before : before + end - begin] if before >= 0 else first
        cell.step(gates[begin:end], last, reset_last[begin:end], hidden[begin:end], work=gates.size)
    return reset_last, hidden


def run_steps_back(
    cell: GruCell, steps: Steps, gates: Array, last: Array, d_hidden: Array
) -> tuple[Array, Array]:
    """Run all steps from the last to the first, after :func:`run_steps`.

    ``last`` are the states that each row began with; ``d_hidden`` the gradients of the hidden states, which
    are overwritten. Returns the gradients of the gates and of the states that the first step started from.
    """
    d_gates = np.empty_like(gates)
    slopes = cell.slopes(gates, last)
    d_next = d_hidden[:0]
    for begin, end, _ in steps.backwards():
        d_step = d_hidden[begin:end]
        d_step[: len(d_next)] += d_next
        d_next = cell.step_back(d_step, slopes.cut(begin, end), d_gates[begin:end])
    return d_gates, d_next
