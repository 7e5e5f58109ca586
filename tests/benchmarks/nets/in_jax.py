"""The nets in JAX, as one would write them by hand: one jitted step that updates donated parameters."""

import data
import in_jax_small
import jax
import jax.numpy as jnp
import numpy as np


def prepare(net):
    """Return a function that trains one step and returns the loss."""
    batch = {name: jnp.asarray(array) for name, array in data.make_batch(net).items()}
    if net in in_jax_small.STEPS:
        state, step = in_jax_small.start(net), in_jax_small.STEPS[net]
    else:
        init, loss_of, update = NETS[net]
        state, step = init(np.random.RandomState(5)), _make_step(loss_of, update)
    compiled = jax.jit(step, donate_argnums=0)
    if net in data.LONG:
        compiled = compiled.lower(state, batch).compile()

    def run():
        nonlocal state
        state, loss = compiled(state, batch)
        return np.asarray(loss)

    return run


def _make_step(loss_of, update):
    def step(state, batch):
        params, rest, moments = state
        (loss, rest), grads = jax.value_and_grad(loss_of, has_aux=True)(params, rest, batch)
        params, moments = update(params, grads, moments)
        return (params, rest, moments), loss

    return step


def _adam(params, grads, moments, rate=1e-3):
    first, second, count = moments
    count = count + 1
    first = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree_util.tree_map(lambda m, g: 0.999 * m + 0.001 * g * g, second, grads)
    scale = rate * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    params = jax.tree_util.tree_map(
        lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), params, first, second
    )
    return params, (first, second, count)


def _momentum(params, grads, moments, rate=0.1):
    moments = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, moments, grads)
    return jax.tree_util.tree_map(lambda p, v: p - rate * v, params, moments), moments


def _zeros(tree):
    return jax.tree_util.tree_map(jnp.zeros_like, tree)


def _entropy(logits, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y, 1).mean()


# ResNets: parameters in the order in which the forward pass takes them


class _Convolutions:
    """Gives parameters one after the other; creates them at the first pass."""

    def __init__(self, params, means, rng=None):
        self.params, self.means, self.rng = params, means, rng
        self.index, self.moved = 0, []

    def convolve(self, x, filters, size, stride=1, act=True):
        if self.rng is not None:
            fan = x.shape[1] * size * size
            w = self.rng.standard_normal((filters, x.shape[1], size, size)) * (2 / fan) ** 0.5
            self.params.append((jnp.asarray(w, "float32"), jnp.ones(filters), jnp.zeros(filters)))
            self.means.append((jnp.zeros(filters), jnp.ones(filters)))
        (w, scale, bias), (mean, variance) = self.params[self.index], self.means[self.index]
        self.index += 1
        pad = (size - 1) // 2
        x = jax.lax.conv_general_dilated(
            x, w, (stride, stride), ((pad, pad), (pad, pad)), dimension_numbers=("NCHW", "OIHW", "NCHW")
        )
        m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
        self.moved.append((0.9 * mean + 0.1 * m, 0.9 * variance + 0.1 * v))
        shape = (1, -1, 1, 1)
        x = (x - m.reshape(shape)) * (scale * jax.lax.rsqrt(v + 1e-5)).reshape(shape) + bias.reshape(shape)
        return jax.nn.relu(x) if act else x


def _resnet20(net, x):
    x = net.convolve(x, 16, 3)
    for filters in (16, 32, 64):
        for block in range(3):
            stride = 2 if filters > 16 and block == 0 else 1
            inner = net.convolve(net.convolve(x, filters, 3, stride), filters, 3, act=False)
            short = net.convolve(x, filters, 1, 2, act=False) if stride == 2 else x
            x = jax.nn.relu(inner + short)
    return x.mean((2, 3))


def _resnet50(net, x):
    x = net.convolve(x, 64, 7, 2)
    x = jax.lax.reduce_window(
        x, -np.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1))
    )
    for stage, blocks in enumerate((3, 4, 6, 3)):
        filters = 64 * 2**stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            inner = net.convolve(net.convolve(x, filters, 1), filters, 3, stride)
            short = x if block else net.convolve(x, 4 * filters, 1, stride, act=False)
            x = jax.nn.relu(net.convolve(inner, 4 * filters, 1, act=False) + short)
    return x.mean((2, 3))


def _make_resnet(forward, size, classes, rate):
    def init(rng):
        net = _Convolutions([], [], rng)
        width = forward(net, jnp.zeros((1, 3, size, size))).shape[1]
        last = (jnp.asarray(rng.standard_normal((width, classes)) * 0.05, "float32"), jnp.zeros(classes))
        params = (net.params, last)
        return params, net.means, _zeros(params)

    def loss(params, means, batch):
        net = _Convolutions(params[0], means)
        x = forward(net, batch["x"])
        return _entropy(x @ params[1][0] + params[1][1], batch["y"]), net.moved

    return init, loss, lambda p, g, m: _momentum(p, g, m, rate)


# Transformers


def _norm(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias


def _layer(x, p, heads, act):
    batch, length, width = x.shape
    size = width // heads

    def split(w, b):
        return (x @ w + b).reshape(batch, length, heads, size).transpose(0, 2, 1, 3)

    q, k, v = (split(*pair) for pair in p["qkv"])
    weights = jax.nn.softmax(q @ k.swapaxes(2, 3) * size**-0.5)
    mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape)
    x = _norm(x + mixed @ p["mix"][0] + p["mix"][1], *p["norm1"])
    inner = act(x @ p["up"][0] + p["up"][1])
    return _norm(x + inner @ p["down"][0] + p["down"][1], *p["norm2"])


def _make_layer(rng, width):
    def pair(rows, columns):
        return jnp.asarray(rng.standard_normal((rows, columns)) * 0.02, "float32"), jnp.zeros(columns)

    return {
        "qkv": [pair(width, width) for _ in range(3)],
        "mix": pair(width, width),
        "up": pair(width, 4 * width),
        "down": pair(4 * width, width),
        "norm1": (jnp.ones(width), jnp.zeros(width)),
        "norm2": (jnp.ones(width), jnp.zeros(width)),
    }


def _make_transformer(words, width, heads, depth, classes, rate, whole):
    """``whole``: every place guesses a class, without places and a first norm; else the first one does."""

    def init(rng):
        def table(*shape):
            return jnp.asarray(rng.standard_normal(shape) * 0.02, "float32")

        params = {
            "words": table(words, width),
            "layers": [_make_layer(rng, width) for _ in range(depth)],
            "guess": (table(width, classes), jnp.zeros(classes)),
        }
        if not whole:
            params |= {"places": table(64, width), "norm": (jnp.ones(width), jnp.zeros(width))}
        return params, (), (_zeros(params), _zeros(params), jnp.zeros(()))

    def loss(params, rest, batch):
        x = params["words"][batch["x"]]
        if not whole:
            x = _norm(x + params["places"], *params["norm"])
        act = jax.nn.relu if whole else lambda x: jax.nn.gelu(x, approximate=False)
        for p in params["layers"]:
            x = _layer(x, p, heads, act)
        x = x.reshape(-1, width) if whole else x[:, 0]
        return _entropy(x @ params["guess"][0] + params["guess"][1], batch["y"]), rest

    return init, loss, lambda p, g, m: _adam(p, g, m, rate)


NETS = {
    "resnet20": _make_resnet(_resnet20, 32, 10, 0.1),
    "resnet50": _make_resnet(_resnet50, 224, 1000, 0.01),
    "encoder": _make_transformer(1000, 128, 4, 1, 1000, 1e-3, whole=True),
    "bert": _make_transformer(30000, 768, 12, 12, 2, 1e-4, whole=False),
}
