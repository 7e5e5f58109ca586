"""GRU cells along sequences, and one step of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from paddlelike.compiled.lowering.recurrent.lstm import ACTIVATIONS, BOUNDED, find_state, scan_steps
from paddlelike.compiled.lowering.sequence.sequence import from_steps, require_sequences, to_steps
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.values import Packed, Value

_BY_INDEX = ("identity", "sigmoid", "tanh", "relu")


def _step_gru(
    gates: jax.Array, last: jax.Array, weight: jax.Array, gate: jax.Array, act: jax.Array, origin: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
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
    x: Packed, h0: Value | None, weight: jax.Array, bias: jax.Array | None,
    *, activation: str, gate_activation: str, is_reverse: bool, origin_mode: bool,
) -> Results:  # fmt: skip
    require_sequences(x)
    gate, act = ACTIVATIONS[gate_activation], ACTIVATIONS[activation]
    steps, there = to_steps(x, reverse=is_reverse)
    steps = steps if bias is None else steps + bias.reshape(-1)

    def run(last: jax.Array, gates: jax.Array) -> tuple[jax.Array, jax.Array]:
        _, _, hidden = _step_gru(gates, last, weight, gate, act, origin_mode)
        return hidden, hidden

    first = jnp.zeros((x.count, weight.shape[0]), x.rows.dtype) if h0 is None else find_state(h0, x)
    hidden = scan_steps(run, first, steps, there, bounded=gate in BOUNDED and act in BOUNDED)
    return None, None, None, x.replace(from_steps(x, hidden, reverse=is_reverse))


@lowers("gru_unit")
def gru_unit(
    x: jax.Array,
    last: jax.Array,
    weight: jax.Array,
    bias: jax.Array | None,
    *,
    activation: int,
    gate_activation: int,
    origin_mode: bool,
) -> Results:
    gate, act = ACTIVATIONS[_BY_INDEX[gate_activation]], ACTIVATIONS[_BY_INDEX[activation]]
    return _step_gru(x if bias is None else x + bias, last, weight, gate, act, origin_mode)
