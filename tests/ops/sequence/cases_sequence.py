"""Cases of the operators on sequences, by loops over the sequences."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from paddlelike.core import LoDTensor
from tests.ops.harness.contract import Case

Array = np.ndarray[Any, Any]

_rng = np.random.default_rng(11)
ENDS = [0, 2, 2, 6, 7]  # the second sequence has no rows
X = _rng.standard_normal((7, 3))
ROWS = _rng.standard_normal((4, 3))  # one per sequence
SEQ = LoDTensor(X, [ENDS])


def split(x: Array, ends: list[int] | None = None) -> list[Array]:
    """The sequences."""
    return [x[a:b] for a, b in pairwise(ends or ENDS)]


def join(many: list[Array]) -> LoDTensor:
    ends = [0, *np.cumsum([len(one) for one in many]).tolist()]
    return LoDTensor(np.concatenate(many), [ends])


_POOLS: dict[str, Callable[[Array], Array]] = {
    "SUM": lambda rows: rows.sum(0),
    "AVERAGE": lambda rows: rows.mean(0),
    "SQRT": lambda rows: rows.sum(0) / len(rows) ** 0.5,
    "MAX": lambda rows: rows.max(0),
    "FIRST": lambda rows: rows[0],
    "LAST": lambda rows: rows[-1],
}


def _pooled(X: Array, pooltype: str, pad_value: float) -> Array:
    empty = np.full(X.shape[1:], pad_value)
    return np.stack([_POOLS[pooltype](rows) if len(rows) else empty for rows in split(X)])


def _softmax(X: Array) -> LoDTensor:
    return join([np.exp(rows) / np.exp(rows).sum() for rows in split(X)])


def _expanded(X: Array, Y: Array) -> Array:
    return np.concatenate([np.tile(row, (len(rows), 1)) for row, rows in zip(X, split(Y), strict=True)])


def _conv(X: Array, Filter: Array, contextLength: int, contextStart: int) -> LoDTensor:
    def one(rows: Array) -> Array:
        out = np.zeros((len(rows), Filter.shape[1]))
        for t in range(len(rows)):
            for j in range(contextLength):
                if 0 <= t + contextStart + j < len(rows):
                    out[t] += rows[t + contextStart + j] @ Filter[j * 3 : (j + 1) * 3]
        return out

    return join([one(rows) for rows in split(X)])


def _padded(X: Array, PadValue: Array, padded_length: int) -> dict[str, Array]:
    many = split(X)
    width = padded_length if padded_length > 0 else max(map(len, many))
    out = np.zeros((len(many), width, 3)) + PadValue
    for i, rows in enumerate(many):
        out[i, : len(rows)] = rows
    return {"Out": out, "Length": np.array([len(rows) for rows in many])}


def _images(X: Array, kernels: list[int]) -> LoDTensor:
    high, wide = kernels
    n, _, h, w = X.shape
    windows = [
        [
            X[i, :, a : a + high, b : b + wide].ravel()
            for a in range(h - high + 1)
            for b in range(w - wide + 1)
        ]
        for i in range(n)
    ]
    return join([np.stack(rows) for rows in windows])


def _scatter(X: Array, Ids: Array, Updates: Array) -> Array:
    out = X.copy()
    for i, (columns, numbers) in enumerate(zip(split(Ids), split(Updates), strict=True)):
        for column, number in zip(columns[:, 0], numbers[:, 0], strict=True):
            out[i, column] += number
    return out


OFFSET, LENGTH = np.array([[1], [0], [1], [0]]), np.array([[1], [0], [2], [1]])
IDS = LoDTensor(np.array([[3], [5], [0], [3], [3], [1], [4]]), [ENDS])

CASES = [
    *(
        Case(
            "sequence_pool",
            {"X": SEQ},
            _pooled,
            {"pooltype": pool, "pad_value": 0.5},
            note=pool.lower(),
            check_shape=pool != "MAX",  # MaxIndex is declared as X
        )
        for pool in _POOLS
    ),
    Case("sequence_softmax", {"X": LoDTensor(X[:, :1], [ENDS])}, _softmax),
    Case("sequence_expand", {"X": ROWS, "Y": SEQ}, _expanded),
    Case(
        "sequence_expand",
        {"X": SEQ, "Y": LoDTensor(X[:6], [[0, 2, 3, 5, 6]])},
        lambda X: join([rows for rows, n in zip(split(X), (2, 1, 2, 1), strict=True) for _ in range(n)]),
        note="sequences",
    ),
    Case("sequence_expand_as", {"X": ROWS, "Y": SEQ}, lambda X, Y: LoDTensor(_expanded(X, Y), [ENDS])),
    Case(
        "sequence_concat",
        {"X": [SEQ, LoDTensor(X[:5], [[0, 1, 3, 3, 5]])]},
        lambda: join([
            np.concatenate(pair) for pair in zip(split(X), split(X, [0, 1, 3, 3, 5]), strict=True)
        ]),
    ),
    Case(
        "sequence_reshape",
        {"X": LoDTensor(X[:6, :2], [[0, 2, 6]])},
        lambda X: LoDTensor(X.reshape(-1, 4), [[0, 1, 3]]),
        {"new_dim": 4},
    ),
    Case("sequence_reverse", {"X": SEQ}, lambda X: join([rows[::-1] for rows in split(X)])),
    Case(
        "sequence_slice",
        {"X": SEQ, "Offset": OFFSET, "Length": LENGTH},
        lambda X: join([
            rows[a : a + n] for rows, a, n in zip(split(X), OFFSET[:, 0], LENGTH[:, 0], strict=True)
        ]),
    ),
    Case("sequence_pad", {"X": SEQ, "PadValue": np.array([0.5])}, _padded, check_shape=False,
         note="longest"),  # declared with 1 step
    Case("sequence_pad", {"X": SEQ, "PadValue": ROWS[0]}, _padded, {"padded_length": 5}, note="row"),
    Case(
        "sequence_unpad",
        {"X": _rng.standard_normal((3, 4, 2)), "Length": np.array([2, 0, 4])},
        lambda X, Length: join([rows[:n] for rows, n in zip(X, Length, strict=True)]),
    ),
    Case(
        "sequence_mask",
        {"X": np.array([2, 0, 3])},
        lambda: np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1]], np.int64),
        {"out_dtype": 3},
    ),
    *(
        Case(
            "sequence_conv",
            {"X": SEQ, "Filter": _rng.standard_normal((3 * length, 2))},
            _conv,
            {"contextLength": length, "contextStart": start},
            note=f"{length}-from-{start}",
        )
        for start, length in ((-1, 3), (0, 2), (1, 2))
    ),
    Case(
        "sequence_enumerate",
        {"X": IDS},
        lambda: LoDTensor(np.array([[3, 5], [5, 9], [0, 3], [3, 3], [3, 1], [1, 9], [4, 9]]), [ENDS]),
        {"win_size": 2, "pad_value": 9},
    ),
    Case(
        "sequence_erase",
        {"X": LoDTensor(np.array(IDS), [[0, 2, 4], ENDS])},
        lambda: LoDTensor(np.array([[5], [0], [1], [4]]), [[0, 2, 4], [0, 1, 1, 3, 4]]),
        {"tokens": [3, 7]},
    ),
    Case(
        "sequence_scatter",
        {"X": _rng.standard_normal((4, 6)), "Ids": IDS, "Updates": LoDTensor(X[:, :1], [ENDS])},
        _scatter,
    ),
    Case("lod_reset", {"X": SEQ}, lambda X: LoDTensor(X, [[0, 3, 7]]), {"target_lod": [0, 3, 7]}),
    Case(
        "lod_reset",
        {"X": X, "Y": np.array([0, 1, 7], np.int32)},
        lambda X: LoDTensor(X, [[0, 1, 7]]),
        note="offsets",
    ),
    Case(
        "im2sequence",
        {"X": _rng.standard_normal((2, 3, 4, 3))},
        _images,
        {"kernels": [2, 2]},
        check_shape=False,  # declared with as many rows as images
    ),
]  # fmt: skip


_rng = np.random.default_rng(17)
OFFSETS = [0, 2, 6, 7]
ROWS = LoDTensor(_rng.standard_normal((7, 4)), [OFFSETS])
BATCH = _rng.standard_normal((2, 5, 4))
FILTER = _rng.standard_normal((3, 4))


def _sequences(x):
    if x.ndim == 3:
        return x
    return [x[a:b] for a, b in itertools.pairwise(OFFSETS)]


def _joined(x, parts):
    return np.stack(parts) if x.ndim == 3 else np.concatenate(parts)


def _encoded(X, alpha, beta):
    half = X.shape[-1] // 2
    out = [alpha * part for part in _sequences(X)]
    for part in out:
        for t, k in np.ndindex(len(part), half):
            angle = t / 10000 ** (k / (half - 1)) if half > 1 else t / 10000
            part[t, [k, half + k]] += beta * np.sin(angle), beta * np.cos(angle)
    return _joined(X, out)


def _row_conv(X, Filter):
    out = []
    for part in _sequences(X):
        padded = np.concatenate([part, np.zeros((len(Filter), part.shape[1]))])
        out.append(np.array([(padded[t : t + len(Filter)] * Filter).sum(0) for t in range(len(part))]))
    return _joined(X, out)


_SCALED = {"alpha": 0.5, "beta": 2.0}

CASES += [
    Case("add_position_encoding", {"X": BATCH}, _encoded, _SCALED),
    Case("add_position_encoding", {"X": ROWS}, _encoded, _SCALED, note="lod"),
    Case("add_position_encoding", {"X": BATCH[..., :2]}, _encoded, _SCALED, note="two-columns"),
    Case("row_conv", {"X": ROWS, "Filter": FILTER}, _row_conv),
    Case("row_conv", {"X": BATCH, "Filter": FILTER}, _row_conv, note="batch"),
]
