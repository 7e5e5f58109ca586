"""Cases of the operators on tables of embeddings."""

import numpy as np

from paddlelike.core import LoDTensor, SelectedRows
from tests.ops.harness.contract import Case

_rng = np.random.default_rng(4)
W = _rng.standard_normal((7, 3))
IDS = np.array([[2], [0], [2], [6], [2]])
ROWS = SelectedRows([5, 0, 5], 9, _rng.standard_normal((3, 2)))


def _one_hot(ids: np.ndarray, depth: int) -> np.ndarray:
    return (ids[..., None] == np.arange(depth)).astype(float)


CASES = [
    Case("lookup_table", {"W": W, "Ids": IDS}, lambda W, Ids: _one_hot(Ids[:, 0], 7) @ W),
    Case(
        "lookup_table",
        {"W": W, "Ids": LoDTensor(IDS, [[0, 2, 5]])},
        lambda W, Ids: _one_hot(Ids[:, 0], 7) @ W,
        {"is_sparse": True},
        note="sparse-lod",
    ),
    Case(
        "lookup_table",
        {"W": W, "Ids": IDS},
        lambda W, Ids: np.diag([0, 1, 0, 1, 0]) @ W[Ids[:, 0]],
        {"padding_idx": 2},
        note="padding",
    ),
    Case(
        "lookup_table",
        {"W": SelectedRows([5, 0, 7], 10, W[:3]), "Ids": np.array([[7], [5], [7]])},
        lambda W, Ids: W.array[[2, 0, 2]],
        wrt=(),
        note="table-of-rows",
    ),
    Case(
        "lookup_table_v2",
        {"W": W, "Ids": np.array([[1, 1], [4, 0]])},
        lambda W, Ids: _one_hot(Ids, 7) @ W,
    ),
    Case(
        "lookup_table_v2",
        {"W": W, "Ids": IDS},
        lambda W, Ids: _one_hot(Ids, 7) @ W,
        {"is_sparse": True},
        note="sparse",
    ),
    Case(
        "merge_selected_rows",
        {"X": ROWS},
        lambda X: SelectedRows([0, 5], 9, np.stack([X.array[1], X.array[0] + X.array[2]])),
    ),
    Case("get_tensor_from_selected_rows", {"X": ROWS}, lambda X: X.array, check_shape=False),
]
