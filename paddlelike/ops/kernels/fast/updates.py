"""Rules of optimizers, each in one pass over parameter, gradient and state.

Every operation rounds as numpy's does, one after the other: the results have the same bits. Scalars come in
the type of the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import FastKernel, Number, compile_late

__all__ = [
    "Rule",
    "adagrad",
    "adagrad_rows",
    "adam",
    "adam_rows",
    "average_moments",
    "descend",
    "descend_rows",
    "momentum",
    "rmsprop",
]

_LEAST = 1 << 12  # elements from which a call is worth its cost


class Rule(NamedTuple):
    """A rule with its numbers: for arrays of one shape, and for some rows of them."""

    dense: FastKernel
    by_row: FastKernel | None
    numbers: Sequence[float]
    flags: tuple[bool, ...] = ()

    def update(self, arrays: Sequence[Array]) -> bool:
        """Apply the rule to (param, grad, *state) of one shape, in place; False: nothing was done."""
        kernel = self.dense.choose(arrays[0].size, *arrays)
        if kernel is None:
            return False
        number = arrays[0].dtype.type
        kernel(*(array.reshape(-1) for array in arrays), *map(number, self.numbers), *self.flags)
        return True

    def update_rows(self, rows: Array, values: Array, arrays: Sequence[Array]) -> bool:
        """Apply the rule to some rows of (param, *state), each once; False: nothing was done.

        ``rows`` ``(R,)`` are within the arrays, ``values`` ``(R, ...)`` are their gradients.
        """
        if self.by_row is None or rows.dtype != np.int64 or not rows.flags.carray:
            return False
        kernel = self.by_row.choose(values.size, values, *arrays)
        if kernel is None:
            return False
        number = values.dtype.type
        matrices = (array.reshape(len(array), -1) for array in (values, *arrays))
        kernel(rows, *matrices, *map(number, self.numbers))
        return True


@compile_late("void(T[::1], T[::1], T)", least=_LEAST)
def descend(p: Array, g: Array, lr: Number) -> None:
    """``p -= lr g``."""
    for i in range(p.size):
        p[i] -= lr * g[i]


@compile_late("void(T[::1], T[::1], T[::1], T, T, boolean)", least=_LEAST)
def momentum(p: Array, g: Array, v: Array, lr: Number, mu: Number, nesterov: bool) -> None:
    """``v = mu v + g; p -= lr v``, or with Nesterov's look ahead ``p -= lr (g + mu v)``."""
    if nesterov:
        for i in range(p.size):
            v[i] = v[i] * mu + g[i]
            p[i] -= lr * (g[i] + mu * v[i])
    else:
        for i in range(p.size):
            v[i] = v[i] * mu + g[i]
            p[i] -= lr * v[i]


@compile_late("void(T[::1], T[::1], T[::1], T[::1], T, T, T, T, T, T)", least=_LEAST)
def adam(
    p: Array,
    g: Array,
    m1: Array,
    m2: Array,
    lr: Number,
    b1: Number,
    rest1: Number,
    b2: Number,
    rest2: Number,
    epsilon: Number,
) -> None:
    """``m1 = b1 m1 + rest1 g; m2 = b2 m2 + rest2 g^2; p -= lr m1 / (sqrt(m2) + epsilon)``."""
    for i in range(p.size):
        m1[i] = m1[i] * b1 + g[i] * rest1
        m2[i] = m2[i] * b2 + (g[i] * g[i]) * rest2
        p[i] -= m1[i] / (np.sqrt(m2[i]) + epsilon) * lr


@compile_late("void(T[::1], T[::1], T[::1], T, T)", least=_LEAST)
def adagrad(p: Array, g: Array, m: Array, lr: Number, epsilon: Number) -> None:
    """``m += g^2; p -= lr g / (sqrt(m) + epsilon)``."""
    for i in range(p.size):
        m[i] += g[i] * g[i]
        p[i] -= (lr * g[i]) / (np.sqrt(m[i]) + epsilon)


@compile_late("void(T[::1], T[::1], T[::1], T[::1], T, T, T, T, T)", least=_LEAST)
def rmsprop(
    p: Array,
    g: Array,
    s: Array,
    v: Array,
    lr: Number,
    decay: Number,
    rest: Number,
    mu: Number,
    epsilon: Number,
) -> None:
    """``s = decay s + rest g^2; v = mu v + lr g / sqrt(s + epsilon); p -= v``."""
    for i in range(p.size):
        s[i] = s[i] * decay + rest * (g[i] * g[i])
        v[i] = v[i] * mu + (lr * g[i]) / np.sqrt(s[i] + epsilon)
        p[i] -= v[i]


@compile_late("void(T[::1], T[::1], T[::1], T[::1], T[::1], T, T, T, T, T, T)", least=_LEAST)
def average_moments(
    p: Array,
    g: Array,
    m1: Array,
    m2: Array,
    r: Array,
    b1: Number,
    rest1: Number,
    b2: Number,
    rest2: Number,
    epsilon: Number,
    weight_decay: Number,
) -> None:
    """The moments of adam, and lamb's step ``r = m1 / (sqrt(m2) + epsilon) + weight_decay p``."""
    for i in range(p.size):
        m1[i] = m1[i] * b1 + rest1 * g[i]
        m2[i] = m2[i] * b2 + rest2 * (g[i] * g[i])
        r[i] = m1[i] / (np.sqrt(m2[i]) + epsilon) + weight_decay * p[i]


@compile_late("void(int64[::1], T[:, ::1], T[:, ::1], T)", least=_LEAST)
def descend_rows(rows: Array, g: Array, p: Array, lr: Number) -> None:
    """:func:`descend` in some rows of ``p``."""
    for i in range(rows.size):
        for j in range(g.shape[1]):
            p[rows[i], j] -= lr * g[i, j]


@compile_late("void(int64[::1], T[:, ::1], T[:, ::1], T[:, ::1], T, T)", least=_LEAST)
def adagrad_rows(rows: Array, g: Array, p: Array, m: Array, lr: Number, epsilon: Number) -> None:
    """:func:`adagrad` in some rows of ``p`` and ``m``."""
    for i in range(rows.size):
        r = rows[i]
        for j in range(g.shape[1]):
            m[r, j] += g[i, j] * g[i, j]
            p[r, j] -= (lr * g[i, j]) / (np.sqrt(m[r, j]) + epsilon)


@compile_late("void(int64[::1], T[:, ::1], T[:, ::1], T[:, ::1], T[:, ::1], T, T, T, T, T, T)", least=_LEAST)
def adam_rows(
    rows: Array,
    g: Array,
    p: Array,
    m1: Array,
    m2: Array,
    lr: Number,
    b1: Number,
    rest1: Number,
    b2: Number,
    rest2: Number,
    epsilon: Number,
) -> None:
    """:func:`adam` in some rows of ``p``, ``m1`` and ``m2``."""
    for i in range(rows.size):
        r = rows[i]
        for j in range(g.shape[1]):
            m1[r, j] = m1[r, j] * b1 + g[i, j] * rest1
            m2[r, j] = m2[r, j] * b2 + (g[i, j] * g[i, j]) * rest2
            p[r, j] -= m1[r, j] / (np.sqrt(m2[r, j]) + epsilon) * lr
