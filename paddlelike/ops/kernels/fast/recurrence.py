"""What a step of an LSTM or a GRU does between its products and its exponentials, in one pass each.

Every operation rounds as numpy's does: the results have the same bits. Gates are sigmoids, whose argument is
at most 13, as in Paddle's recurrent kernels; numpy takes the exponentials.
"""

from __future__ import annotations

from typing import Final

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import Number, compile_late

__all__ = ["add_to_gates", "blend_states", "find_factors", "reset_states", "update_cells"]

_LEAST: Final = 1 << 15  # elements of all steps


@compile_late("void(T[:, ::1], T[:, ::1], int64, int64, T)", least=_LEAST)
def add_to_gates(gates: Array, fed: Array, first: int, last: int, limit: Number) -> None:
    """``gates += fed`` in the columns of ``fed``; those from ``first`` to ``last`` are ``limit`` at most."""
    for i in range(fed.shape[0]):
        for j in range(first):
            gates[i, j] += fed[i, j]
        for j in range(first, last):
            total = gates[i, j] + fed[i, j]
            gates[i, j] = limit if total > limit else total
        for j in range(last, fed.shape[1]):
            gates[i, j] += fed[i, j]


@compile_late("void(T[:, ::1], T[:, ::1], T[:, ::1], T[:, ::1])", least=_LEAST)
def update_cells(gates: Array, last: Array, cells: Array, copied: Array) -> None:
    """Turn the exponentials of an LSTM's gates into sigmoids; ``cells = candidate input + last forget``.

    ``gates`` are (n, 4H): candidate, then the exponentials of input, forget, output. The cells are
    written twice.
    """
    width = cells.shape[1]
    one = gates.dtype.type(1)
    for i in range(cells.shape[0]):
        g = gates[i]
        for j in range(width, 4 * width):
            g[j] = g[j] / (g[j] + one)
        for j in range(width):
            cells[i, j] = g[j] * g[width + j] + last[i, j] * g[2 * width + j]
        for j in range(width):
            copied[i, j] = cells[i, j]


@compile_late("void(T[:, ::1], T[:, ::1], T[:, ::1], boolean, T[:, ::1], T[:, ::1])", least=_LEAST)
def find_factors(
    gates: Array, active: Array, before: Array, stops: bool, factors: Array, by_state: Array
) -> None:
    """Write what the gradients of cell and output are multiplied by, to be those of an LSTM's gates.

    Candidate and cell are a tangent. ``stops``: gradients stop at the cell, whose factors are 0.
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
