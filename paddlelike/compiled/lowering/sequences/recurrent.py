"""Recurrent networks along sequences, and their single steps, as ``lax.scan``."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowering.sequences.sequence import from_steps, require_sequences, to_steps
from paddlelike.compiled.refusals import LoweringError
from paddlelike.compiled.table import lowers
from paddlelike.compiled.values import Packed
from paddlelike.framework.quirks import follows_fluid

Results = tuple[Any, ...]

ACTIVATIONS: Any = {
    "identity": lambda x: x,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
}
_BY_INDEX = ("identity", "sigmoid", "tanh", "relu")


#: With these a state stays finite behind the end of its sequence, where nobody reads it.
_BOUNDED = (jax.nn.sigmoid, jnp.tanh)


def _scan(step: Any, first: Any, steps: Any, there: Any, *, bounded: bool) -> Any:
    """Return what ``step(carry, row)`` gives out along sequences; it returns the new carry and the results.

    Behind the end of a sequence its carry is kept, or, if it stays finite there anyway, left to itself: a
    choice in every step takes a sixth of the time of an LSTM.
    """

    def run(carry: Any, given: Any) -> Any:
        row, here = given
        new, results = step(carry, row)
        if not bounded:
            new = jax.tree_util.tree_map(lambda one, old: jnp.where(here[:, None], one, old), new, carry)
        return new, results

    return jax.lax.scan(run, first, (steps, there))[1]


@lowers("lstm", sequences=True)
def lstm(
    x: Any, h0: Any, c0: Any, weight: Any, bias: Any,
    *, use_peepholes: bool, is_reverse: bool, gate_activation: str, cell_activation: str,
    candidate_activation: str,
) -> Results:  # fmt: skip
    stops = weight.dtype == jnp.float32 and weight.shape[1] % 32 == 0 and follows_fluid("lstm_cell_gradient")
    gate, cell_act, candidate = (
        ACTIVATIONS[name] for name in (gate_activation, cell_activation, candidate_activation)
    )
    cell = Cell(weight, bias, use_peepholes, gate, cell_act, candidate, stops)
    hidden, state = run_lstm(x, h0, c0, cell, reverse=is_reverse)
    return hidden, state, None, None


@lowers("lstmp", sequences=True)
def lstmp(
    x: Any, h0: Any, c0: Any, weight: Any, proj_weight: Any, bias: Any,
    *, use_peepholes: bool, is_reverse: bool, gate_activation: str, cell_activation: str,
    candidate_activation: str, cell_clip: float, proj_clip: float, proj_activation: str,
) -> Results:  # fmt: skip
    gate, cell_act, candidate = (
        ACTIVATIONS[name] for name in (gate_activation, cell_activation, candidate_activation)
    )
    act = ACTIVATIONS["identity" if proj_activation == "identity" else cell_activation]  # as in Paddle

    def project(hidden: Any) -> Any:
        fed_back = act(hidden @ proj_weight)
        return jnp.clip(fed_back, -proj_clip, proj_clip) if proj_clip > 0 else fed_back

    cell = Cell(
        weight, bias, use_peepholes, gate, cell_act, candidate, stops=False, limit=cell_clip, project=project
    )
    projection, state = run_lstm(x, h0, c0, cell, reverse=is_reverse)
    return projection, state, None, None, None


class Cell(NamedTuple):
    """One step of a cell; ``project`` makes of the hidden state what is fed back and given out."""

    weight: Any
    bias: Any
    use_peepholes: bool
    gate: Any
    act: Any
    candidate: Any
    stops: bool = False  # as in Fluid, no gradient passes through the new state
    limit: float = 0.0
    project: Any = None

    @property
    def width(self) -> int:
        """The width of the state."""
        return int(self.weight.shape[1]) // 4

    def step(self, gates: Any, last: Any, last_state: Any) -> tuple[Any, Any]:
        """Return what is given out, and the new state."""
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


def find_state(state: Any, x: Packed) -> Any:
    """Return a first state, one row for each sequence of ``x``, that may have a LoD of its own."""
    if not isinstance(state, Packed):
        return state
    if not state.full or state.rows.shape[0] != x.count:
        raise LoweringError("the first state has no row for each sequence")
    return state.rows


def run_lstm(x: Any, h0: Any, c0: Any, cell: Cell, *, reverse: bool) -> tuple[Packed, Packed]:
    """Return what a cell gives out along every sequence, and its states."""
    require_sequences(x)
    steps, there = to_steps(x, reverse=reverse)

    def run(carry: Any, gates: Any) -> Any:
        new = cell.step(gates, *carry)
        return new, new

    first = (
        jnp.zeros((x.count, cell.weight.shape[0]), x.rows.dtype) if h0 is None else find_state(h0, x),
        jnp.zeros((x.count, cell.width), x.rows.dtype) if c0 is None else find_state(c0, x),
    )
    bounded = cell.project is None and all(f in _BOUNDED for f in (cell.gate, cell.act, cell.candidate))
    results = _scan(run, first, steps, there, bounded=bounded)
    hidden, state = (x.replace(from_steps(x, result, reverse=reverse)) for result in results)
    return hidden, state


def _step_gru(gates: Any, last: Any, weight: Any, gate: Any, act: Any, origin: bool) -> tuple[Any, Any, Any]:
    """Return the gates, the reset state and the new state of one step."""
    width = last.shape[1]
    flat = weight.reshape(-1)
    cut = 2 * width * width
    both = gate(gates[:, : 2 * width] + last @ flat[:cut].reshape(width, 2 * width))
    update, reset = both[:, :width], both[:, width:]
    reset_last = reset * last
    candidate = act(gates[:, 2 * width :] + reset_last @ flat[cut:].reshape(width, width))
    old, new = (candidate, last) if origin else (last, candidate)
    return jnp.concatenate([both, candidate], 1), reset_last, update * (new - old) + old


@lowers("gru", sequences=True)
def gru(
    x: Any, h0: Any, weight: Any, bias: Any,
    *, activation: str, gate_activation: str, is_reverse: bool, origin_mode: bool,
) -> Results:  # fmt: skip
    require_sequences(x)
    gate, act = ACTIVATIONS[gate_activation], ACTIVATIONS[activation]
    steps, there = to_steps(x, reverse=is_reverse)
    steps = steps if bias is None else steps + bias.reshape(-1)

    def run(last: Any, gates: Any) -> Any:
        _, _, hidden = _step_gru(gates, last, weight, gate, act, origin_mode)
        return hidden, hidden

    first = jnp.zeros((x.count, weight.shape[0]), x.rows.dtype) if h0 is None else find_state(h0, x)
    hidden = _scan(run, first, steps, there, bounded=gate in _BOUNDED and act in _BOUNDED)
    return None, None, None, x.replace(from_steps(x, hidden, reverse=is_reverse))


@lowers("gru_unit")
def gru_unit(
    x: Any, last: Any, weight: Any, bias: Any, *, activation: int, gate_activation: int, origin_mode: bool
) -> Results:
    gate, act = ACTIVATIONS[_BY_INDEX[gate_activation]], ACTIVATIONS[_BY_INDEX[activation]]
    return _step_gru(x if bias is None else x + bias, last, weight, gate, act, origin_mode)


@lowers("lstm_unit")
def lstm_unit(x: Any, c_prev: Any, *, forget_bias: float) -> tuple[Any, Any]:
    i, f, o, g = jnp.split(x, 4, 1)
    c = jax.nn.sigmoid(f + forget_bias) * c_prev + jax.nn.sigmoid(i) * jnp.tanh(g)
    return c, jax.nn.sigmoid(o) * jnp.tanh(c)
