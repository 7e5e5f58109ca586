"""Several layers of an LSTM along padded sequences, in both directions: cudnn_lstm."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from paddlelike.compiled.lowering.recurrent.lstm import Cell
from paddlelike.compiled.lowerings import lowers
from paddlelike.compiled.tracing.context import OpContext
from paddlelike.core.random import Generator
from paddlelike.core.tensor import Array
from paddlelike.ops.recurrent.cudnn_lstm import LayerWeights, list_input_widths, split_weights

_ORDER = np.array([2, 0, 1, 3])  # gates as cuDNN orders them, in the order of a cell


@lowers("cudnn_lstm", draws=True)
def cudnn_lstm(
    x: jax.Array, h: jax.Array, c: jax.Array, w: jax.Array, cache: jax.Array,
    *, dropout_prob: float, is_bidirec: bool, input_size: int, hidden_size: int, num_layers: int,
    is_test: bool, seed: int, ctx: OpContext,
) -> tuple[jax.Array, jax.Array, jax.Array]:  # fmt: skip
    directions = 2 if is_bidirec else 1
    widths = list_input_widths(input_size, hidden_size, num_layers, is_bidirec)
    weights = split_weights(w, widths, hidden_size)
    masks = None
    if dropout_prob and not is_test and num_layers > 1:

        def draw(generator: Generator, count: int) -> Array:
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


def _run(
    weights: LayerWeights, x: jax.Array, h: jax.Array, c: jax.Array, *, reverse: bool
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the hidden states (T, N, H) of a layer in one direction, and the last states."""
    width = weights.h.shape[1]
    flat = weights.x[_ORDER].reshape(4 * width, -1)
    recurrent = weights.h[_ORDER].reshape(4 * width, width).T
    bias = (weights.bias_x + weights.bias_h)[_ORDER].reshape(-1)
    cell = Cell(recurrent, bias, False, jax.nn.sigmoid, jnp.tanh, jnp.tanh)

    def step(carry: jax.Array, gates: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        hidden, state = cell.step(gates, *carry)
        return (hidden, state), hidden

    (hidden, state), out = jax.lax.scan(step, (h, c), x @ flat.T, reverse=reverse)
    return out, hidden, state
