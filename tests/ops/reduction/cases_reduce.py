"""Cases of the reductions, over one dim, several and all."""

import functools
import operator

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(7)
X = _rng.uniform(0.5, 2, (3, 4, 5))
TRUTH = _rng.random((3, 4, 5)) < 0.7

_product = functools.partial(functools.reduce, operator.mul)
_REAL = {
    "reduce_sum": sum,
    "reduce_mean": lambda values: sum(values) / len(values),
    "reduce_max": max,
    "reduce_min": min,
    "reduce_prod": _product,
    "frobenius_norm": lambda values: sum(v * v for v in values) ** 0.5,
}
_TRUTH = {"reduce_all": all, "reduce_any": any}
# note: dims, the rest of the attributes, dims after which X is transposed, shape of the result
_WAYS = {
    "first": ({"dim": [0]}, (1, 2, 0), (4, 5)),
    "middle": ({"dim": [1]}, (0, 2, 1), (3, 5)),
    "last": ({"dim": [-1], "keep_dim": True}, (0, 1, 2), (3, 4, 1)),
    "two": ({"dim": [2, 0]}, (1, 0, 2), (4,)),
    "trailing": ({"dim": [1, 2], "keep_dim": True}, (0, 1, 2), (3, 1, 1)),
    "all": ({"dim": [0], "reduce_all": True}, (0, 1, 2), (1,)),
    "all-listed": ({"dim": [0, 1, 2], "keep_dim": True}, (0, 1, 2), (1, 1, 1)),
}


def _by_lists(formula, order, shape):
    """The formula on plain lists: the kept dims first, the reduced ones as one list."""

    def expected(X):
        lists = X.transpose(order).reshape(int(np.prod(shape)), -1).tolist()
        return np.array([formula(one) for one in lists]).reshape(shape)

    return expected


CASES = [
    *(
        Case(name, {"X": values}, _by_lists(formula, order, shape), attrs, note=note)
        for table, values in ((_REAL, X), (_TRUTH, TRUTH))
        for name, formula in table.items()
        for note, (attrs, order, shape) in _WAYS.items()
    ),
    Case(
        "reduce_sum",
        {"X": np.arange(6).reshape(2, 3)},
        lambda: np.array([3, 12]),
        {"dim": [1]},
        wrt=(),
        note="integers",
    ),
    Case(
        "reduce_mean",
        {"X": np.array([[1, 2, 4], [-1, -2, -4]])},
        lambda: np.array([2, -2]),
        {"dim": [1]},
        wrt=(),
        note="integers",
    ),
    Case(
        "reduce_sum",
        {"X": np.full((2, 3), 0.5)},
        lambda: np.array([1.5, 1.5], np.float32),
        {"dim": [1], "out_dtype": 5},
        wrt=(),
        note="other-type",
    ),
    Case("mean", {"X": X}, lambda X: np.array([sum(X.ravel().tolist()) / 60])),
]
