"""Shapes and copies."""

from __future__ import annotations

import numpy as np

from paddlelike.core import SelectedRows
from tests.ops.harness.contract import Case

_rng = np.random.default_rng(1)
X = _rng.standard_normal((3, 4, 2))
Y = _rng.standard_normal((3, 1, 2, 1))
_int = lambda *n: np.array(n, np.int32)


def _twins(type: str, inputs: dict, expected, attrs=None, note: str = "") -> list[Case]:
    def with_shape(X, **rest):
        return {"Out": expected(X, **rest), "XShape": np.empty((0, *X.shape))}

    return [
        Case(type, inputs, expected, attrs or {}, note=note),
        Case(type + "2", inputs, lambda X: with_shape(X), attrs or {}, wrt=["X"], note=note),
    ]


CASES = [
    *_twins("reshape", {"X": X}, lambda X: X.ravel().reshape(4, 6), {"shape": [4, 6]}),
    *_twins("reshape", {"X": X}, lambda X: X.reshape(3, 8), {"shape": [0, -1]}, "copied-dim"),
    *_twins(
        "reshape",
        {"X": X, "Shape": _int(6, 4)},
        lambda X: X.reshape(6, 4),
        {"shape": [-1, 4]},
        "shape-tensor",
    ),
    *_twins(
        "reshape",
        {"X": X, "ShapeTensor": [_int(6), _int(-1)]},
        lambda X: X.reshape(6, 4),
        {"shape": [-1, -1]},
        "shape-tensors",
    ),
    *_twins("squeeze", {"X": Y}, lambda X: X[:, 0, :, 0], {"axes": []}),
    *_twins("squeeze", {"X": Y}, lambda X: X[..., 0], {"axes": [-1]}, "axis"),
    *_twins("unsqueeze", {"X": X}, lambda X: X[:, None, :, :, None], {"axes": [1, -1]}),
    *_twins(
        "unsqueeze",
        {"X": X, "AxesTensor": _int(1, 3)},
        lambda X: X[:, None, :, None],
        note="tensor",
    ),
    *_twins(
        "unsqueeze",
        {"X": X, "AxesTensorList": [_int(2), _int(0)]},
        lambda X: X[None, :, :, None],
        note="tensors",
    ),
    *_twins("flatten", {"X": X}, lambda X: np.stack([row.ravel() for row in X]), {"axis": 1}),
    *_twins("flatten", {"X": X}, lambda X: X.reshape(1, -1), {"axis": 0}, "axis-0"),
    *_twins("flatten", {"X": X}, lambda X: X.reshape(-1, 1), {"axis": 3}, "last-axis"),
    *_twins("transpose", {"X": X}, lambda X: np.einsum("abc->cab", X), {"axis": [2, 0, 1]}),
]


X = np.random.default_rng(3).standard_normal((3, 2))

CASES += [
    Case("assign", {"X": X}, lambda X: X + 0),
    Case(
        "assign",
        {"X": SelectedRows([2, 0, 2], 5, X)},
        lambda X: SelectedRows([2, 0, 2], 5, X.array + 0),
        wrt=(),
        note="selected-rows",
    ),
]
