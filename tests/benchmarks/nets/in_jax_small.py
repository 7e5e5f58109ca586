"""The smaller nets in JAX, as one would write them by hand; they begin with the values that Fluid draws.

Each is a function of the state and the batch that returns both the new state and the loss.
"""

import data
import in_fluid
import jax
import jax.numpy as jnp
from jax import lax


def start(net):
    """Return the initial state: parameters in the order in which the net creates them, moments, steps done."""
    import paddlelike

    params = [jnp.asarray(p) for p in in_fluid.draw_parameters(net, paddlelike)]
    if net not in ADAM:
        return (params,)
    return params, [jnp.zeros_like(p) for p in params], [jnp.zeros_like(p) for p in params], jnp.zeros(())


def _entropy(logits, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y, 1).mean()


def _make_sgd(loss_of, rate):
    def step(state, batch):
        loss, grads = jax.value_and_grad(loss_of)(state[0], batch)
        return ([p - rate * g for p, g in zip(state[0], grads, strict=True)],), loss

    return step


def _make_adam(loss_of):
    def step(state, batch, axis=None):
        loss, grads = jax.value_and_grad(loss_of)(state[0], batch)
        return _update(state, grads if axis is None else lax.pmean(grads, axis)), loss

    return step


def _update(state, grads):
    params, first, second, count = state
    first = [0.9 * m + 0.1 * g for m, g in zip(first, grads, strict=True)]
    second = [0.999 * v + 0.001 * g * g for v, g in zip(second, grads, strict=True)]
    rate = _correct(count + 1)
    params = [p - rate * m / (jnp.sqrt(v) + 1e-8) for p, m, v in zip(params, first, second, strict=True)]
    return params, first, second, count + 1


def _correct(count, rate=1e-3):
    return rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)


def _fit_a_line(params, batch):
    w, b = params
    return jnp.square(batch["x"] @ w + b - batch["y"]).mean()


def _chain(state, batch):
    # A value that XLA does not know, or else it would compute the factor of all of them.
    by = lax.optimization_barrier(jnp.float32(1.0001))
    x = batch["x"]
    for _ in range(1000):
        x = x * by
    return state, x


def _mlp(params, batch):
    w1, b1, w2, b2, w3, b3 = params
    h = jax.nn.relu(jax.nn.relu(batch["x"] @ w1 + b1) @ w2 + b2)
    return _entropy(h @ w3 + b3, batch["y"])


def _lenet(params, batch):
    w1, b1, w2, b2, w3, b3 = params
    x = batch["x"]
    for w, b in ((w1, b1), (w2, b2)):
        x = lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        x = jax.nn.relu(x + b.reshape(-1, 1, 1))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return _entropy(x.reshape(len(x), -1) @ w3 + b3, batch["y"])


def _word2vec(params, batch):
    table, w1, b1, w2, b2 = params
    rows = jnp.concatenate([table[batch[f"w{i}"][:, 0]] for i in range(4)], 1)
    return _entropy(jax.nn.sigmoid(rows @ w1 + b1) @ w2 + b2, batch["y"])


def _run_layer(x, w_in, b_in, w, b):
    """As in Fluid, gradients stop at the cell. ``x`` is ``(T, N, C)``."""

    def step(carry, gates):
        hidden, cell = carry
        candidate, i, f, o = jnp.split(gates + hidden @ w, 4, 1)
        cell = jnp.tanh(candidate) * jax.nn.sigmoid(i) + cell * jax.nn.sigmoid(f)
        hidden = jax.nn.sigmoid(o) * lax.stop_gradient(jnp.tanh(cell))
        return (hidden, lax.stop_gradient(cell)), hidden

    zeros = jnp.zeros((x.shape[1], len(w)))
    return lax.scan(step, (zeros, zeros), x @ w_in + (b_in + b[0]))[1]


def _lstm(params, batch):
    x = batch["x"].reshape(32, data.STEPS, -1).swapaxes(0, 1)
    x = _run_layer(_run_layer(x, *params[:4]), *params[4:8])
    return _entropy(x[-1] @ params[8] + params[9], batch["y"])


def _wide_deep(state, batch, axis=None):
    """Only the rows of the batch are updated; as in Fluid, with the correction of the next step.

    ``axis``: of a mesh of workers, of which each has a part of the batch.
    """
    params, first, second, count = state
    flat = batch["ids"].reshape(-1)
    everything = flat if axis is None else lax.all_gather(flat, axis, tiled=True)
    unique, places = jnp.unique(everything, size=len(everything), return_inverse=True, fill_value=data.IDS)
    if axis is not None:
        places = lax.dynamic_slice_in_dim(places, lax.axis_index(axis) * len(flat), len(flat))

    def loss_of(rows, dense):
        wide, deep = (table[places].reshape(*batch["ids"].shape, -1) for table in rows)
        h = jnp.concatenate([batch["x"], deep.reshape(len(deep), -1)], 1)
        h = jax.nn.relu(jax.nn.relu(h @ dense[0] + dense[1]) @ dense[2] + dense[3])
        z = h @ dense[4] + dense[5] + wide.sum(1)
        return (jnp.maximum(z, 0) - z * batch["y"] + jnp.log1p(jnp.exp(-jnp.abs(z)))).mean()

    rows = [table.at[unique].get(mode="clip") for table in params[:2]]
    loss, grads = jax.value_and_grad(loss_of, (0, 1))(rows, params[2:])
    d_rows, d_dense = grads if axis is None else lax.pmean(grads, axis)
    dense = _update((params[2:], first[2:], second[2:], count), d_dense)
    tables, rate = [], _correct(count + 2)
    for p, m, v, row, d in zip(params, first, second, rows, d_rows, strict=False):
        one = 0.9 * m.at[unique].get(mode="clip") + 0.1 * d
        two = 0.999 * v.at[unique].get(mode="clip") + 0.001 * d * d
        row = row - rate * one / (jnp.sqrt(two) + 1e-8)
        tables.append([old.at[unique].set(new, mode="drop") for old, new in ((p, row), (m, one), (v, two))])
    pieces = [[*(table[i] for table in tables), *dense[i]] for i in range(3)]
    return (*pieces, count + 1), loss


ADAM = {"mlp", "lenet", "lstm", "wide_deep"}
STEPS = {
    "fit_a_line": _make_sgd(_fit_a_line, 0.01),
    "chain": _chain,
    "mlp": _make_adam(_mlp),
    "lenet": _make_adam(_lenet),
    "word2vec": _make_sgd(_word2vec, 0.01),
    "lstm": _make_adam(_lstm),
    "wide_deep": _wide_deep,
}
