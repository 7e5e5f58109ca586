"""Sequential loops over sequences: chains of labels, and edit distance.

Transitions ``(D + 2, D)`` for D labels hold the weights of first labels, of last labels, then from label to
label. Sequence ``n`` is the rows ``starts[n] .. starts[n] + lengths[n]``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.framework.opdef import Array
from paddlelike.ops.kernels.fast.late import compile_late

_CUTS: Final = "int64[::1], int64[::1], int64[::1]"  # labels, starts, lengths


@compile_late("void(T[:, ::1], T[:, ::1], int64[::1], int64[::1], int64[::1])", least=1 << 13, asked=1 << 10)
def find_best_labels(x: Array, transition: Array, starts: Array, lengths: Array, path: Array) -> None:
    """Write the labels of the greatest score for every row. Of equal scores the first label wins."""
    count = x.shape[1]
    last, best = np.empty(count, x.dtype), np.empty(count, x.dtype)
    came_from = np.empty((max(1, lengths.max()), count), np.int32)
    for n in range(len(starts)):
        for t in range(lengths[n]):
            row = x[starts[n] + t]
            if t == 0:
                for j in range(count):
                    best[j] = row[j] + transition[0, j]
                continue
            last[:] = best
            came = came_from[t]
            for j in range(count):
                best[j] = last[0] + transition[2, j]
                came[j] = 0
            for i in range(1, count):
                for j in range(count):
                    score = last[i] + transition[2 + i, j]
                    came[j] = i if score > best[j] else came[j]
                    best[j] = score if score > best[j] else best[j]
            for j in range(count):
                best[j] += row[j]
        if lengths[n]:
            for j in range(count):
                best[j] += transition[1, j]
            label = np.argmax(best)
            for t in range(lengths[n] - 1, -1, -1):
                path[starts[n] + t] = label
                if t:
                    label = np.int64(came_from[t, label])


@compile_late(
    f"void(T[:, ::1], T[:, ::1], T[::1], T[:, ::1], T[:, ::1], {_CUTS}, T[:, ::1], T[::1])",
    least=1 << 13,
    asked=1 << 10,
    reorder=True,
)
def sum_chains(
    x: Array,
    x_exps: Array,
    greatest: Array,
    transition: Array,
    w_exps: Array,
    labels: Array,
    starts: Array,
    lengths: Array,
    alpha: Array,
    cost: Array,
) -> None:
    """Write the forward probabilities of the labels at each row, and the cost of each sequence.

    ``x_exps`` is ``e^(x - greatest)``, where ``greatest`` is the maximum of each row.
    """
    count = x.shape[1]
    for n in range(len(starts)):
        total = 0.0
        for t in range(lengths[n]):
            row = starts[n] + t
            now = alpha[row]
            if t == 0:
                now[:] = w_exps[0]
                total -= transition[0, labels[row]]
            else:
                now[:] = 0
                for i in range(count):
                    share = alpha[row - 1, i]
                    for j in range(count):
                        now[j] += share * w_exps[2 + i, j]
                total -= transition[2 + labels[row - 1], labels[row]]
            size = now[0] - now[0]
            for j in range(count):
                now[j] *= x_exps[row, j]
                size += now[j]
            for j in range(count):
                now[j] /= size
            total += greatest[row] + np.log(size) - x[row, labels[row]]
        if lengths[n]:
            row = starts[n] + lengths[n] - 1
            size = x.dtype.type(0)
            for j in range(count):
                size += alpha[row, j] * w_exps[1, j]
            total += np.log(size) - transition[1, labels[row]]
        cost[n] = total


@compile_late(
    f"void(T[:, ::1], T[:, ::1], T[:, ::1], T[::1], {_CUTS}, T[:, ::1], T[:, ::1])",
    least=1 << 13,
    asked=1 << 10,
    reorder=True,
)
def sum_chains_back(
    alpha: Array,
    x_exps: Array,
    w_exps: Array,
    d_cost: Array,
    labels: Array,
    starts: Array,
    lengths: Array,
    d_x: Array,
    d_w: Array,
) -> None:
    """Write the gradients with respect to rows and transitions, which are zero at first."""
    count = alpha.shape[1]
    beta, ahead, back = (
        np.empty(count, alpha.dtype),
        np.empty(count, alpha.dtype),
        np.empty(count, alpha.dtype),
    )
    for n in range(len(starts)):
        scale = d_cost[n]
        for t in range(lengths[n] - 1, -1, -1):
            row = starts[n] + t
            if t == lengths[n] - 1:
                beta[:] = w_exps[1]
            else:
                beta[:] = back
            size = shares = alpha.dtype.type(0)
            for j in range(count):
                size += beta[j]
            for j in range(count):
                beta[j] /= size
                d_x[row, j] = alpha[row, j] * beta[j]
                shares += d_x[row, j]
            for j in range(count):
                d_x[row, j] *= scale / shares
            d_x[row, labels[row]] -= scale
            if t == lengths[n] - 1:
                for j in range(count):
                    d_w[1, j] += d_x[row, j]
            if t == 0:
                for j in range(count):
                    d_w[0, j] += d_x[row, j]
                continue
            whole = alpha.dtype.type(0)
            for j in range(count):
                ahead[j] = x_exps[row, j] * beta[j]
            for i in range(count):
                along = alpha.dtype.type(0)
                for j in range(count):
                    along += w_exps[2 + i, j] * ahead[j]
                back[i] = along
                whole += alpha[row - 1, i] * along
            for i in range(count):
                part = alpha[row - 1, i] * (scale / whole)
                for j in range(count):
                    d_w[2 + i, j] += part * ahead[j] * w_exps[2 + i, j]
            d_w[2 + labels[row - 1], labels[row]] -= scale


@compile_late("int64(int64[::1], int64[::1], int64[::1])", least=1 << 10)
def compare_sequences(hyp: Array, ref: Array, row: Array) -> int:
    """Return the edit distance; ``row`` is scratch memory for one number more than ``ref`` has."""
    for j in range(len(row)):
        row[j] = j
    for i in range(len(hyp)):
        corner, left = row[0], row[0] + 1
        row[0] = left
        for j in range(len(ref)):
            best = min(corner + (hyp[i] != ref[j]), min(row[j + 1], left) + 1)
            corner, left = row[j + 1], best
            row[j + 1] = best
    return int(row[len(ref)])
