"""Cases of group_norm and instance_norm, one group or channel at a time."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(8)
_normal = lambda *shape: _rng.standard_normal(shape)
_positive = lambda *shape: _rng.uniform(0.5, 2, shape)


def _unit(x, epsilon):
    return (x - np.mean(x)) / np.sqrt(np.var(x) + epsilon)


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

CASES = [
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
