"""Cases of affine_channel, one channel at a time."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(14)
_normal = lambda *shape: _rng.standard_normal(shape)
X = _normal(2, 8, 4, 6)
LAST = np.ascontiguousarray(np.moveaxis(X, 1, -1))


def _affine(X, Scale, Bias, data_layout):
    return np.einsum("nchw,c->nchw" if data_layout == "NCHW" else "nhwc,c->nhwc", X, Scale) + (
        Bias[:, None, None] if data_layout == "NCHW" else Bias
    )


CASES = [
    Case("affine_channel", {"X": LAST, "Scale": _normal(8), "Bias": _normal(8)}, _affine),
    Case(
        "affine_channel",
        {"X": X, "Scale": _normal(8), "Bias": _normal(8)},
        _affine,
        {"data_layout": "NCHW"},
        note="channels-first",
    ),
]
