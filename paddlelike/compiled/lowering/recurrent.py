"""Recurrent networks along sequences, and their single steps, as ``lax.scan``."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowering.sequence import from_steps, require_sequences, to_steps
from paddlelike.compiled.table import lowers
from paddlelike.framework.quirks import follows_fluid

Results = tuple[Any, ...]

_ACTIVATIONS: Any = {
    "identity": lambda x: x,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
}
_BY_INDEX = ("identity", "sigmoid", "tanh", "relu")


def _choose(there: Any, new: Any, old: Any) -> Any:
    return jnp.where(there[:, None], new, old)


@lowers("lstm", sequences=True)
def lstm(
    x: Any, h0: Any, c0: Any, weight: Any, bias: Any,
    *, use_peepholes: bool, is_reverse: bool, gate_activation: str, cell_activation: str,
    candidate_activation: str,
) -> Results:  # fmt: skip
    require_sequences(x)
    width = weight.shape[0]
    parts = bias.reshape(-1, width)
    peepholes = parts[4:7] if use_peepholes else None
    stops = weight.dtype == jnp.float32 and weight.shape[1] % 32 == 0 and follows_fluid("lstm_cell_gradient")
    gate, cell, candidate = (
        _ACTIVATIONS[name] for name in (gate_activation, cell_activation, candidate_activation)
    )
    steps, there = to_steps(x, reverse=is_reverse)
    start = jnp.zeros((x.count, width), x.rows.dtype)

    def run(carry: Any, given: Any) -> Any:
        last, last_state = carry
        gates, here = given
        gates = gates + parts[:4].reshape(-1) + last @ weight
        c, i, f, o = jnp.split(gates, 4, 1)
        if peepholes is not None:
            i, f = i + last_state * peepholes[0], f + last_state * peepholes[1]
        state = candidate(c) * gate(i) + last_state * gate(f)
        state = jax.lax.stop_gradient(state) if stops else state
        o = o + state * peepholes[2] if peepholes is not None else o
        hidden = gate(o) * cell(state)
        return (_choose(here, hidden, last), _choose(here, state, last_state)), (hidden, state)

    first = (start if h0 is None else h0, start if c0 is None else c0)
    _, (hidden, state) = jax.lax.scan(run, first, (steps, there))
    return (
        x.replace(from_steps(x, hidden, reverse=is_reverse)),
        x.replace(from_steps(x, state, reverse=is_reverse)),
        None,
        None,
    )


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
    gate, act = _ACTIVATIONS[gate_activation], _ACTIVATIONS[activation]
    steps, there = to_steps(x, reverse=is_reverse)
    steps = steps if bias is None else steps + bias.reshape(-1)

    def run(last: Any, given: Any) -> Any:
        gates, here = given
        _, _, hidden = _step_gru(gates, last, weight, gate, act, origin_mode)
        return _choose(here, hidden, last), hidden

    first = jnp.zeros((x.count, weight.shape[0]), x.rows.dtype) if h0 is None else h0
    _, hidden = jax.lax.scan(run, first, (steps, there))
    return None, None, None, x.replace(from_steps(x, hidden, reverse=is_reverse))


@lowers("gru_unit")
def gru_unit(
    x: Any, last: Any, weight: Any, bias: Any, *, activation: int, gate_activation: int, origin_mode: bool
) -> Results:
    gate, act = _ACTIVATIONS[_BY_INDEX[gate_activation]], _ACTIVATIONS[_BY_INDEX[activation]]
    return _step_gru(x if bias is None else x + bias, last, weight, gate, act, origin_mode)


@lowers("lstm_unit")
def lstm_unit(x: Any, c_prev: Any, *, forget_bias: float) -> tuple[Any, Any]:
    i, f, o, g = jnp.split(x, 4, 1)
    c = jax.nn.sigmoid(f + forget_bias) * c_prev + jax.nn.sigmoid(i) * jnp.tanh(g)
    return c, jax.nn.sigmoid(o) * jnp.tanh(c)
