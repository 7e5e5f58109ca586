"""Cases of the operators that cut rows and ids into the shares of servers; the others need servers."""

from __future__ import annotations

import numpy as np

from paddlelike.core import SelectedRows
from tests.ops.harness.contract import Case

_X = np.arange(18.0).reshape(6, 3)
_IDS = np.array([[7], [2], [9], [2], [4], [0]])
_ROWS = np.array([5, 0, 3, 5])
_VALUE = np.arange(8.0).reshape(4, 2)
_GRAD = SelectedRows(_ROWS, 6, _VALUE)

CASES = [
    Case(
        "split_byref",
        {"X": _X},
        lambda X: {"Out": [X[:1], X[1:4], X[4:]]},
        {"sections": [1, 3, 2]},
        note="sections",
    ),
    Case("split_byref", {"X": _X}, lambda X: {"Out": [X[:3], X[3:]]}, {"num": 2}, note="num"),
    Case(
        "split_selected_rows",
        {"X": _GRAD},
        lambda X: {
            "Out": [SelectedRows([0], 3, _VALUE[[1]]), SelectedRows([2, 0, 2], 3, _VALUE[[0, 2, 3]])],
        },
        {"height_sections": [3, 3]},
        wrt=(),
    ),
    Case(
        "split_ids",
        {"Ids": [_IDS, np.array([[3], [4]])]},
        lambda: {"Out": [np.array([[0], [3], [9]]), np.array([[4], [7]]), np.array([[2]])]},
        check_shape=False,
        note="each-id-once",
    ),
    Case(
        "split_ids",
        {"Ids": [_GRAD]},
        lambda: {"Out": [SelectedRows([0], 6, _VALUE[[1]]), SelectedRows([5, 3, 5], 6, _VALUE[[0, 2, 3]])]},
        check_shape=False,
        note="gradient",
    ),
    Case(
        "merge_ids",
        {
            "Ids": [_IDS, np.array([[4], [7]])],
            "Rows": [np.array([[0], [2], [4]]), np.array([[7], [9]])],
            "X": [np.array([[0.0, 10.0], [2, 12], [4, 14]]), np.array([[7.0, 17.0], [9, 19]])],
        },
        lambda: {"Out": [np.hstack([_IDS, _IDS + 10.0]), np.array([[4.0, 14.0], [7, 17]])]},
        check_shape=False,
        wrt=(),
    ),
    Case(
        "ref_by_trainer_id",
        {"X": [_X, -_X], "TrainerId": np.array([1])},
        lambda X: -_X,
        wrt=(),
    ),
]
