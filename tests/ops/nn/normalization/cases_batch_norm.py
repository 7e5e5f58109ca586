"""Normalization by statistics over a batch."""

from __future__ import annotations

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(7)
_normal = lambda *shape: _rng.standard_normal(shape)
_positive = lambda *shape: _rng.uniform(0.5, 2, shape)


def _activate(y, activation, alpha):
    if activation == "leaky_relu":
        return y * (1 if y > 0 else alpha)
    return y if y > 0 or activation != "elu" else alpha * (np.exp(y) - 1)


def _normalized(x, scale, bias, mean, variance, attrs):
    """Every output, from ``x`` with the channels first."""
    moving = not (attrs["use_global_stats"] or attrs["is_test"])
    out = {"Y": np.empty_like(x), "MeanOut": mean.copy(), "VarianceOut": variance.copy()}
    out |= {"SavedMean": mean.copy(), "SavedVariance": np.empty_like(mean)}
    for c in range(x.shape[1]):
        m, v = mean[c], variance[c]
        if moving:
            m, v = np.mean(x[:, c]), np.var(x[:, c])
            old, new = attrs["momentum"], 1 - attrs["momentum"]
            out["MeanOut"][c] = old * mean[c] + new * m
            out["VarianceOut"][c] = old * variance[c] + new * v
        out["SavedMean"][c], out["SavedVariance"][c] = m, (v + attrs["epsilon"]) ** -0.5
        out["Y"][:, c] = scale[c] * (x[:, c] - m) * (v + attrs["epsilon"]) ** -0.5 + bias[c]
    return out


def _batch_norm(X, Scale, Bias, Mean, Variance, momentum, epsilon, is_test, use_global_stats, data_layout):
    attrs = {k: v for k, v in locals().items() if k[0].islower()}
    if data_layout == "NHWC":
        out = _normalized(np.moveaxis(X, -1, 1), Scale, Bias, Mean, Variance, attrs)
        return out | {"Y": np.moveaxis(out["Y"], 1, -1)}
    return _normalized(X, Scale, Bias, Mean, Variance, attrs)


def _with_momentum(X, Scale, Bias, Mean, Variance, MomentumTensor, epsilon):
    return _batch_norm(X, Scale, Bias, Mean, Variance, MomentumTensor.item(), epsilon, False, False, "NCHW")


def _abn(
    X,
    Scale,
    Bias,
    Mean,
    Variance,
    momentum,
    epsilon,
    is_test,
    use_global_stats,
    data_layout,
    activation,
    alpha,
):
    out = _batch_norm(
        X, Scale, Bias, Mean, Variance, momentum, epsilon, is_test, use_global_stats, data_layout
    )
    return out | {"Y": np.vectorize(_activate)(out["Y"], activation, alpha)}


def _case(type: str, x, expected, note: str = "", *, channels: int = 3, more=None, **attrs) -> Case:
    inputs = {"X": x, "Scale": _positive(channels), "Bias": _normal(channels)}
    inputs |= {"Mean": _normal(channels), "Variance": _positive(channels)}
    wrt = ["X", "Scale", "Bias"]
    return Case(type, inputs | (more or {}), expected, attrs, wrt=wrt, through=["Y"], note=note)


CASES = [
    _case("batch_norm", _normal(4, 3, 2, 5), _batch_norm),
    _case("batch_norm", _normal(6, 3), _batch_norm, "2d", epsilon=1e-3, momentum=0.6),
    _case("batch_norm", _normal(4, 3, 2, 2, 3), _batch_norm, "5d"),
    _case("batch_norm", _normal(4, 2, 5, 3), _batch_norm, "channels-last", data_layout="NHWC"),
    _case("batch_norm", _normal(4, 3, 2, 2), _batch_norm, "test", is_test=True),
    _case("batch_norm", _normal(4, 3, 2, 2), _batch_norm, "global", use_global_stats=True),
    _case(
        "batch_norm",
        _normal(4, 3, 2, 2),
        lambda X, Scale, Bias, Mean, Variance, momentum, epsilon: _batch_norm(
            X, Scale, Bias, Mean, Variance, momentum, epsilon, False, False, "NCHW"
        ),
        "trainable-statistics",
        is_test=True,
        trainable_statistics=True,
    ),
    _case(
        "batch_norm",
        _normal(4, 3, 2, 2),
        _with_momentum,
        "momentum-tensor",
        more={"MomentumTensor": np.array([0.3])},
    ),
    _case("inplace_abn", _normal(4, 3, 2, 5), _abn, activation="identity"),
    _case("inplace_abn", _normal(4, 3, 2, 5), _abn, "leaky", activation="leaky_relu", alpha=0.3),
    _case("inplace_abn", _normal(4, 3, 2, 5), _abn, "elu", activation="elu", alpha=0.7),
    _case(
        "inplace_abn",
        _normal(4, 2, 5, 3),
        _abn,
        "global",
        activation="elu",
        data_layout="NHWC",
        use_global_stats=True,
    ),
]


_rng = np.random.default_rng(12)
X = _rng.standard_normal((5, 6))
X[1, 0] = X[4, 3] = 0.0
SUMS = {
    "BatchSize": _rng.uniform(5, 9, 6),
    "BatchSum": _rng.standard_normal(6),
    "BatchSquareSum": _rng.uniform(5, 9, 6),
}
AFFINE = {"scale_w": _rng.standard_normal(6), "bias": _rng.standard_normal(6)}


def _plain(X, BatchSize, BatchSum, BatchSquareSum):
    means = BatchSum / BatchSize
    scales = (BatchSize / BatchSquareSum) ** 0.5
    return {"Y": (X - means) * scales, "Means": means, "Scales": scales}


def _affine(X, BatchSize, BatchSum, BatchSquareSum, scale_w, bias):
    out = _plain(X, BatchSize, BatchSum, BatchSquareSum)
    return out | {"Y": out["Y"] * scale_w + bias}


def _slots(X, BatchSize, BatchSum, BatchSquareSum, scale_w, bias):
    y = _affine(X, BatchSize, BatchSum, BatchSquareSum, scale_w, bias)["Y"]
    y[1, :3] = y[4, 3:] = 0
    return y


_SHIFTED = {"enable_scale_and_shift": True}

CASES += [
    Case("data_norm", {"X": X} | SUMS, _plain, wrt=["X"]),
    Case(
        "data_norm",
        {"X": X} | SUMS | AFFINE,
        _affine,
        _SHIFTED,
        wrt=["X", "scale_w", "bias"],
        through=["Y"],
        note="affine",
    ),
    Case(
        "data_norm",
        {"X": X} | SUMS | AFFINE,
        _slots,
        _SHIFTED | {"slot_dim": 3},
        wrt=["scale_w", "bias"],
        through=["Y"],
        note="slots",
    ),
]
