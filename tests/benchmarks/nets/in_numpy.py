"""The nets in numpy by hand: what a step costs with nothing around the arithmetic.

Only nets for which the fastest sequence of numpy's own calls is plain; each step works in fixed buffers.
"""

import data
import numpy as np


def prepare(net):
    """Return a function that trains one step and returns the loss. Raises KeyError for a net not written."""
    return NETS[net](data.make_batch(net), np.random.RandomState(5))


def fit_a_line(batch, rng):
    x, y, xt = batch["x"], batch["y"], batch["x"].T
    w, b = np.full((13, 1), 0.1, "f4"), np.zeros(1, "f4")
    out, dw, rate = np.empty((32, 1), "f4"), np.empty((13, 1), "f4"), np.float32(0.01 * 2 / 32)

    def step():
        np.matmul(x, w, out=out)
        np.add(out, b, out=out)
        np.subtract(out, y, out=out)
        loss = np.vdot(out, out) / 32
        np.matmul(xt, out, out=dw)
        np.multiply(dw, rate, out=dw)
        np.subtract(w, dw, out=w)
        np.subtract(b, out.sum() * rate, out=b)
        return loss

    return step


def chain(batch, rng):
    x, by = batch["x"], np.float32(1.0001)
    a, b = np.empty_like(x), np.empty_like(x)

    def step():
        np.multiply(x, by, out=a)
        multiply = np.multiply
        one, other = a, b
        for _ in range(999):
            multiply(one, by, out=other)
            one, other = other, one
        return one

    return step


class _Adam:
    def __init__(self, params, rate=1e-3):
        total = sum(p.size for p in params)
        self.flat, self.grad = np.empty(total, "f4"), np.empty(total, "f4")
        self.m, self.v = np.zeros(total, "f4"), np.zeros(total, "f4")
        self.params, self.grads, at = [], [], 0
        for p in params:
            view = self.flat[at : at + p.size].reshape(p.shape)
            view[...] = p
            self.params.append(view)
            self.grads.append(self.grad[at : at + p.size].reshape(p.shape))
            at += p.size
        self.a, self.b, self.rate, self.b1, self.b2 = (
            np.empty(1 << 14, "f4"),
            np.empty(1 << 14, "f4"),
            rate,
            1.0,
            1.0,
        )

    def update(self):
        self.b1 *= 0.9
        self.b2 *= 0.999
        rate = np.float32(self.rate * (1 - self.b2) ** 0.5 / (1 - self.b1))
        one, two = np.float32(0.1), np.float32(0.001)
        for start in range(0, len(self.flat), len(self.a)):
            cut = slice(start, start + len(self.a))
            g, m, v, p = self.grad[cut], self.m[cut], self.v[cut], self.flat[cut]
            a, b = self.a[: len(g)], self.b[: len(g)]
            np.multiply(m, np.float32(0.9), out=m)
            np.multiply(g, one, out=a)
            np.add(m, a, out=m)
            np.multiply(v, np.float32(0.999), out=v)
            np.multiply(g, g, out=a)
            np.multiply(a, two, out=a)
            np.add(v, a, out=v)
            np.sqrt(v, out=a)
            np.add(a, np.float32(1e-8), out=a)
            np.divide(m, a, out=b)
            np.multiply(b, rate, out=b)
            np.subtract(p, b, out=p)


def _softmax_loss(logits, labels, at):
    """Return the mean loss; the logits become their gradient."""
    logits -= logits.max(1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(1, keepdims=True)
    loss = -np.log(logits[at, labels]).mean()
    logits[at, labels] -= 1
    logits /= np.float32(len(logits))
    return loss


def _dense(rng, rows, columns):
    return (rng.standard_normal((rows, columns)) * (2 / rows) ** 0.5).astype("f4"), np.zeros(columns, "f4")


def mlp(batch, rng):
    x, y, at = batch["x"], batch["y"][:, 0], np.arange(64)
    adam = _Adam([*_dense(rng, 784, 200), *_dense(rng, 200, 200), *_dense(rng, 200, 10)])
    w1, b1, w2, b2, w3, b3 = adam.params
    dw1, db1, dw2, db2, dw3, db3 = adam.grads
    h1, h2, d1, d2 = (np.empty((64, 200), "f4") for _ in range(4))
    out = np.empty((64, 10), "f4")

    def step():
        for source, w, b, h in ((x, w1, b1, h1), (h1, w2, b2, h2)):
            np.matmul(source, w, out=h)
            np.add(h, b, out=h)
            np.maximum(h, 0, out=h)
        np.matmul(h2, w3, out=out)
        np.add(out, b3, out=out)
        loss = _softmax_loss(out, y, at)
        np.matmul(h2.T, out, out=dw3)
        np.add.reduce(out, 0, out=db3)
        np.matmul(out, w3.T, out=d2)
        np.multiply(d2, h2 > 0, out=d2)
        np.matmul(h1.T, d2, out=dw2)
        np.add.reduce(d2, 0, out=db2)
        np.matmul(d2, w2.T, out=d1)
        np.multiply(d1, h1 > 0, out=d1)
        np.matmul(x.T, d1, out=dw1)
        np.add.reduce(d1, 0, out=db1)
        adam.update()
        return loss

    return step


def word2vec(batch, rng):
    ids = np.concatenate([batch[f"w{i}"] for i in range(4)], 1)
    y, at, rate = batch["y"][:, 0], np.arange(100), np.float32(1e-2)
    table = (rng.standard_normal((2073, 32)) * 0.1).astype("f4")
    w1, b1 = _dense(rng, 128, 256)
    w2, b2 = _dense(rng, 256, 2073)
    h, out = np.empty((100, 256), "f4"), np.empty((100, 2073), "f4")
    dw2, dw1, flat = np.empty_like(w2), np.empty_like(w1), ids.reshape(-1)

    def step():
        rows = table[ids].reshape(100, 128)
        np.matmul(rows, w1, out=h)
        np.add(h, b1, out=h)
        np.multiply(h, np.float32(0.5), out=h)
        np.tanh(h, out=h)
        np.multiply(h, np.float32(0.5), out=h)
        np.add(h, np.float32(0.5), out=h)
        np.matmul(h, w2, out=out)
        np.add(out, b2, out=out)
        loss = _softmax_loss(out, y, at)
        np.multiply(out, rate, out=out)
        d = out @ w2.T
        np.matmul(h.T, out, out=dw2)
        np.subtract(w2, dw2, out=w2)
        np.subtract(b2, out.sum(0), out=b2)
        d *= h
        d *= 1 - h
        d_rows = d @ w1.T
        np.matmul(rows.T, d, out=dw1)
        np.subtract(w1, dw1, out=w1)
        np.subtract(b1, d.sum(0), out=b1)
        np.subtract.at(table, flat, d_rows.reshape(400, 32))
        return loss

    return step


NETS = {f.__name__: f for f in (fit_a_line, chain, mlp, word2vec)}
