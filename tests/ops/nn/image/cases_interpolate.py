"""Cases of image sizes, one output element at a time."""

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
