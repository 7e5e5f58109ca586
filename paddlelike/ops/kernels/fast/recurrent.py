"""The elementwise parts of LSTM and GRU steps, between products and exponentials, in one pass each.

Every operation rounds as numpy's does, so the results have the same bits; numpy computes the exponentials.
Gates are sigmoids with arguments of at most 13, as in Paddle's recurrent kernels. ``run_lstm`` and
``run_gru`` do all steps of a few narrow sequences, with products and exponentials: there, calls of numpy
would cost more than the arithmetic.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import Number, compile_late

_LEAST: Final = 1 << 15  # elements of all steps
_ONCE: Final = {"least": _LEAST, "asked": 1 << 11}  # of kernels that are called once for all steps
# float32, because numba computes with Python numbers in float64.
_LARGEST, _FAR, _ONE, _HALF, _BOUND = map(np.float32, (13, 20, 1, 0.5, 87))
# The terms of exp(r) after 1 + r for |r| <= log(2) / 2, and log(2) in two parts (Moshier's Cephes library,
# expf).
_E2, _E3, _E4 = np.float32(0.50000001201), np.float32(0.16666665459), np.float32(0.041665795894)
_E5, _E6, _E7 = np.float32(0.0083334519073), np.float32(0.0013981999507), np.float32(0.0001987569150)
_PER_LOG2, _LOG2, _LOG2_REST = np.float32(1.44269504), np.float32(0.693359375), np.float32(-0.000212194440)
_BIAS = np.int32(127)  # of a float32's exponent, which begins at bit 23


def _exponentiate(x: Array, powers: Array) -> None:
    """Compute ``x = exp(x)`` for elements in [-87, 88]; ``powers`` is scratch memory of as many int32.

    For float32 the result is right to a unit in the last place. It is computed in loops that a compiler turns
    into vectors, which it cannot do with calls of the C library.
    """
    if x.itemsize == 8:
        for j in range(len(x)):
            x[j] = math.exp(x[j])
        return
    scale = powers.view(np.float32)
    for j in range(len(x)):
        n = np.floor(max(-_BOUND, x[j] * _PER_LOG2 + _HALF))  # a number where x is not
        r = (x[j] - n * _LOG2) - n * _LOG2_REST
        y = ((((_E7 * r + _E6) * r + _E5) * r + _E4) * r + _E3) * r + _E2
        x[j] = (y * r * r + r) + _ONE
        powers[j] = (np.int32(n) + _BIAS) << np.int32(23)
    for j in range(len(x)):
        x[j] *= scale[j]


def _sigmoid(x: Array, powers: Array) -> None:
    """Replace arguments of gates by their values."""
    for j in range(len(x)):
        x[j] = max(min(x[j], _LARGEST), -_BOUND)
    _exponentiate(x, powers)
    for j in range(len(x)):
        x[j] = x[j] / (x[j] + _ONE)


def _tanh(x: Array, powers: Array) -> None:
    """Replace arguments by hyperbolic tangents, as Paddle's recurrent kernels compute them."""
    for j in range(len(x)):
        x[j] = 2 * min(max(x[j], -_FAR), _FAR)
    _exponentiate(x, powers)
    for j in range(len(x)):
        x[j] = (x[j] - _ONE) / (x[j] + _ONE)


def _add_product(out: Array, x: Array, weight: Array) -> None:
    """``out += x @ weight``, four rows of the weight at once."""
    for k in range(0, len(x) - 3, 4):
        p, q, r, s = x[k], x[k + 1], x[k + 2], x[k + 3]
        for j in range(len(out)):
            two = r * weight[k + 2, j] + s * weight[k + 3, j]
            out[j] += (p * weight[k, j] + q * weight[k + 1, j]) + two
    for k in range(len(x) // 4 * 4, len(x)):
        for j in range(len(out)):
            out[j] += x[k] * weight[k, j]


def _add_products(
    out: Array, begin: int, column: int, x: Array, start: int, first: int, count: int, weight: Array
) -> None:
    """Add the product of the weight with ``count`` rows from ``x[start, first]`` to those from
    ``out[begin, column]``. Pairs of rows read the weight once; the sums are those of :func:`_add_product`.
    """
    terms, width = weight.shape
    for i in range(0, count - 1, 2):
        one, other = (
            out[begin + i, column : column + width],
            out[begin + i + 1, column : column + width],
        )
        y, z = x[start + i, first : first + terms], x[start + i + 1, first : first + terms]
        for k in range(0, terms - 3, 4):
            p, q, r, s = y[k], y[k + 1], y[k + 2], y[k + 3]
            t, u, v, w = z[k], z[k + 1], z[k + 2], z[k + 3]
            for j in range(width):
                a, b, c, d = weight[k, j], weight[k + 1, j], weight[k + 2, j], weight[k + 3, j]
                one[j] += (p * a + q * b) + (r * c + s * d)
                other[j] += (t * a + u * b) + (v * c + w * d)
        for k in range(terms // 4 * 4, terms):
            for j in range(width):
                one[j] += y[k] * weight[k, j]
                other[j] += z[k] * weight[k, j]
    if count % 2:
        last = x[start + count - 1, first : first + terms]
        _add_product(out[begin + count - 1, column : column + width], last, weight)


#: Kernels of whole sequences. Unless they are requested, only long ones are worth the start of numba.
_WHOLE: Final[dict[str, Any]] = {
    "least": 1 << 16, "asked": 1 << 11, "exact": False,
    "helpers": (_add_product, _add_products, _exponentiate, _sigmoid, _tanh),
}  # fmt: skip


@compile_late("void(T[:, ::1], T[:, ::1], T[:, ::1], T[:, :, ::1], int64[::1], T[:, :, ::1])", **_WHOLE)
def run_lstm(gates: Array, weight: Array, peepholes: Array, first: Array, bounds: Array, out: Array) -> None:
    """Run all steps of an LSTM with usual gates. ``gates`` (T, 4H) hold the input and are overwritten.

    ``first`` (2, n, H) are output and cell before the first rows, ``bounds`` where each step begins; cells,
    their tangents and outputs are written to ``out`` (3, T, H). ``peepholes`` has 3 rows or none.
    """
    width = out.shape[2]
    cells, active, hidden = out[0], out[1], out[2]
    powers = np.empty(2 * width, np.int32)
    last_h, last_cell, before = first[0], first[1], 0
    for step in range(len(bounds) - 1):
        begin, end = bounds[step], bounds[step + 1]
        _add_products(gates, begin, 0, last_h, before, 0, end - begin, weight)
        for t in range(begin, end):
            g, c, a, h, last_c = gates[t], cells[t], active[t], hidden[t], last_cell[before + t - begin]
            _tanh(g[:width], powers)
            if len(peepholes):
                for j in range(width):
                    g[width + j] += last_c[j] * peepholes[0, j]
                    g[2 * width + j] += last_c[j] * peepholes[1, j]
            _sigmoid(g[width : 3 * width], powers)
            for j in range(width):
                c[j] = g[j] * g[width + j] + last_c[j] * g[2 * width + j]
                if len(peepholes):
                    g[3 * width + j] += c[j] * peepholes[2, j]
                a[j] = c[j]
            _sigmoid(g[3 * width :], powers)
            _tanh(a, powers)
            for j in range(width):
                h[j] = g[3 * width + j] * a[j]
        last_h, last_cell, before = hidden, cells, begin


@compile_late("void(T[:, ::1], T[:, ::1], int64[::1], T[:, ::1], T[:, ::1])", **_WHOLE)
def run_lstm_back(d_gates: Array, weight_t: Array, bounds: Array, d_hidden: Array, d_first: Array) -> None:
    """Run all steps of an LSTM whose gradients stop at the cell, from the last to the first.

    ``d_gates`` (T, 4H) hold the factors of the output gate and get its gradients; ``weight_t`` (H, H) is the
    transposed weight of this gate. The gradients of outputs are written over ``d_hidden`` and to ``d_first``.
    """
    width = d_first.shape[1]
    d_first[:] = 0
    for step in range(len(bounds) - 2, -1, -1):
        begin, end = bounds[step], bounds[step + 1]
        for t in range(begin, end):
            d_output = d_gates[t, 3 * width :]
            for j in range(width):
                d_output[j] *= d_hidden[t, j]
        d_before, start = (d_hidden, bounds[step - 1]) if step else (d_first, 0)
        _add_products(d_before, start, 0, d_gates, begin, 3 * width, end - begin, weight_t)


@compile_late(
    "void(T[:, ::1], T[:, :, ::1], T[:, ::1], boolean, T[:, ::1], int64[::1], T[:, :, ::1])", **_WHOLE
)
def run_gru(
    gates: Array, both: Array, weight: Array, origin: bool, first: Array, bounds: Array, out: Array
) -> None:
    """Run all steps of a GRU with usual gates. ``gates`` (T, 3H) hold the input and are overwritten.

    ``both`` (2, H, H) are the weights of update and reset, ``weight`` is the weight of the candidate.
    ``first`` (n, H) are the states before the first rows, ``bounds`` where each step begins; reset states and
    states are written to ``out`` (2, T, H).
    """
    width = first.shape[1]
    resets, states, before, start = out[0], out[1], first, 0
    powers = np.empty(2 * width, np.int32)
    for step in range(len(bounds) - 1):
        begin, count = bounds[step], bounds[step + 1] - bounds[step]
        _add_products(gates, begin, 0, before, start, 0, count, both[0])
        _add_products(gates, begin, width, before, start, 0, count, both[1])
        for t in range(begin, begin + count):
            r, reset, last = gates[t, width : 2 * width], resets[t], before[start + t - begin]
            _sigmoid(gates[t, : 2 * width], powers)
            for j in range(width):
                reset[j] = r[j] * last[j]
        _add_products(gates, begin, 2 * width, resets, begin, 0, count, weight)
        for t in range(begin, begin + count):
            u, c, hidden, last = gates[t, :width], gates[t, 2 * width :], states[t], before[start + t - begin]
            _tanh(c, powers)
            for j in range(width):
                old, new = (c[j], last[j]) if origin else (last[j], c[j])
                hidden[j] = (new - old) * u[j] + old
        before, start = states, begin


@compile_late("void(T[:, :, ::1], T[:, :, ::1], int64[::1], T[:, ::1], T[:, ::1], T[:, ::1])", **_WHOLE)
def run_gru_back(
    factors: Array, weights_t: Array, bounds: Array, d_hidden: Array, d_gates: Array, d_first: Array
) -> None:
    """Run all steps of a GRU from the last to the first.

    ``factors`` (5, T, H) come from :func:`find_gru_factors`; ``weights_t`` (3, H, H) are the transposed
    weights of update, reset and candidate. The gradients of states are written over ``d_hidden`` and to
    ``d_first`` (n, H), the gradients of gates to ``d_gates`` (T, 3H).
    """
    count, width = d_first.shape
    through_reset = np.empty((count, width), d_first.dtype)
    d_first[:] = 0
    for step in range(len(bounds) - 2, -1, -1):
        begin, count = bounds[step], bounds[step + 1] - bounds[step]
        d_before, start = (d_hidden, bounds[step - 1]) if step else (d_first, 0)
        through_reset[:count] = 0
        for t in range(begin, begin + count):
            d_candidate, d_step = d_gates[t, 2 * width :], d_hidden[t]
            for j in range(width):
                d_candidate[j] = factors[0, t, j] * d_step[j]
                d_gates[t, j] = factors[1, t, j] * d_step[j]
        _add_products(through_reset, 0, 0, d_gates, begin, 2 * width, count, weights_t[2])
        for t in range(begin, begin + count):
            i = t - begin
            through, d_last, d_reset = through_reset[i], d_before[start + i], d_gates[t, width : 2 * width]
            for j in range(width):
                d_reset[j] = factors[3, t, j] * through[j]
                d_last[j] += factors[2, t, j] * d_hidden[t, j] + factors[4, t, j] * through[j]
        _add_products(d_before, start, 0, d_gates, begin, 0, count, weights_t[0])
        _add_products(d_before, start, 0, d_gates, begin, width, count, weights_t[1])


@compile_late("void(T[:, ::1], T[:, ::1], int64, int64, T)", least=_LEAST)
def add_to_gates(gates: Array, fed: Array, first: int, last: int, limit: Number) -> None:
    """Add ``gates += fed`` in the columns of ``fed``; columns ``first`` to ``last`` are limited to
    ``limit``.
    """
    for i in range(fed.shape[0]):
        for j in range(first):
            gates[i, j] += fed[i, j]
        for j in range(first, last):
            total = gates[i, j] + fed[i, j]
            gates[i, j] = limit if total > limit else total
        for j in range(last, fed.shape[1]):
            gates[i, j] += fed[i, j]


@compile_late("void(T[:, :, ::1], T[:, ::1], T[:, ::1], T[:, ::1])", least=_LEAST)
def update_cells(gates: Array, last: Array, cells: Array, copied: Array) -> None:
    """Turn the exponentials of an LSTM's gates into sigmoids; ``cells = candidate input + last forget``.

    ``gates`` are (4, n, H): candidate, then the exponentials of input, forget, output. The cells are
    written twice.
    """
    width = cells.shape[1]
    one = gates.dtype.type(1)
    for i in range(cells.shape[0]):
        for k in range(1, 4):
            g = gates[k, i]
            for j in range(width):
                g[j] = g[j] / (g[j] + one)
        for j in range(width):
            cells[i, j] = gates[0, i, j] * gates[1, i, j] + last[i, j] * gates[2, i, j]
        for j in range(width):
            copied[i, j] = cells[i, j]


@compile_late("void(T[:, ::1], T[:, ::1], T[:, ::1], boolean, T[:, ::1], T[:, ::1])", **_ONCE)
def find_factors(
    gates: Array, active: Array, before: Array, stops: bool, factors: Array, by_state: Array
) -> None:
    """Write the factors that turn gradients of cell and output into gradients of an LSTM's gates.

    The activation of candidate and cell is tanh. With ``stops``, gradients stop at the cell, whose factors
    are 0.
    """
    width = active.shape[1]
    one = gates.dtype.type(1)
    for i in range(active.shape[0]):
        g, f = gates[i], factors[i]
        for j in range(width):
            o = g[3 * width + j]
            f[3 * width + j] = active[i, j] * (o * (one - o))
        if stops:
            f[: 3 * width] = 0
            continue
        for j in range(width):
            f[j] = g[width + j] * (one - g[j] * g[j])
        for j in range(width):
            f[width + j] = g[j] * (g[width + j] * (one - g[width + j]))
        for j in range(width):
            f[2 * width + j] = before[i, j] * (g[2 * width + j] * (one - g[2 * width + j]))
        for j in range(width):
            by_state[i, j] = g[3 * width + j] * (one - active[i, j] * active[i, j])


@compile_late("void(T[:, ::1], T[:, ::1], T[:, ::1], T[:, ::1])", least=_LEAST)
def reset_states(update: Array, reset: Array, last: Array, reset_last: Array) -> None:
    """Turn the exponentials of a GRU's gates into sigmoids; ``reset_last = reset last``."""
    one = last.dtype.type(1)
    for i in range(last.shape[0]):
        for j in range(last.shape[1]):
            update[i, j] = update[i, j] / (update[i, j] + one)
        for j in range(last.shape[1]):
            reset[i, j] = reset[i, j] / (reset[i, j] + one)
            reset_last[i, j] = reset[i, j] * last[i, j]


@compile_late("void(T[:, ::1], T[:, ::1], T[:, ::1], boolean, T[:, ::1])", least=_LEAST)
def blend_states(update: Array, candidate: Array, last: Array, origin: bool, hidden: Array) -> None:
    """``hidden = update candidate + (1 - update) last``, or with ``origin`` the other way round."""
    for i in range(last.shape[0]):
        if origin:
            for j in range(last.shape[1]):
                hidden[i, j] = (last[i, j] - candidate[i, j]) * update[i, j] + candidate[i, j]
        else:
            for j in range(last.shape[1]):
                hidden[i, j] = (candidate[i, j] - last[i, j]) * update[i, j] + last[i, j]


@compile_late("void(T[:, ::1], T[:, ::1], boolean, T[:, :, ::1])", **_ONCE)
def find_gru_factors(gates: Array, last: Array, origin: bool, factors: Array) -> None:
    """Write the factors of gradients in a GRU with a tanh candidate, as numpy's kernel does.

    ``gates`` is (T, 3H). ``factors`` (5, T, H) are for candidate, update, kept state, reset, reset state.
    """
    width = last.shape[1]
    one = last.dtype.type(1)
    for i in range(last.shape[0]):
        u, r, candidate = gates[i, :width], gates[i, width : 2 * width], gates[i, 2 * width :]
        for j in range(width):
            keep, renew, change = one - u[j], u[j], candidate[j] - last[i, j]
            if origin:
                keep, renew, change = renew, keep, last[i, j] - candidate[j]
            factors[0, i, j] = (one - candidate[j] * candidate[j]) * renew
            factors[1, i, j] = u[j] * (one - u[j]) * change
            factors[2, i, j] = keep
            factors[3, i, j] = r[j] * (one - r[j]) * last[i, j]
            factors[4, i, j] = r[j]


@compile_late("void(T[:, ::1], T[:, ::1], T[:, ::1], T[:, ::1])", least=_LEAST)
def multiply_gate_gradients(d_next: Array, d_step: Array, d_candidate: Array, d_update: Array) -> None:
    """Add the next step's gradient to the gradient of a GRU's state; multiply the factors of the gates by the
    sum.
    """
    for i in range(d_step.shape[0]):
        if i < d_next.shape[0]:
            for j in range(d_step.shape[1]):
                d_step[i, j] += d_next[i, j]
        for j in range(d_step.shape[1]):
            d_candidate[i, j] *= d_step[i, j]
            d_update[i, j] *= d_step[i, j]


@compile_late("void(T[:, ::1], T[:, ::1], T[:, ::1], T[:, ::1], T[:, ::1], T[:, ::1])", least=_LEAST)
def add_state_gradients(
    d_next: Array, d_through_reset: Array, d_kept: Array, d_step: Array, by_reset: Array, d_reset_last: Array
) -> None:
    """``d_next += d_through_reset + d_kept d_step + by_reset d_reset_last``, one term after the other."""
    for i in range(d_next.shape[0]):
        for j in range(d_next.shape[1]):
            total = d_next[i, j] + d_through_reset[i, j]
            total = total + d_kept[i, j] * d_step[i, j]
            d_next[i, j] = total + by_reset[i, j] * d_reset_last[i, j]
