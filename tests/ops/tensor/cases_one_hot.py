"""Cases of the operators on the numbers of classes."""

import numpy as np

from paddlelike.core.dtypes import VarType
from tests.ops.harness.contract import Case

IDS = np.array([[1], [0], [2], [4]])


def _classes(x: np.ndarray, depth: int) -> np.ndarray:
    return (x[..., None] == np.arange(depth)).astype(np.float32)


CASES = [
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
