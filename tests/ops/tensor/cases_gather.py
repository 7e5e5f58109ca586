"""Rows by their indices, and indices as rows."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType
from tests.ops.harness.contract import Case

_rng = np.random.default_rng(6)
X = _rng.standard_normal((4, 3, 2))
ROWS = np.array([[2], [0], [2]])
ONCE = np.array([3, 0, 1], np.int32)
U = _rng.standard_normal((3, 3, 2))
PAIRS = np.array([[[0, 2], [3, 1]], [[0, 2], [1, 1]]])
M = X[:, :, 0]


def _scatter_add(X, Index, Updates):
    out = X.copy()
    for place, update in zip(
        Index.reshape(-1, Index.shape[-1]),
        Updates.reshape(-1, *X.shape[Index.shape[-1] :]),
        strict=True,
    ):
        out[tuple(place)] += update
    return out


def _scatter(X, Ids, Updates, overwrite):
    out = X.copy()
    for row in Ids.ravel():
        out[row] = 0
    for row, update in zip(Ids.ravel(), Updates, strict=True):
        out[row] = update + (0 if overwrite else out[row])
    return out


CASES = [
    Case("gather", {"X": X, "Index": ONCE}, lambda X, Index: np.stack([X[3], X[0], X[1]])),
    Case(
        "gather",
        {"X": X, "Index": ROWS},
        lambda X, Index: np.stack([X[2], X[0], X[2]]),
        {"overwrite": False},
        note="repeated",
    ),
    Case(
        "gather_nd",
        {"X": X, "Index": PAIRS},
        lambda X, Index: np.array([[X[0, 2], X[3, 1]], [X[0, 2], X[1, 1]]]),
    ),
    Case("gather_nd", {"X": X, "Index": ROWS}, lambda X, Index: X[[2, 0, 2]], note="rows"),
    # dX is Paddle's (the whole of dOut), which is not a derivative: see test_index.py
    Case("scatter", {"X": X, "Ids": ONCE, "Updates": U}, _scatter, wrt=["Updates"]),
    Case(
        "scatter",
        {"X": X, "Ids": ROWS, "Updates": U},
        _scatter,
        {"overwrite": False},
        wrt=["Updates"],
        note="added",
    ),
    Case(
        "scatter_nd_add",
        {"X": X, "Index": PAIRS, "Updates": _rng.standard_normal((2, 2, 2))},
        _scatter_add,
    ),
    Case("scatter_nd_add", {"X": X, "Index": ROWS, "Updates": U}, _scatter_add, note="rows"),
    Case(
        "index_select",
        {"X": X, "Index": np.array([2, 0, 2])},
        lambda X, Index: np.stack([X[:, 2], X[:, 0], X[:, 2]], 1),
        {"dim": 1},
    ),
    Case(
        "index_select",
        {"X": X, "Index": ONCE},
        lambda X, Index: X[[3, 0, 1]],
        {"dim": 0},
        note="rows",
    ),
    Case(
        "index_sample",
        {"X": M, "Index": np.array([[0, 0], [2, 1], [1, 1], [2, 0]])},
        lambda X, Index: np.array([[X[i, j] for j in row] for i, row in enumerate(Index)]),
    ),
    Case(
        "where",
        {"Condition": M > 0.1, "X": M, "Y": M * 2 + 1},
        lambda Condition, X, Y: Condition * X + (1 - Condition) * Y,
    ),
]


IDS = np.array([[1], [0], [2], [4]])


def _classes(x: np.ndarray, depth: int) -> np.ndarray:
    return (x[..., None] == np.arange(depth)).astype(np.float32)


CASES += [
    Case("one_hot", {"X": IDS}, lambda X, depth: _classes(X[:, 0], depth), {"depth": 5}),
    Case(
        "one_hot",
        {"X": IDS, "depth_tensor": np.array([6], np.int32)},
        lambda X: _classes(X[:, 0], 6),
        note="depth-tensor",
    ),
    Case(
        "one_hot",
        {"X": IDS},
        lambda X, depth: _classes(X[:, 0], depth),
        {"depth": 4, "allow_out_of_range": True},
        note="outside",
    ),
    Case(
        "one_hot_v2",
        {"X": IDS},
        lambda X: _classes(X, 5),
        {"depth": 5, "dtype": int(VarType.INT64)},
    ),
    Case(
        "shard_index",
        {"X": np.array([[1], [6], [12], [19]])},
        lambda X: np.array([[1], [6], [-7], [-7]]),
        {"index_num": 20, "nshards": 2, "shard_id": 0, "ignore_value": -7},
    ),
    Case(
        "shard_index",
        {"X": np.array([[1], [7], [12], [19]])},
        lambda X: np.array([[-1], [0], [5], [-1]]),
        {"index_num": 20, "nshards": 3, "shard_id": 1},
        note="uneven",
    ),
]


CASES += [
    Case(
        "hash",
        {"X": np.array([[5, 6, 7]], np.int32)},
        lambda: np.array([[[0], [18]]], np.int32),  # real Fluid 1.8.5
        {"num_hash": 2, "mod_by": 23},
    ),
]
