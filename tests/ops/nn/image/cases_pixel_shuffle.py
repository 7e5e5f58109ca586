"""Cases of the operators that move channels, one place at a time."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(14)
_normal = lambda *shape: _rng.standard_normal(shape)
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


CASES = [
    Case("pixel_shuffle", {"X": X}, _pixel_shuffle, {"upscale_factor": 2}),
    Case("space_to_depth", {"X": X}, _space_to_depth),
    Case("shuffle_channel", {"X": X}, _shuffle, {"group": 2}),
    Case("temporal_shift", {"X": _normal(6, 5, 2, 2)}, _temporal, {"seg_num": 3}),
    Case("temporal_shift", {"X": _normal(4, 8, 1, 2)}, _temporal, {"seg_num": 2}, note="pairs"),
]
