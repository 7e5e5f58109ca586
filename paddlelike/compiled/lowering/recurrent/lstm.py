"""Recurrent layers of LSTM cells along sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowering.sequence.sequence import from_steps, require_sequences, to_steps
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.values import Packed, Value
from paddlelike.ops.kernels.recurrent.lstm import must_stop_gradients

ACTIVATIONS: Final[dict[str, Callable[[jax.Array], jax.Array]]] = {
    "identity": lambda x: x,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
}


#: With these a state stays finite behind the end of its sequence, where nobody reads it.
BOUNDED = (jax.nn.sigmoid, jnp.tanh)


def scan_steps(
    step: Callable[..., jax.Array],
    first: tuple[jax.Array, jax.Array] | jax.Array,
    steps: jax.Array,
    there: jax.Array,
    *,
    bounded: bool,
) -> jax.Array:
    """Return the outputs of ``step(carry, row)`` along sequences; it returns the new carry and an output.

    Behind the end of a sequence its carry is kept, or, if it stays finite there anyway, left to itself: a
    choice in every step takes a sixth of the time of an LSTM.
    """

    def run(carry: jax.Array, given: jax.Array) -> tuple[Any, Any]:
        row, here = given
        new, results = step(carry, row)
        if not bounded:
            new = jax.tree_util.tree_map(lambda one, old: jnp.where(here[:, None], one, old), new, carry)
        return new, results

    return jax.lax.scan(run, first, (steps, there))[1]


@lowers("lstm", sequences=True)
def lstm(
    x: Value, h0: Value, c0: Value, weight: jax.Array, bias: Value,
    *, use_peepholes: bool, is_reverse: bool, gate_activation: str, cell_activation: str,
    candidate_activation: str,
) -> Results:  # fmt: skip
    gate, cell_act, candidate = (
        ACTIVATIONS[name] for name in (gate_activation, cell_activation, candidate_activation)
    )
    cell = Cell(weight, bias, use_peepholes, gate, cell_act, candidate, must_stop_gradients(weight, 0.0))
    hidden, state = run_lstm(x, h0, c0, cell, reverse=is_reverse)
    return hidden, state, None, None


@lowers("lstmp", sequences=True)
def lstmp(
    x: Value, h0: Value, c0: Value, weight: jax.Array, proj_weight: jax.Array, bias: Value,
    *, use_peepholes: bool, is_reverse: bool, gate_activation: str, cell_activation: str,
    candidate_activation: str, cell_clip: float, proj_clip: float, proj_activation: str,
) -> Results:  # fmt: skip
    gate, cell_act, candidate = (
        ACTIVATIONS[name] for name in (gate_activation, cell_activation, candidate_activation)
    )
    act = ACTIVATIONS["identity" if proj_activation == "identity" else cell_activation]  # as in Paddle

    def project(hidden: jax.Array) -> jax.Array:
        fed_back = act(hidden @ proj_weight)
        return jnp.clip(fed_back, -proj_clip, proj_clip) if proj_clip > 0 else fed_back

    stops = must_stop_gradients(weight, cell_clip)
    cell = Cell(weight, bias, use_peepholes, gate, cell_act, candidate, stops, cell_clip, project)
    projection, state = run_lstm(x, h0, c0, cell, reverse=is_reverse)
    return projection, state, None, None, None


class Cell(NamedTuple):
    """One step of a cell; ``project`` makes of the hidden state what is fed back and given out."""

    weight: jax.Array
    bias: jax.Array
    use_peepholes: bool
    gate: Callable[[jax.Array], jax.Array]
    act: Callable[[jax.Array], jax.Array]
    candidate: Callable[[jax.Array], jax.Array]
    stops: bool = False  # as in Fluid, no gradient passes through the new state
    limit: float = 0.0
    project: Callable[[jax.Array], jax.Array] | None = None

    @property
    def width(self) -> int:
        """The width of the state."""
        return int(self.weight.shape[1]) // 4

    def step(self, gates: jax.Array, last: jax.Array, last_state: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the output and the new state."""
        parts = self.bias.reshape(-1, self.width)
        gates = gates + parts[:4].reshape(-1) + last @ self.weight
        c, i, f, o = jnp.split(gates, 4, 1)
        if self.use_peepholes:
            i, f = i + last_state * parts[4], f + last_state * parts[5]
        state = self.candidate(c) * self.gate(i) + last_state * self.gate(f)
        state = jnp.clip(state, -self.limit, self.limit) if self.limit > 0 else state
        state = jax.lax.stop_gradient(state) if self.stops else state
        o = o + state * parts[6] if self.use_peepholes else o
        hidden = self.gate(o) * self.act(state)
        return (hidden if self.project is None else self.project(hidden)), state


def find_state(state: jax.Array | Packed, x: Packed) -> jax.Array:
    """Return a first state, one row for each sequence of ``x``, that may have a LoD of its own."""
    if not isinstance(state, Packed):
        return state
    if not state.full or state.rows.shape[0] != x.count:
        raise LoweringError("the first state has no row for each sequence")
    return state.rows


def run_lstm(
    x: Packed, h0: Value | None, c0: Value | None, cell: Cell, *, reverse: bool
) -> tuple[Packed, Packed]:
    """Return the outputs of a cell along every sequence, and its states."""
    require_sequences(x)
    steps, there = to_steps(x, reverse=reverse)

    def run(
        carry: jax.Array, gates: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
        new = cell.step(gates, *carry)
        return new, new

    first = (
        jnp.zeros((x.count, cell.weight.shape[0]), x.rows.dtype) if h0 is None else find_state(h0, x),
        jnp.zeros((x.count, cell.width), x.rows.dtype) if c0 is None else find_state(c0, x),
    )
    bounded = cell.project is None and all(f in BOUNDED for f in (cell.gate, cell.act, cell.candidate))
    results = scan_steps(run, first, steps, there, bounded=bounded)
    hidden, state = (x.replace(from_steps(x, result, reverse=reverse)) for result in results)
    return hidden, state
