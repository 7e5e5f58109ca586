"""Cases of layer_norm, one row at a time."""

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
