"""Recurrent cells over sequences: gru, lstm, cudnn_lstm; gather_tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from paddlelike.compiled.lowering.sequence.sequence import from_steps, require_sequences, to_steps
from paddlelike.compiled.lowerings import Results, lowers
from paddlelike.compiled.packing import LoweringError
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.compiled.values import Packed, Value
from paddlelike.core import Generator
from paddlelike.ops.kernels.recurrent.lstm import must_stop_gradients
from paddlelike.ops.recurrent.cudnn_lstm import LayerWeights, list_input_widths, split_weights

_BY_INDEX = ("identity", "sigmoid", "tanh", "relu")


def _step_gru(
    gates: Array, last: Array, weight: Array, gate: Array, act: Array, origin: bool
) -> tuple[Array, Array, Array]:
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
    x: Packed, h0: Value | None, weight: Array, bias: Array | None,
    *, activation: str, gate_activation: str, is_reverse: bool, origin_mode: bool,
) -> Results:  # fmt: skip
    require_sequences(x)
    gate, act = ACTIVATIONS[gate_activation], ACTIVATIONS[activation]
    steps, there = to_steps(x, reverse=is_reverse)
    steps = steps if bias is None else steps + bias.reshape(-1)

    def run(last: Array, gates: Array) -> tuple[Array, Array]:
        _, _, hidden = _step_gru(gates, last, weight, gate, act, origin_mode)
        return hidden, hidden

    first = jnp.zeros((x.count, weight.shape[0]), x.rows.dtype) if h0 is None else find_state(h0, x)
    hidden = scan_steps(run, first, steps, there, bounded=gate in BOUNDED and act in BOUNDED)
    return None, None, None, x.replace(from_steps(x, hidden, reverse=is_reverse))


@lowers("gru_unit")
def gru_unit(
    x: Array,
    last: Array,
    weight: Array,
    bias: Array | None,
    *,
    activation: int,
    gate_activation: int,
    origin_mode: bool,
) -> Results:
    gate, act = ACTIVATIONS[_BY_INDEX[gate_activation]], ACTIVATIONS[_BY_INDEX[activation]]
    return _step_gru(x if bias is None else x + bias, last, weight, gate, act, origin_mode)


ACTIVATIONS: Final[dict[str, Callable[[Array], Array]]] = {
    "identity": lambda x: x,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
}


#: With these a state stays finite after the end of its sequence, where it is not read.
BOUNDED = (jax.nn.sigmoid, jnp.tanh)


def scan_steps(
    step: Callable[..., Array],
    first: tuple[Array, Array] | Array,
    steps: Array,
    there: Array,
    *,
    bounded: bool,
) -> Array:
    """Return the outputs of ``step(carry, row)`` along sequences; ``step`` returns the new carry and an
    output.

    After the end of a sequence its carry is kept, unless the carry is ``bounded``, that is, always finite.
    (Keeping it takes a sixth of the time of an LSTM.)
    """

    def run(carry: Array, given: Array) -> tuple[Any, Any]:
        row, here = given
        new, results = step(carry, row)
        if not bounded:
            new = jax.tree_util.tree_map(lambda one, old: jnp.where(here[:, None], one, old), new, carry)
        return new, results

    return jax.lax.scan(run, first, (steps, there))[1]


@lowers("lstm", sequences=True)
def lstm(
    x: Value, h0: Value, c0: Value, weight: Array, bias: Value,
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
    x: Value, h0: Value, c0: Value, weight: Array, proj_weight: Array, bias: Value,
    *, use_peepholes: bool, is_reverse: bool, gate_activation: str, cell_activation: str,
    candidate_activation: str, cell_clip: float, proj_clip: float, proj_activation: str,
) -> Results:  # fmt: skip
    gate, cell_act, candidate = (
        ACTIVATIONS[name] for name in (gate_activation, cell_activation, candidate_activation)
    )
    act = ACTIVATIONS["identity" if proj_activation == "identity" else cell_activation]  # as in Paddle

    def project(hidden: Array) -> Array:
        fed_back = act(hidden @ proj_weight)
        return jnp.clip(fed_back, -proj_clip, proj_clip) if proj_clip > 0 else fed_back

    stops = must_stop_gradients(weight, cell_clip)
    cell = Cell(weight, bias, use_peepholes, gate, cell_act, candidate, stops, cell_clip, project)
    projection, state = run_lstm(x, h0, c0, cell, reverse=is_reverse)
    return projection, state, None, None, None


class Cell(NamedTuple):
    """One step of a cell; ``project`` maps the hidden state to the output that is fed back."""

    weight: Array
    bias: Array
    use_peepholes: bool
    gate: Callable[[Array], Array]
    act: Callable[[Array], Array]
    candidate: Callable[[Array], Array]
    stops: bool = False  # as in Fluid, no gradient passes through the new state
    limit: float = 0.0
    project: Callable[[Array], Array] | None = None

    @property
    def width(self) -> int:
        """The width of the state."""
        return int(self.weight.shape[1]) // 4

    def step(self, gates: Array, last: Array, last_state: Array) -> tuple[Array, Array]:
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


def find_state(state: Array | Packed, x: Packed) -> Array:
    """Return the initial state, one row for each sequence of ``x``; it may have its own LoD."""
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

    def run(carry: Array, gates: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
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


_ORDER = np.array([2, 0, 1, 3])  # gates as cuDNN orders them, in the order of a cell


@lowers("cudnn_lstm", draws=True)
def cudnn_lstm(
    x: Array, h: Array, c: Array, w: Array, cache: Array,
    *, dropout_prob: float, is_bidirec: bool, input_size: int, hidden_size: int, num_layers: int,
    is_test: bool, seed: int, ctx: OpContext,
) -> tuple[Array, Array, Array]:  # fmt: skip
    directions = 2 if is_bidirec else 1
    widths = list_input_widths(input_size, hidden_size, num_layers, is_bidirec)
    weights = split_weights(w, widths, hidden_size)
    masks = None
    if dropout_prob and not is_test and num_layers > 1:

        def draw(generator: Generator, count: int) -> np.ndarray[Any, Any]:
            return generator.draw(count) >= dropout_prob

        shape = (num_layers - 1, *x.shape[:2], hidden_size * directions)
        masks = ctx.draw(max(seed, 0), shape, np.bool_, draw)
    last_h, last_c = [], []
    for layer in range(num_layers):
        if masks is not None and layer:
            x = x * (masks[layer - 1].astype(x.dtype) / x.dtype.type(1 - dropout_prob))
        outs = []
        for k in range(layer * directions, (layer + 1) * directions):
            out, hidden, state = _run(weights[k], x, h[k], c[k], reverse=k > layer * directions)
            outs.append(out)
            last_h.append(hidden)
            last_c.append(state)
        x = jnp.concatenate(outs, 2)
    return x, jnp.stack(last_h), jnp.stack(last_c)


def _run(weights: LayerWeights, x: Array, h: Array, c: Array, *, reverse: bool) -> tuple[Array, Array, Array]:
    """Return the hidden states (T, N, H) of a layer in one direction, and the last states."""
    width = weights.h.shape[1]
    flat = weights.x[_ORDER].reshape(4 * width, -1)
    recurrent = weights.h[_ORDER].reshape(4 * width, width).T
    bias = (weights.bias_x + weights.bias_h)[_ORDER].reshape(-1)
    cell = Cell(recurrent, bias, False, jax.nn.sigmoid, jnp.tanh, jnp.tanh)

    def step(carry: Array, gates: Array) -> tuple[tuple[Array, Array], Array]:
        hidden, state = cell.step(gates, *carry)
        return (hidden, state), hidden

    (hidden, state), out = jax.lax.scan(step, (h, c), x @ flat.T, reverse=reverse)
    return out, hidden, state


@lowers("gather_tree")
def gather_tree(ids: Array, parents: Array) -> Array:
    start = jnp.broadcast_to(jnp.arange(ids.shape[2], dtype=parents.dtype), ids.shape[1:])

    def step(beams: Array, given: tuple[Array, ...]) -> tuple[Array, Array]:
        row, above = given
        return jnp.take_along_axis(above, beams, 1), jnp.take_along_axis(row, beams, 1)

    _, out = jax.lax.scan(step, start, (ids, parents), reverse=True)
    return out
