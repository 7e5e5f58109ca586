"""Cases of the products that are linear in both sides."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(10)


def _values(*shape: int):
    return _rng.standard_normal(shape)


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


CASES = [
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
