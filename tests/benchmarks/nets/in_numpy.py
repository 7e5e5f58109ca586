"""The nets in numpy by hand: what a step costs with nothing around the arithmetic.

Each step works in fixed buffers. The parameters begin with the values that Fluid draws, so that the losses are
those of the net in Fluid's interface, to rounding.
"""

import data
import in_fluid
import numpy as np
from by_hand import Adam, softmax_loss
from by_hand_images import lenet, resnet20
from by_hand_sequences import encoder, lstm
from by_hand_sparse import wide_deep


def prepare(net):
    """Return a function that trains one step and returns the loss. Raises KeyError for a net not written."""
    import paddlelike

    return NETS[net](data.make_batch(net), in_fluid.draw_parameters(net, paddlelike))


def fit_a_line(batch, params):
    x, y, xt = batch["x"], batch["y"], batch["x"].T
    w, b = params
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


def chain(batch, params):
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


def mlp(batch, params):
    x, y, at = batch["x"], batch["y"][:, 0], np.arange(64)
    adam = Adam(params)
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
        loss = softmax_loss(out, y, at)
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


def word2vec(batch, params):
    ids = np.concatenate([batch[f"w{i}"] for i in range(4)], 1)
    y, at, rate = batch["y"][:, 0], np.arange(100), np.float32(1e-2)
    table, w1, b1, w2, b2 = params
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
        loss = softmax_loss(out, y, at)
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


NETS = {f.__name__: f for f in (fit_a_line, chain, mlp, lenet, word2vec, resnet20, lstm, encoder, wide_deep)}
