"""Cases of the operators that know the place of a row in its sequence, row by row."""

import itertools

import numpy as np

from paddlelike.core.tensor import LoDTensor
from tests.ops.harness.contract import Case

_rng = np.random.default_rng(17)
OFFSETS = [0, 2, 6, 7]
ROWS = LoDTensor(_rng.standard_normal((7, 4)), [OFFSETS])
BATCH = _rng.standard_normal((2, 5, 4))
FILTER = _rng.standard_normal((3, 4))


def _sequences(x):
    if x.ndim == 3:
        return x
    return [x[a:b] for a, b in itertools.pairwise(OFFSETS)]


def _joined(x, parts):
    return np.stack(parts) if x.ndim == 3 else np.concatenate(parts)


def _encoded(X, alpha, beta):
    half = X.shape[-1] // 2
    out = [alpha * part for part in _sequences(X)]
    for part in out:
        for t, k in np.ndindex(len(part), half):
            angle = t / 10000 ** (k / (half - 1)) if half > 1 else t / 10000
            part[t, [k, half + k]] += beta * np.sin(angle), beta * np.cos(angle)
    return _joined(X, out)


def _row_conv(X, Filter):
    out = []
    for part in _sequences(X):
        padded = np.concatenate([part, np.zeros((len(Filter), part.shape[1]))])
        out.append(np.array([(padded[t : t + len(Filter)] * Filter).sum(0) for t in range(len(part))]))
    return _joined(X, out)


_SCALED = {"alpha": 0.5, "beta": 2.0}

CASES = [
    Case("add_position_encoding", {"X": BATCH}, _encoded, _SCALED),
    Case("add_position_encoding", {"X": ROWS}, _encoded, _SCALED, note="lod"),
    Case("add_position_encoding", {"X": BATCH[..., :2]}, _encoded, _SCALED, note="two-columns"),
    Case("row_conv", {"X": ROWS, "Filter": FILTER}, _row_conv),
    Case("row_conv", {"X": BATCH, "Filter": FILTER}, _row_conv, note="batch"),
]
