"""Cases of mul and matmul."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(9)


def _values(*shape: int):
    return _rng.standard_normal(shape)


def _matmul_formula(X, Y, transpose_X, transpose_Y, alpha):
    """By einsum, on stacks with letters of their own."""
    x = {1: "k", 2: "km" if transpose_X else "mk"}.get(X.ndim, "...km" if transpose_X else "...mk")
    y = {1: "k", 2: "nk" if transpose_Y else "kn"}.get(Y.ndim, "...nk" if transpose_Y else "...kn")
    stack = "..." if X.ndim > 2 or Y.ndim > 2 else ""
    out = stack + ("m" if X.ndim > 1 else "") + ("n" if Y.ndim > 1 else "")
    return np.atleast_1d(alpha * np.einsum(f"{x},{y}->{out}", X, Y))


def _matmul(x, y, transpose_x=False, transpose_y=False, alpha=1.0):
    X, Y = _values(*x), _values(*y)
    note = f"{x}x{y}" + "-tx" * transpose_x + "-ty" * transpose_y
    attrs = {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": alpha}
    if transpose_x:
        X = np.ascontiguousarray(X.swapaxes(-1, -2))
    if transpose_y:
        Y = np.ascontiguousarray(Y.swapaxes(-1, -2))
    return Case("matmul", {"X": X, "Y": Y}, _matmul_formula, attrs, note=note.replace(" ", ""))


_STACKS = [
    ((3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 2, 3, 4), (2, 2, 4, 5)),
    ((2, 2, 3, 4), (4, 5)),
]

CASES = [
    Case("mul", {"X": _values(3, 4), "Y": _values(4, 5)}, lambda X, Y: np.einsum("ij,jk", X, Y)),
    Case(
        "mul",
        {"X": _values(3, 2, 4), "Y": _values(8, 5)},
        lambda X, Y: np.einsum("iab,abk", X, Y.reshape(2, 4, 5)),
        note="images",
    ),
    Case(
        "mul",
        {"X": _values(3, 2, 4), "Y": _values(2, 2, 5)},
        lambda X, Y: np.einsum("ijab,abk", X.reshape(3, 2, 2, 2), Y),
        {"x_num_col_dims": 2, "y_num_col_dims": 2},
        note="num-col-dims",
    ),
    *(_matmul(x, y, tx, ty) for x, y in _STACKS for tx in (False, True) for ty in (False, True)),
    _matmul((3, 4), (4, 5), alpha=0.5),
    _matmul((2, 3, 4), (2, 4, 5), True, True, alpha=-2.0),
    _matmul((3,), (3,)),
    _matmul((3,), (3, 4)),
    _matmul((2, 3), (3,)),
    _matmul((3,), (2, 3, 4)),
    _matmul((2, 4, 3), (3,)),
    Case(
        "matmul",
        {"X": _values(3), "Y": _values(4)},
        lambda X, Y: np.outer(X, Y),
        {"transpose_X": True, "transpose_Y": True},
        note="outer",
    ),
    Case(
        "matmul",
        {"X": _values(4, 3, 4), "Y": _values(2, 2, 4, 5)},
        lambda X, Y: np.einsum("smk,skn->smn", X, Y.reshape(4, 4, 5)),
        note="stacks-counted-in-another-way",
    ),
    Case(
        "matmul",
        {"X": _values(2, 2, 3, 4), "Y": _values(4, 4, 5)},
        lambda X, Y: np.einsum("smk,skn->smn", X.reshape(4, 3, 4), Y).reshape(2, 2, 3, 5),
        note="flat-stack-of-y",
    ),
]
