"""Products of matrices and vectors."""

from __future__ import annotations

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


_rng = np.random.default_rng(10)


def _kron(X, Y):
    rank = max(X.ndim, Y.ndim)
    X, Y = (Z.reshape((1,) * (rank - Z.ndim) + Z.shape) for Z in (X, Y))
    out = np.empty([a * b for a, b in zip(X.shape, Y.shape, strict=True)])
    for at in np.ndindex(out.shape):
        i, j = zip(*(divmod(k, n) for k, n in zip(at, Y.shape, strict=True)), strict=True)
        out[at] = X[i] * Y[j]
    return out


def _cross(X, Y):
    (a, b, c), (d, e, f) = X.T, Y.T
    return np.stack([b * f - c * e, c * d - a * f, a * e - b * d]).T


def _bilinear(X, Y, Weight):
    return np.einsum("ni,kij,nj->nk", X, Weight, Y)


CASES += [
    Case(
        "bmm",
        {"X": _values(2, 3, 4), "Y": _values(2, 4, 5)},
        lambda X, Y: np.stack([X[0].dot(Y[0]), X[1].dot(Y[1])]),
    ),
    *(
        Case(
            "addmm",
            {"Input": _values(*shape), "X": _values(3, 2), "Y": _values(2, 4)},
            lambda Input, X, Y: 0.5 * Input + 2 * np.einsum("ij,jk", X, Y),
            {"Alpha": 2.0, "Beta": 0.5},
            note=f"{shape[0]}x{shape[1]}",
        )
        for shape in ((3, 4), (1, 4), (3, 1))
    ),
    Case("dot", {"X": _values(4), "Y": _values(4)}, lambda X, Y: np.array([sum(X * Y)])),
    Case(
        "dot",
        {"X": _values(3, 4), "Y": _values(3, 4)},
        lambda X, Y: np.array([[sum(x * y)] for x, y in zip(X, Y, strict=True)]),
        note="rows",
    ),
    *(
        Case("kron", {"X": _values(*x), "Y": _values(*y)}, _kron, note=f"{len(x)}-{len(y)}")
        for x, y in (((2, 3), (4, 2)), ((3,), (4, 2)), ((2, 2, 3), (4, 2)))
    ),
    Case("cross", {"X": _values(4, 3), "Y": _values(4, 3)}, _cross),
    Case(
        "cross",
        {"X": _values(3, 4, 3), "Y": _values(3, 4, 3)},
        lambda X, Y: np.stack([_cross(X[i], Y[i]) for i in range(3)]),
        {"dim": 2},
        note="dim",
    ),
    Case(
        "fsp",
        {"X": _values(2, 3, 4, 5), "Y": _values(2, 6, 4, 5)},
        lambda X, Y: np.einsum("nchw,ndhw->ncd", X, Y) / 20,
    ),
    Case(
        "bilinear_tensor_product",
        {"X": _values(3, 2), "Y": _values(3, 4), "Weight": _values(5, 2, 4)},
        _bilinear,
    ),
    Case(
        "bilinear_tensor_product",
        {
            "X": _values(3, 2),
            "Y": _values(3, 4),
            "Weight": _values(5, 2, 4),
            "Bias": _values(1, 5),
        },
        lambda X, Y, Weight, Bias: _bilinear(X, Y, Weight) + Bias,
        note="bias",
    ),
]
