"""A network of tables of a million rows in numpy by hand: only the rows of a batch are updated."""

import numpy as np
from by_hand import Adam, sum_rows


class _Table:
    """Rows with their moments; as in Fluid, the correction of sparse gradients is that of the next step."""

    def __init__(self, rows):
        self.rows, self.m, self.v = rows, np.zeros_like(rows), np.zeros_like(rows)

    def update(self, unique, d, rate):
        m, v = self.m[unique], self.v[unique]
        m *= np.float32(0.9)
        m += np.float32(0.1) * d
        v *= np.float32(0.999)
        d *= d
        d *= np.float32(0.001)
        v += d
        self.m[unique], self.v[unique] = m, v
        np.sqrt(v, out=v)
        v += np.float32(1e-8)
        m /= v
        m *= rate
        self.rows[unique] -= m


def wide_deep(batch, params):
    x, ids, y = batch["x"], batch["ids"], batch["y"]
    count, slots = ids.shape
    wide, deep = _Table(params[0]), _Table(params[1])
    adam = Adam(params[2:])
    w1, b1, w2, b2, w3, b3 = adam.params
    dw1, db1, dw2, db2, dw3, db3 = adam.grads
    joined = np.empty((count, x.shape[1] + 16 * slots), "f4")
    h1, d1 = np.empty((count, 256), "f4"), np.empty((count, 256), "f4")
    h2, d2 = np.empty((count, 128), "f4"), np.empty((count, 128), "f4")
    ones, flat, width = np.ones(count, "f4"), ids.reshape(-1), x.shape[1]

    def step():
        joined[:, :width] = x
        joined[:, width:] = deep.rows[flat].reshape(count, -1)
        for source, w, b, h in ((joined, w1, b1, h1), (h1, w2, b2, h2)):
            np.matmul(source, w, out=h)
            np.add(h, b, out=h)
            np.maximum(h, 0, out=h)
        z = h2 @ w3
        z += b3
        z += wide.rows[flat].reshape(count, slots).sum(1, keepdims=True)
        small = np.exp(-np.abs(z))
        loss = (np.maximum(z, 0) - z * y + np.log1p(small)).mean()
        d = np.where(z > 0, 1, small) / (1 + small)
        d -= y
        d /= np.float32(count)
        np.matmul(h2.T, d, out=dw3)
        np.add.reduce(d, 0, out=db3)
        np.matmul(d, w3.T, out=d2)
        d2[...] *= h2 > 0
        np.matmul(h1.T, d2, out=dw2)
        db2[...] = sum_rows(d2, ones)
        np.matmul(d2, w2.T, out=d1)
        d1[...] *= h1 > 0
        np.matmul(joined.T, d1, out=dw1)
        db1[...] = sum_rows(d1, ones)
        d_deep = (d1 @ w1[width:].T).reshape(-1, 16)
        order = np.argsort(flat, kind="stable")
        found = flat[order]
        starts = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]]))
        unique = found[starts]
        adam.update()
        rate = np.float32(1e-3 * (1 - adam.b2 * 0.999) ** 0.5 / (1 - adam.b1 * 0.9))
        deep.update(unique, np.add.reduceat(d_deep[order], starts), rate)
        wide.update(unique, np.add.reduceat(d.repeat(slots)[order], starts)[:, None], rate)
        return loss

    return step
