"""Normalization of each sample, of neighbouring channels, and of weights."""

from __future__ import annotations

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(8)
_normal = lambda *shape: _rng.standard_normal(shape)
_positive = lambda *shape: _rng.uniform(0.5, 2, shape)


def _unit(x, epsilon):
    return (x - np.mean(x)) / np.sqrt(np.var(x) + epsilon)


def _layer(X, scale, bias, epsilon, begin_norm_axis):
    rows = X.reshape(np.prod(X.shape[:begin_norm_axis]), -1)
    y = np.array([_unit(row, epsilon) * scale + bias for row in rows]).reshape(X.shape)
    return {"Y": y, "Mean": np.array([*map(np.mean, rows)]), "Variance": np.array([*map(np.var, rows)])}


def _layer_plain(X, epsilon, begin_norm_axis):
    return _layer(X, 1, 0, epsilon, begin_norm_axis)


def _layer_affine(X, Scale, Bias, epsilon, begin_norm_axis):
    return _layer(X, Scale, Bias, epsilon, begin_norm_axis)


def _layer_bias(X, Bias, epsilon, begin_norm_axis):
    return _layer(X, 1, Bias, epsilon, begin_norm_axis)


CASES = [
    Case("layer_norm", {"X": _normal(3, 6)}, _layer_plain, through=["Y"]),
    Case(
        "layer_norm",
        {"X": _normal(3, 2, 4), "Scale": _positive(8), "Bias": _normal(8)},
        _layer_affine,
        {"epsilon": 1e-3},
        through=["Y"],
        note="affine",
    ),
    Case(
        "layer_norm",
        {"X": _normal(3, 2, 4), "Bias": _normal(4)},
        _layer_bias,
        {"begin_norm_axis": 2},
        through=["Y"],
        note="bias",
    ),
]


_rng = np.random.default_rng(8)


def _group(X, scale, bias, epsilon, groups):
    size = X.shape[1] // groups
    out = {"Y": np.empty_like(X), "Mean": np.empty((len(X), groups))}
    out["Variance"] = np.empty((len(X), groups))
    for n, g in np.ndindex(len(X), groups):
        part = slice(g * size, (g + 1) * size)
        factor, shift = (v[part].reshape(-1, *(1,) * (X.ndim - 2)) for v in (scale, bias))
        out["Y"][n, part] = _unit(X[n, part], epsilon) * factor + shift
        out["Mean"][n, g], out["Variance"][n, g] = np.mean(X[n, part]), np.var(X[n, part])
    return out


def _group_plain(X, epsilon, groups):
    return _group(X, np.ones(X.shape[1]), np.zeros(X.shape[1]), epsilon, groups)


def _group_affine(X, Scale, Bias, epsilon, groups, data_layout):
    if data_layout == "NHWC":
        out = _group(np.moveaxis(X, -1, 1), Scale, Bias, epsilon, groups)
        return out | {"Y": np.moveaxis(out["Y"], 1, -1)}
    return _group(X, Scale, Bias, epsilon, groups)


def _instance(X, Scale, Bias, epsilon):
    out = _group(X, Scale, Bias, epsilon, X.shape[1])
    inverse = (out.pop("Variance").ravel() + epsilon) ** -0.5
    return {"Y": out["Y"], "SavedMean": out["Mean"].ravel(), "SavedVariance": inverse}


_AFFINE = {"Scale": _positive(4), "Bias": _normal(4)}

CASES += [
    Case("group_norm", {"X": _normal(3, 4, 2, 3)}, _group_plain, {"groups": 2}, through=["Y"]),
    Case(
        "group_norm",
        {"X": _normal(3, 4, 2, 3)} | _AFFINE,
        _group_affine,
        {"groups": 2, "epsilon": 1e-3},
        through=["Y"],
        note="affine",
    ),
    Case(
        "group_norm",
        {"X": _normal(3, 2, 3, 4)} | _AFFINE,
        _group_affine,
        {"groups": 2, "data_layout": "NHWC"},
        through=["Y"],
        note="channels-last",
    ),
    Case("instance_norm", {"X": _normal(3, 4, 2, 3)} | _AFFINE, _instance, through=["Y"]),
    Case("instance_norm", {"X": _normal(3, 4, 5)} | _AFFINE, _instance, through=["Y"], note="3d"),
]


_rng = np.random.default_rng(14)
X = _normal(2, 8, 4, 6)
LAST = np.ascontiguousarray(np.moveaxis(X, 1, -1))


def _lrn(X, n, k, alpha, beta, data_format):
    if data_format == "NHWC":
        out = _lrn(np.moveaxis(X, -1, 1), n, k, alpha, beta, "NCHW")
        return {slot: np.moveaxis(value, 1, -1) for slot, value in out.items()}
    near = lambda c: X[:, max(0, c - n // 2) : c + n // 2 + 1]
    mid = np.stack([k + alpha * (near(c) ** 2).sum(1) for c in range(X.shape[1])], 1)
    return {"Out": X / mid**beta, "MidOut": mid}


CASES += [
    Case("lrn", {"X": X}, _lrn, {"alpha": 0.3}, through=["Out"]),
    Case(
        "lrn",
        {"X": LAST},
        _lrn,
        {"alpha": 0.3, "n": 3, "k": 1.0, "beta": 0.5, "data_format": "NHWC"},
        through=["Out"],
        note="channels-last",
    ),
    Case("lrn", {"X": X[:, :2]}, _lrn, {"alpha": 0.3, "n": 7}, through=["Out"], note="wide"),
]


_rng = np.random.default_rng(13)
W = _rng.standard_normal((4, 3, 2))
U, V = _rng.standard_normal(4), _rng.standard_normal(6)


def _given(Weight, U, V):
    return Weight / np.einsum("i,ij,j", U, Weight.reshape(4, 6), V)


def _largest(Weight):
    rows = Weight.transpose(1, 0, 2).reshape(3, 8)
    return Weight / np.linalg.svd(rows, compute_uv=False)[0]


CASES += [
    Case("spectral_norm", {"Weight": W, "U": U, "V": V}, _given, {"power_iters": 0}),
    Case(
        "spectral_norm",
        {"Weight": W, "U": _rng.standard_normal(3), "V": _rng.standard_normal(8)},
        _largest,
        {"power_iters": 200, "dim": 1},
        note="converged",
    ),
    Case(
        "spectral_norm",
        {"Weight": W, "U": U / 3, "V": V},
        lambda Weight, U, V: _given(Weight, *_steps(Weight.reshape(4, 6), U, 2)),
        {"power_iters": 2},
        wrt=(),  # the vectors count as constants
        note="two-steps",
    ),
]


def _steps(matrix, u, count):
    for _ in range(count):
        v = matrix.T @ u / np.linalg.norm(matrix.T @ u)
        u = matrix @ v / np.linalg.norm(matrix @ v)
    return u, v
