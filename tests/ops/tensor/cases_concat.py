"""Tensors put together and repeated."""

from __future__ import annotations

import numpy as np

from paddlelike.core import LoDTensor
from tests.ops.harness.contract import Case

_rng = np.random.default_rng(2)
A, B, C = (_rng.standard_normal((3, n, 2)) for n in (4, 1, 4))
_int = lambda *n: np.array(n, np.int32)


def _sequences(array: np.ndarray, *offsets: int) -> LoDTensor:
    return LoDTensor(array, [list(offsets)])


CASES = [
    Case("concat", {"X": [A, B]}, lambda X: np.hstack(X), {"axis": 1}),
    Case("concat", {"X": [A, A[:2]]}, lambda X: np.vstack(X), {"axis": -3}, note="negative-axis"),
    Case("concat", {"X": [A, C], "AxisTensor": _int(2)}, lambda X: np.dstack(X), note="axis-tensor"),
    Case(
        "concat",
        {"X": [_sequences(A[:, 0], 0, 1, 3), _sequences(B[:, 0], 0, 2, 3)]},
        lambda X: np.vstack(X),
        {"axis": 0},
        note="lod",
    ),
    Case("split", {"X": A}, lambda X: {"Out": [X[:, :2], X[:, 2:]]}, {"axis": 1, "num": 2}),
    Case(
        "split",
        {"X": A},
        lambda X: {"Out": [X[:, :1], X[:, 1:4], X[:, 4:]]},
        {"axis": 1, "sections": [1, -1, 0]},
        wrt=(),  # the real system refuses an empty part in concat
        note="sections",
        check_shape=False,
    ),
    Case("split", {"X": A}, lambda X: {"Out": [X[:1], X[1:]]}, {"sections": [1, 2]}, note="rows"),
    Case(
        "split",
        {"X": A, "AxisTensor": _int(2)},
        lambda X: {"Out": [X[..., :1], X[..., 1:]]},
        {"num": 2},
        note="axis-tensor",
    ),
    Case(
        "split",
        {"X": A, "SectionsTensorList": [_int(3), _int(1)]},
        lambda X: {"Out": [X[:, :3], X[:, 3:]]},
        {"sections": [3, -1], "axis": 1},
        note="section-tensors",
    ),
    Case(
        "multiplex",
        {"Ids": np.array([[1], [0], [1]], np.int32), "X": [A, C]},
        lambda X: np.array([X[1][0], X[0][1], X[1][2]]),
    ),
]


_rng = np.random.default_rng(2)
A, C = _rng.standard_normal((2, 3, 4, 2))

CASES += [
    Case(
        "stack",
        {"X": [A, C]},
        lambda X: np.array(X).transpose(1, 2, 0, 3),
        {"axis": 2},
        note="axis-2",
    ),
    Case("stack", {"X": [A, C]}, lambda X: np.array(X), {"axis": -4}),
    Case("unstack", {"X": A}, lambda X: {"Y": [X[:, i] for i in range(4)]}, {"axis": 1, "num": 4}),
    Case("unbind", {"X": A}, lambda X: {"Out": [X[..., 0], X[..., 1]]}, {"axis": -1}),
]


_rng = np.random.default_rng(9)
A, B = _rng.standard_normal(3), _rng.standard_normal(4)

CASES += [
    Case(
        "meshgrid",
        {"X": [A, B]},
        lambda X: {"Out": [np.outer(X[0], np.ones(4)), np.outer(np.ones(3), X[1])]},
    ),
]


X = np.random.default_rng(12).standard_normal((2, 1, 3))

CASES += [
    Case("expand", {"X": X}, lambda X: np.tile(X, (2, 3, 1)), {"expand_times": [2, 3, 1]}),
    Case(
        "expand",
        {"X": X, "ExpandTimes": _int(1, 2, 2)},
        lambda X: np.tile(X, (1, 2, 2)),
        note="tensor",
    ),
    Case(
        "expand",
        {"X": X, "expand_times_tensor": [_int(1), _int(2), _int(2)]},
        lambda X: np.tile(X, (1, 2, 2)),
        {"expand_times": [1, -1, -1]},
        note="tensors",
    ),
    Case(
        "expand_as",
        {"X": X, "target_tensor": np.zeros((2, 4, 6))},
        lambda X: np.tile(X, (1, 4, 2)),
        wrt=["X"],
    ),
    Case("reverse", {"X": X}, lambda X: X[::-1, :, ::-1], {"axis": [0, 2]}),
    Case("flip", {"X": X}, lambda X: X[:, :, ::-1], {"dims": [-1]}),
    Case("roll", {"X": X}, lambda X: X[..., [1, 2, 0]], {"shifts": [2], "dims": [2]}),
    Case(
        "roll",
        {"X": X},
        lambda X: X.ravel()[[5, 0, 1, 2, 3, 4]].reshape(X.shape),
        {"shifts": [1]},
        note="as-one-row",
    ),
]
