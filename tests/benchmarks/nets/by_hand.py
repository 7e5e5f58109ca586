"""What several nets written by hand in numpy share: Adam over one flat array, softmax with its loss, dense layers."""

import numpy as np


class Flat:
    """Parameters as views of one array, and their gradients as views of another."""

    def __init__(self, params):
        total = sum(p.size for p in params)
        self.flat, self.grad = np.empty(total, "f4"), np.empty(total, "f4")
        self.params, self.grads, at = [], [], 0
        for p in params:
            cut = slice(at, at + p.size)
            self.params.append(self.flat[cut].reshape(p.shape))
            self.params[-1][...] = p
            self.grads.append(self.grad[cut].reshape(p.shape))
            at += p.size


class Adam(Flat):
    """Updates pieces that stay in the cache."""

    def __init__(self, params, rate=1e-3):
        super().__init__(params)
        self.m, self.v = np.zeros_like(self.flat), np.zeros_like(self.flat)
        self.a, self.b = np.empty(1 << 14, "f4"), np.empty(1 << 14, "f4")
        self.rate, self.b1, self.b2 = rate, 1.0, 1.0

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


def softmax_loss(logits, labels, at):
    """Return the mean loss; the logits become their gradient."""
    logits -= logits.max(1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(1, keepdims=True)
    loss = -np.log(logits[at, labels]).mean()
    logits[at, labels] -= 1
    logits /= np.float32(len(logits))
    return loss


def sum_rows(rows, ones):
    """Return the sums of the columns: BLAS adds rows faster than ``np.sum`` does."""
    return ones @ rows
