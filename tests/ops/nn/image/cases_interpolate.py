"""Images at other positions, and their channels."""

from __future__ import annotations

import itertools

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(15)
X = _rng.standard_normal((2, 2, 5, 4))
TEN = _rng.standard_normal((1, 1, 10, 10))
LAST = np.ascontiguousarray(np.moveaxis(X, 1, -1))
X3 = _rng.standard_normal((1, 2, 3, 4, 3))
_int = lambda *n: np.array(n, np.int32)


def _weights(at, size, method):
    """{input element: weight} of an output element at ``at``."""
    if method == "nearest":
        return {int(at): 1.0}
    if method != "bicubic":
        at = max(at, 0)
        low = int(at)
        out = {low: 1 - (at - low)}
        high = min(low + 1, size - 1)
        out[high] = out.get(high, 0) + at - low
        return out
    out, a = {}, -0.75
    for i in range(int(np.floor(at)) - 1, int(np.floor(at)) + 3):
        d = abs(at - i)
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
        inside = min(max(i, 0), size - 1)
        out[inside] = out.get(inside, 0) + (near if d <= 1 else far)
    return out


def _resized(x, size, method, align_corners, align_mode):
    def place(i, n, m):
        if align_corners:
            return i * ((n - 1) / (m - 1) if m > 1 else 0) + (0.5 if method == "nearest" else 0)
        if method == "bicubic" or (align_mode == 0 and method != "nearest"):
            return (i + 0.5) * n / m - 0.5
        return i * n / m

    out = np.zeros((*x.shape[:2], *size))
    for cell in itertools.product(*map(range, size)):
        ways = [
            _weights(place(i, n, m), n, method).items()
            for i, n, m in zip(cell, x.shape[2:], size, strict=True)
        ]
        for taps in itertools.product(*ways):
            at, weights = zip(*taps, strict=True)
            out[(..., *cell)] += np.prod(weights) * x[(..., *at)]
    return out


def _case(type, x, size, note, sizes=None, **attrs) -> Case:
    method = type.removesuffix("_interp")

    def expected(X, align_corners, align_mode, data_layout):
        how = method, align_corners, align_mode
        if data_layout == "NHWC":
            return np.moveaxis(_resized(np.moveaxis(X, -1, 1), size, *how), 1, -1)
        return _resized(X, size, *how)

    attrs |= {"interp_method": method}
    if sizes is None:
        attrs |= dict(zip(("out_w", "out_h", "out_d"), size[::-1], strict=False))
    # The weights are float32 numbers, as in Paddle.
    return Case(type, {"X": x} | (sizes or {}), expected, attrs, rtol=1e-5, atol=1e-6, note=note)


_FREE = {"align_corners": False}

CASES = [
    _case("nearest_interp", X, (3, 7), "corners"),
    _case("nearest_interp", X, (8, 3), "free", **_FREE),
    _case("bilinear_interp", X, (7, 3), "corners"),
    _case("bilinear_interp", X, (1, 6), "one-row"),
    _case("bilinear_interp", X, (3, 7), "mode-0", align_mode=0, **_FREE),
    _case("bilinear_interp", X, (8, 6), "mode-1", **_FREE),
    _case("bilinear_interp", X, (10, 8), "scale", {}, scale=2.0, **_FREE),
    # real 1.8.5 makes 7 of 10: sizes are multiplied in float32
    _case("nearest_interp", TEN, (7, 7), "float32-scale", {}, scale=float(np.float32(0.7)), **_FREE),
    _case("bilinear_interp", X, (7, 3), "size-tensor", {"OutSize": _int(7, 3)}, out_h=-1, out_w=-1),
    _case("bilinear_interp", X, (7, 3), "size-tensors", {"SizeTensor": [_int(7), _int(3)]}, out_h=7, out_w=3),
    _case("nearest_interp", X, (5, 4), "scale-tensor-of-four", {"Scale": np.array([1.0, 1.0, 2.0, 2.0])}),
    _case("bilinear_interp", X, (10, 8), "scale-tensor", {"Scale": np.array([2.0])}, out_h=3, out_w=3),
    _case("bilinear_interp", LAST, (7, 3), "channels-last", data_layout="NHWC"),
    _case("bicubic_interp", X, (7, 6), "corners"),
    _case("bicubic_interp", X, (3, 7), "free", **_FREE),
    _case("trilinear_interp", X3, (5, 3, 4), "corners"),
    _case("trilinear_interp", X3, (2, 6, 4), "mode-0", align_mode=0, **_FREE),
]  # fmt: skip


_rng = np.random.default_rng(16)
THETA = _rng.standard_normal((2, 2, 3))
X = _rng.standard_normal((2, 3, 4, 5))
GRID = _rng.uniform(-1.4, 1.4, (2, 4, 5, 2))


def _grid(theta, height, width):
    out = np.empty((len(theta), height, width, 2))
    for n, h, w in np.ndindex(*out.shape[:3]):
        out[n, h, w] = theta[n] @ [2 * w / (width - 1) - 1, 2 * h / (height - 1) - 1, 1]
    return out


def _sample(X, Grid):
    height, width = X.shape[2:]
    out = np.zeros(X.shape)
    for n, h, w in np.ndindex(len(X), height, width):
        x, y = (Grid[n, h, w] + 1) / 2 * (width - 1, height - 1)
        for i, j in np.ndindex(height, width):
            out[n, :, h, w] += max(0, 1 - abs(y - i)) * max(0, 1 - abs(x - j)) * X[n, :, i, j]
    return out


CASES += [
    Case("affine_grid", {"Theta": THETA}, lambda Theta: _grid(Theta, 3, 4), {"output_shape": [2, 1, 3, 4]}),
    Case(
        "affine_grid",
        {"Theta": THETA, "OutputShape": np.array([2, 1, 2, 5], np.int32)},
        lambda Theta: _grid(Theta, 2, 5),
        note="shape-tensor",
    ),
    Case("grid_sampler", {"X": X, "Grid": GRID}, _sample),
]


_rng = np.random.default_rng(14)
_normal = lambda *shape: _rng.standard_normal(shape)
X = _normal(2, 8, 4, 6)
LAST = np.ascontiguousarray(np.moveaxis(X, 1, -1))


def _affine(X, Scale, Bias, data_layout):
    return np.einsum("nchw,c->nchw" if data_layout == "NCHW" else "nhwc,c->nhwc", X, Scale) + (
        Bias[:, None, None] if data_layout == "NCHW" else Bias
    )


CASES += [
    Case("affine_channel", {"X": LAST, "Scale": _normal(8), "Bias": _normal(8)}, _affine),
    Case(
        "affine_channel",
        {"X": X, "Scale": _normal(8), "Bias": _normal(8)},
        _affine,
        {"data_layout": "NCHW"},
        note="channels-first",
    ),
]


_rng = np.random.default_rng(14)
X = _normal(2, 8, 4, 6)


def _pixel_shuffle(X, upscale_factor):
    n, c, h, w = X.shape
    r = upscale_factor
    out = np.empty((n, c // r**2, h * r, w * r))
    for i, j, k in np.ndindex(*out.shape[1:]):
        out[:, i, j, k] = X[:, i * r * r + j % r * r + k % r, j // r, k // r]
    return out


def _space_to_depth(X, blocksize):
    n, c, h, w = X.shape
    b, few = blocksize, c // blocksize**2
    spread = np.empty((n, few, h * b, w * b))
    for k, j, i in np.ndindex(c, h, w):
        spread[:, k % few, j * b + k // few // b, i * b + k // few % b] = X[:, k, j, i]
    return spread.reshape(n, c * b * b, h // b, w // b)


def _shuffle(X, group):
    return X[:, [g * (8 // group) + k for k in range(8 // group) for g in range(group)]]


def _temporal(X, seg_num, shift_ratio):
    out, one = X.copy(), int(X.shape[1] * shift_ratio)
    for n in range(len(X)):
        first, last = n % seg_num == 0, n % seg_num == seg_num - 1
        out[n, :one] = 0 if first else X[n - 1, :one]
        out[n, one : 2 * one] = 0 if last else X[n + 1, one : 2 * one]
    return out


CASES += [
    Case("pixel_shuffle", {"X": X}, _pixel_shuffle, {"upscale_factor": 2}),
    Case("space_to_depth", {"X": X}, _space_to_depth),
    Case("shuffle_channel", {"X": X}, _shuffle, {"group": 2}),
    Case("temporal_shift", {"X": _normal(6, 5, 2, 2)}, _temporal, {"seg_num": 3}),
    Case("temporal_shift", {"X": _normal(4, 8, 1, 2)}, _temporal, {"seg_num": 2}, note="pairs"),
]
