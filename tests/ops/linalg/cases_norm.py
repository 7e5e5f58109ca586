"""Norms, and parts of matrices."""

from __future__ import annotations

import math

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(8)
X = _rng.uniform(0.2, 2, (3, 4, 5)) * np.where(_rng.random((3, 4, 5)) < 0.5, 1, -1)
M, N = X[0], X[1] * 1.5


def _lengths(X, axis: int):
    return np.apply_along_axis(lambda row: [math.hypot(*row)], axis, X)


def _p_norm(p: float, axis: int):
    return lambda X: np.apply_along_axis(lambda row: sum(abs(row) ** p) ** (1 / p), axis, X)


def _cosines(X, Y):
    X, Y = X.reshape(len(X), -1), np.broadcast_to(Y, X.shape).reshape(len(X), -1)
    return np.array([[x @ y / math.hypot(*x) / math.hypot(*y)] for x, y in zip(X, Y, strict=True)])


def _differences(X, Y):
    D = (X - Y).reshape(len(X), -1)
    return {"sub_result": D, "Out": np.array([[math.hypot(*d) ** 2] for d in D])}


CASES = [
    Case("squared_l2_norm", {"X": X}, lambda X: np.array([math.hypot(*X.ravel()) ** 2])),
    Case("l1_norm", {"X": X}, lambda X: np.array([math.fsum(abs(X.ravel()))])),
    *(
        Case(
            "norm",
            {"X": X},
            lambda X, axis: {"Norm": _lengths(X, axis), "Out": X / _lengths(X, axis)},
            {"axis": axis, "epsilon": 0.0},
            through=["Out"],
            note=f"axis{axis}",
        )
        for axis in (0, 1, -1)
    ),
    Case(
        "norm",
        {"X": np.zeros((2, 3))},
        lambda X: {"Norm": np.full((2, 1), 0.5), "Out": X},
        {"axis": 1, "epsilon": 0.25},
        through=["Out"],
        note="zeros",
    ),
    *(
        Case("p_norm", {"X": X}, _p_norm(p, 1), {"porder": p, "axis": 1}, note=f"p{p}")
        for p in (1.0, 2.0, 3.0)
    ),
    Case(
        "p_norm",
        {"X": X},
        lambda X: _p_norm(2, 2)(X)[..., None],
        {"keepdim": True},
        note="keepdim",
    ),
    Case("p_norm", {"X": X[0, 0]}, lambda X: np.array([math.hypot(*X)]), note="vector"),
    *(
        Case(
            "dist",
            {"X": M, "Y": N[0]},
            lambda X, Y, p: np.array([(np.abs(X - Y) ** p).sum() ** (1 / p)]),
            {"p": p},
            note=f"p{p}",
        )
        for p in (1.0, 2.0, 3.0)
    ),
    Case(
        "dist",
        {"X": M, "Y": N},
        lambda X, Y: np.array([max(abs(X - Y).flat)]),
        {"p": math.inf},
        note="greatest",
    ),
    Case(
        "dist",
        {"X": M, "Y": N},
        lambda X, Y: np.array([min(abs(X - Y).flat)]),
        {"p": -math.inf},
        note="least",
    ),
    Case("dist", {"X": M, "Y": M * 2}, lambda X: np.array([X.size]), {"p": 0.0}, note="count"),
    Case("squared_l2_distance", {"X": X, "Y": X * 2}, _differences, through=["Out"]),
    Case("squared_l2_distance", {"X": M, "Y": N[:1]}, _differences, through=["Out"], note="one-y"),
    *(
        Case("cos_sim", {"X": x, "Y": y}, _cosines, through=["Out"], note=note)
        for note, x, y in (("pairs", M, N), ("one-y", M, N[:1]), ("blocks", X, X[::-1] + 0.5))
    ),
]


X = np.random.default_rng(11).standard_normal((3, 4, 5))

CASES += [
    Case("trace", {"Input": X}, lambda Input: np.einsum("bii->b", Input[..., :4])),
    Case(
        "trace",
        {"Input": X[0]},
        lambda Input: np.array([sum(Input[i, i + 2] for i in range(3))]),
        {"offset": 2},
        note="matrix",
    ),
    Case(
        "trace",
        {"Input": X},
        lambda Input: np.einsum("ibi->b", Input[1:, :, :2]),
        {"offset": -1, "dim1": 2, "dim2": 0},
        note="rows-in-the-lower-dim",
    ),
    Case(
        "trace",
        {"Input": X},
        lambda Input: np.zeros(3),
        {"offset": 9},
        note="outside",
    ),
    *(
        Case(
            "tril_triu",
            {"X": X},
            lambda X, diagonal, lower: (
                X * [[j - i <= diagonal if lower else j - i >= diagonal for j in range(5)] for i in range(4)]
            ),
            {"lower": lower, "diagonal": diagonal},
            note=f"{'lower' if lower else 'upper'}{diagonal}",
        )
        for lower in (True, False)
        for diagonal in (-1, 0, 2)
    ),
]
