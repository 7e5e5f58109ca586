"""Cases of the operators with the answer true or false."""

import operator

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(6)
A, B = _rng.integers(0, 3, (2, 4, 5))
P, Q = _rng.random((2, 4, 5)) < 0.5

_COMPARE = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less_than": operator.lt,
    "less_equal": operator.le,
    "greater_than": operator.gt,
    "greater_equal": operator.ge,
}
_LOGICAL = {"logical_and": operator.and_, "logical_or": operator.or_, "logical_xor": operator.xor}


def _by_element(relation):
    return lambda X, Y: np.array([relation(x, y) for x, y in np.broadcast(X, Y)]).reshape(X.shape)


def _by_row(relation):
    return lambda X, Y: _by_element(relation)(X, Y[:, None])


def _values(*numbers: float):
    return {"X": np.array(numbers)}


INF, NAN = float("inf"), float("nan")

CASES = [
    *(Case(name, {"X": A, "Y": B}, _by_element(ask)) for name, ask in _COMPARE.items()),
    *(
        Case(name, {"X": A * 0.5, "Y": B[:, 0] * 0.5}, _by_row(ask), {"axis": 0}, note="rows")
        for name, ask in _COMPARE.items()
    ),
    Case(
        "equal",
        {"X": np.array([1e-9, 1e-7]), "Y": np.zeros(2)},
        lambda: np.array([True, False]),
        note="nearly",
    ),
    *(Case(name, {"X": P, "Y": Q}, _by_element(ask)) for name, ask in _LOGICAL.items()),
    Case("logical_not", {"X": P}, lambda X: X ^ True),
    Case("isfinite", _values(1, 2), lambda: np.array([True])),
    Case("isfinite", _values(1, INF), lambda: np.array([False]), note="inf"),
    Case("isfinite", _values(1, NAN), lambda: np.array([False]), note="nan"),
    Case("isinf", _values(1, -INF), lambda: np.array([True])),
    Case("isinf", _values(1, NAN), lambda: np.array([False]), note="nan"),
    Case("isnan", _values(1, NAN), lambda: np.array([True])),
    Case("isnan", _values(1, INF), lambda: np.array([False]), note="inf"),
    Case("equal_reduce", {"X": A, "Y": A}, lambda: np.array([True])),
    Case("equal_reduce", {"X": A, "Y": B}, lambda: np.array([False]), note="other"),
    Case(
        "allclose",
        {"Input": np.array([1.0, -2.0]), "Other": np.array([1.00001, -2.0])},
        lambda: np.array([True]),
        {"rtol": 2e-5},
    ),
    Case(
        "allclose",
        {"Input": np.array([1.0, INF]), "Other": np.array([1.0, INF])},
        lambda: np.array([False]),
        note="inf",
    ),
    Case(
        "allclose",
        {"Input": np.array([1.0]), "Other": np.array([1.1])},
        lambda: np.array([False]),
        note="far",
    ),
    Case(
        "allclose",
        {"Input": np.array([NAN]), "Other": np.array([NAN])},
        lambda equal_nan: np.array([equal_nan]),
        {"equal_nan": True},
        note="nan",
    ),
]
