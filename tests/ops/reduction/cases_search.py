"""Cases of the operators that sort, find the largest, and list what is there."""

import numpy as np

from paddlelike.core import VarType
from tests.ops.harness.contract import Case

X = np.random.default_rng(7).permuted(np.arange(24.0)).reshape(2, 4, 3) / 7
LONG = np.random.default_rng(17).standard_normal((4, 200))
TIES = np.array([[1.0, 3.0, 3.0, 2.0, 3.0]])
NUMBERS = np.array([2.0, 3.0, 3.0, 1.0, 5.0, 3.0])


def _find_top(X, k):
    order = np.argsort(-X, -1)[..., :k]
    return {"Out": np.sort(X, -1)[..., ::-1][..., :k], "Indices": order}


CASES = [
    Case("top_k", {"X": X}, _find_top, {"k": 2}),
    Case("top_k", {"X": X}, _find_top, note="one"),
    # Declared with the attribute k, as in Fluid.
    Case(
        "top_k",
        {"X": X, "K": np.array([3], np.int32)},
        lambda X: _find_top(X, 3),
        note="k-tensor",
        check_shape=False,
    ),
    Case(
        "top_k",
        {"X": TIES},
        lambda X: {"Out": np.array([[3, 3, 3, 2, 1]]), "Indices": np.array([[4, 1, 2, 3, 0]])},
        {"k": 5},
        wrt=(),
        note="ties",
    ),
    Case("top_k", {"X": LONG}, _find_top, {"k": 5}, note="long"),
    Case(
        "top_k",
        {"X": np.floor(LONG)},
        lambda X, k: -np.sort(-X)[:, :k],
        {"k": 9},
        wrt=(),  # a step to one side of a tie changes which are the largest
        note="long-ties",
    ),
    Case("argsort", {"X": X}, lambda X: {"Out": np.sort(X, -1), "Indices": np.argsort(X, -1)}),
    Case(
        "argsort",
        {"X": X},
        lambda X: {"Out": -np.sort(-X, 1), "Indices": np.argsort(-X, 1)},
        {"axis": 1, "descending": True},
        note="falling",
    ),
    Case("arg_max", {"X": X}, lambda X: np.argsort(X, 1)[:, -1], {"axis": 1}),
    Case("arg_max", {"X": NUMBERS}, lambda X: np.array(4), {"axis": 0}, note="one-dim"),
    Case(
        "arg_min",
        {"X": X},
        lambda X: np.argsort(X, -1)[..., :1],
        {"axis": -1, "keepdims": True, "dtype": int(VarType.INT32)},
    ),
    Case(
        "unique",
        {"X": NUMBERS},
        lambda X: {"Out": np.array([2, 3, 1, 5]), "Index": np.array([0, 1, 1, 2, 3, 1])},
        {"dtype": int(VarType.INT32)},
    ),
    Case(
        "unique_with_counts",
        {"X": NUMBERS},
        lambda X: {
            "Out": np.array([2, 3, 1, 5]),
            "Index": np.array([0, 1, 1, 2, 3, 1]),
            "Count": np.array([1, 3, 1, 1]),
        },
        {"dtype": int(VarType.INT64)},
    ),
    Case("where_index", {"Condition": X > 2}, lambda Condition: np.stack(Condition.nonzero(), 1)),
    Case("is_empty", {"X": X}, lambda X: np.array([False])),
    Case("is_empty", {"X": X[:0]}, lambda X: np.array([True]), note="empty"),
    Case("size", {"Input": X}, lambda Input: np.array([24])),
]
