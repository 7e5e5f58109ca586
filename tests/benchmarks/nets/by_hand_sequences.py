"""Networks of sequences in numpy by hand."""

import data
import numpy as np
from by_hand import Adam, softmax_loss, sum_rows

WIDTH = 128


class _Lstm:
    """One layer over ``(T, N, 128)``: one product a step, gates in place.

    As in Fluid, only the output gate learns. The products of all steps are nevertheless those of four gates,
    as in any other LSTM.
    """

    def __init__(self, steps, batch):
        self.gates = np.empty((steps, batch, 4 * WIDTH), "f4")
        self.cells, self.active, self.hidden = (np.zeros((steps + 1, batch, WIDTH), "f4") for _ in range(3))
        self.fed, self.d_gate = np.empty((batch, 4 * WIDTH), "f4"), np.zeros((steps, batch, 4 * WIDTH), "f4")
        self.scale = np.full(4 * WIDTH, 0.5, "f4")
        self.scale[:WIDTH] = 1
        self.shift = np.full(4 * WIDTH, 0.5, "f4")
        self.shift[:WIDTH] = 0

    def forward(self, x, w_in, bias, w):
        rows = self.gates.reshape(-1, 4 * WIDTH)
        np.matmul(x.reshape(-1, WIDTH), w_in, out=rows)
        rows += bias
        for t, g in enumerate(self.gates):
            if t:
                np.matmul(self.hidden[t], w, out=self.fed)
                g += self.fed
            g *= self.scale  # a sigmoid is 0.5 tanh(0.5 x) + 0.5
            np.tanh(g, out=g)
            g *= self.scale
            g += self.shift
            state, active = self.cells[t + 1], self.active[t + 1]
            np.multiply(g[:, :WIDTH], g[:, WIDTH : 2 * WIDTH], out=state)
            np.multiply(self.cells[t], g[:, 2 * WIDTH : 3 * WIDTH], out=active)
            state += active
            np.tanh(state, out=active)
            np.multiply(g[:, 3 * WIDTH :], active, out=self.hidden[t + 1])
        return self.hidden[1:]

    def backward(self, d_hidden, w):
        """Return the gradients of the gates before their activations; ``d_hidden`` is overwritten."""
        o, d_o = self.gates[:, :, 3 * WIDTH :], self.d_gate[:, :, 3 * WIDTH :]
        np.subtract(1, o, out=d_o)
        d_o *= o
        d_o *= self.active[1:]
        w_t = w[:, 3 * WIDTH :].T
        for t in range(len(o) - 1, -1, -1):
            d_o[t] *= d_hidden[t]
            if t:
                d_hidden[t - 1] += d_o[t] @ w_t
        return self.d_gate


def lstm(batch, params):
    steps, count = data.STEPS, 32
    x = np.empty((steps, count, WIDTH), "f4")
    y, at = batch["y"][:, 0], np.arange(count)
    adam = Adam(params)
    w_in1, b_in1, w1, b1, w_in2, b_in2, w2, b2, w_last, b_last = adam.params
    grads = adam.grads
    one, two = _Lstm(steps, count), _Lstm(steps, count)
    out, ones = np.empty((count, 10), "f4"), np.ones(steps * count, "f4")
    d_top = np.zeros((steps, count, WIDTH), "f4")

    def add_gradients(seen, d, layer, at):
        rows = d.reshape(-1, 4 * WIDTH)
        np.matmul(seen.reshape(-1, WIDTH).T, rows, out=grads[at])
        grads[at + 1][...] = grads[at + 3][0] = sum_rows(rows, ones)
        np.matmul(layer.hidden[:-1].reshape(-1, WIDTH).T, rows, out=grads[at + 2])

    def step():
        np.copyto(x, batch["x"].reshape(count, steps, WIDTH).swapaxes(0, 1))
        h1 = one.forward(x, w_in1, b_in1 + b1[0], w1)
        h2 = two.forward(h1, w_in2, b_in2 + b2[0], w2)
        np.matmul(h2[-1], w_last, out=out)
        np.add(out, b_last, out=out)
        loss = softmax_loss(out, y, at)
        np.matmul(h2[-1].T, out, out=grads[8])
        np.add.reduce(out, 0, out=grads[9])
        d_top[:-1] = 0
        np.matmul(out, w_last.T, out=d_top[-1])
        d = two.backward(d_top, w2)
        add_gradients(h1, d, two, 4)
        d = one.backward((d.reshape(-1, 4 * WIDTH) @ w_in2.T).reshape(d_top.shape), w1)
        add_gradients(x, d, one, 0)
        adam.update()
        return loss

    return step


class _Norm:
    """layer_norm of rows ``(M, 128)`` in place of its input."""

    def __init__(self, rows):
        self.hat, self.out = np.empty((rows, WIDTH), "f4"), np.empty((rows, WIDTH), "f4")
        self.ones = np.ones(WIDTH, "f4")
        self.rows = np.ones(rows, "f4")

    def forward(self, x, scale, bias):
        mean = x @ self.ones
        mean /= WIDTH
        np.subtract(x, mean[:, None], out=self.hat)
        variance = np.einsum("ij,ij->i", self.hat, self.hat)
        variance /= WIDTH
        self.inverse = 1 / np.sqrt(variance + np.float32(1e-5))
        self.hat *= self.inverse[:, None]
        np.multiply(self.hat, scale, out=self.out)
        self.out += bias
        return self.out

    def backward(self, d, scale, d_scale, d_bias):
        """Return the gradient of x in the memory of ``d``."""
        np.einsum("ij,ij->j", d, self.hat, out=d_scale)
        d_bias[...] = self.rows @ d
        d *= scale
        mean, slope = d @ self.ones, np.einsum("ij,ij->i", d, self.hat)
        self.hat *= (slope / WIDTH)[:, None]
        d -= self.hat
        d -= (mean / WIDTH)[:, None]
        d *= self.inverse[:, None]
        return d


def encoder(batch, params):
    sentences, length, heads = 16, 32, 4
    rows, size = sentences * length, WIDTH // heads
    ids, y, at = batch["x"].reshape(-1), batch["y"][:, 0], np.arange(rows)
    table, wq, bq, wk, bk, wv, bv, *rest = params
    adam = Adam([table, np.concatenate([wq, wk, wv], 1), np.concatenate([bq, bk, bv]), *rest])
    table, w3, b3, w_mix, b_mix, s1, t1, w_up, b_up, w_down, b_down, s2, t2, w_out, b_out = adam.params
    d_table, dw3, db3, dw_mix, db_mix, ds1, dt1, dw_up, db_up, dw_down, db_down, ds2, dt2, dw_out, db_out = (
        adam.grads
    )
    three, d_three = np.empty((rows, 3 * WIDTH), "f4"), np.empty((rows, 3 * WIDTH), "f4")

    def split(x):
        return x.reshape(sentences, length, 3, heads, size).transpose(2, 0, 3, 1, 4)

    def merge(x):
        return x.reshape(sentences, length, heads, size).swapaxes(1, 2)

    (q, k, v), (dq, dk, dv) = split(three), split(d_three)
    weights = np.empty((sentences, heads, length, length), "f4")
    mixed, d_mixed = np.empty((rows, WIDTH), "f4"), np.empty((rows, WIDTH), "f4")
    one, two, three_x = (
        np.empty((rows, WIDTH), "f4"),
        np.empty((rows, WIDTH), "f4"),
        np.empty((rows, WIDTH), "f4"),
    )
    up, d_up, out = (
        np.empty((rows, 4 * WIDTH), "f4"),
        np.empty((rows, 4 * WIDTH), "f4"),
        np.empty((rows, 1000), "f4"),
    )
    first, second, ones = _Norm(rows), _Norm(rows), np.ones(rows, "f4")
    alpha, wide = np.float32(size**-0.5), np.ones(length, "f4")

    def dense(x, w, b, out):
        np.matmul(x, w, out=out)
        np.add(out, b, out=out)
        return out

    def step():
        np.take(table, ids, axis=0, out=three_x)
        dense(three_x, w3, b3, three)
        np.matmul(q, k.swapaxes(2, 3), out=weights)
        np.multiply(weights, alpha, out=weights)
        np.subtract(weights, weights.max(3, keepdims=True), out=weights)
        np.exp(weights, out=weights)
        np.divide(weights, (weights @ wide)[..., None], out=weights)
        np.matmul(weights, v, out=merge(mixed))
        dense(mixed, w_mix, b_mix, one)
        np.add(one, three_x, out=one)
        h = first.forward(one, s1, t1)
        dense(h, w_up, b_up, up)
        np.maximum(up, 0, out=up)
        dense(up, w_down, b_down, two)
        np.add(two, h, out=two)
        top = second.forward(two, s2, t2)
        dense(top, w_out, b_out, out)
        loss = softmax_loss(out, y, at)

        np.matmul(top.T, out, out=dw_out)
        db_out[...] = sum_rows(out, ones)
        d = second.backward(np.matmul(out, w_out.T, out=one), s2, ds2, dt2)
        np.matmul(up.T, d, out=dw_down)
        db_down[...] = sum_rows(d, ones)
        np.matmul(d, w_down.T, out=d_up)
        d_up[...] *= up > 0
        np.matmul(h.T, d_up, out=dw_up)
        db_up[...] = sum_rows(d_up, ones)
        np.matmul(d_up, w_up.T, out=two)
        d = first.backward(np.add(d, two, out=d), s1, ds1, dt1)
        np.matmul(mixed.T, d, out=dw_mix)
        db_mix[...] = sum_rows(d, ones)
        np.matmul(d, w_mix.T, out=d_mixed)
        above = merge(d_mixed)
        np.matmul(weights.swapaxes(2, 3), above, out=dv)
        d_weights = above @ v.swapaxes(2, 3)
        d_weights -= np.einsum("...j,...j->...", d_weights, weights)[..., None]
        d_weights *= weights
        d_weights *= alpha
        np.matmul(d_weights, k, out=dq)
        np.matmul(d_weights.swapaxes(2, 3), q, out=dk)
        np.matmul(three_x.T, d_three, out=dw3)
        db3[...] = sum_rows(d_three, ones)
        np.matmul(d_three, w3.T, out=two)
        d += two
        d_table[...] = 0
        order = np.argsort(ids, kind="stable")
        found = ids[order]
        starts = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]]))
        d_table[found[starts]] = np.add.reduceat(d[order], starts)
        adam.update()
        return loss

    return step
