"""Cases of scale, minus, clip, clip_by_norm and increment."""

import math

import numpy as np

from paddlelike.core import SelectedRows
from tests.ops.harness.contract import Case

_rng = np.random.default_rng(12)
X = _rng.standard_normal((3, 4))
ROWS = SelectedRows([4, 1, 4], 6, X)
MERGED = np.stack([X[1], X[0] + X[2]])


CASES = [
    Case("scale", {"X": X}, lambda X: X + X, {"scale": 2.0}),
    Case("scale", {"X": X}, lambda X: X, note="by-1"),
    Case("scale", {"X": X}, lambda X: 2 * X + 1.5, {"scale": 2.0, "bias": 1.5}, note="bias"),
    Case(
        "scale",
        {"X": X},
        lambda X: 2 * X + 3,
        {"scale": 2.0, "bias": 1.5, "bias_after_scale": False},
        note="bias-before",
    ),
    Case(
        "scale",
        {"X": X, "ScaleTensor": np.array([-3.0])},
        lambda X: 1 - 3 * X,
        {"scale": 2.0, "bias": 1.0},
        wrt=["X"],
        note="tensor",
    ),
    Case(
        "scale",
        {"X": np.array([-1, 2, 4])},
        lambda: np.array([-1, 5, 9]),
        {"scale": 2.5, "bias": 1.5},
        wrt=(),
        note="integers",
    ),
    Case(
        "scale",
        {"X": ROWS},
        lambda: SelectedRows([4, 1, 4], 6, X * 2),
        {"scale": 2.0},
        wrt=(),
        note="rows",
    ),
    Case("minus", {"X": X, "Y": X * X}, lambda X, Y: X + -1 * Y),
    Case("clip", {"X": X}, lambda X: np.minimum(np.maximum(X, -0.5), 0.75), {"min": -0.5, "max": 0.75}),
    Case(
        "clip",
        {"X": X, "Min": np.array([-0.25]), "Max": np.array([0.25])},
        lambda X: np.minimum(np.maximum(X, -0.25), 0.25),
        {"min": -0.5, "max": 0.75},
        wrt=["X"],
        note="tensors",
    ),
    Case(
        "clip",
        {"X": ROWS},
        lambda: SelectedRows([1, 4], 6, np.minimum(np.maximum(MERGED, -0.5), 0.5)),
        {"min": -0.5, "max": 0.5},
        wrt=(),
        note="rows",
    ),
    Case("clip_by_norm", {"X": X}, lambda X: X / math.hypot(*X.flat), {"max_norm": 1.0}),
    Case("clip_by_norm", {"X": X}, lambda X: X, {"max_norm": 100.0}, note="short"),
    Case("clip_by_norm", {"X": X * 0}, lambda X: X, {"max_norm": 1.0}, note="zeros"),
    Case(
        "clip_by_norm",
        {"X": ROWS},
        lambda: SelectedRows([1, 4], 6, MERGED / math.hypot(*MERGED.flat)),
        {"max_norm": 1.0},
        note="rows",
    ),
    Case("increment", {"X": np.array([2.0], np.float32)}, lambda X: X + 2.5, {"step": 2.5}, wrt=()),
    Case(
        "increment",
        {"X": np.array([-7])},
        lambda: np.array([-5]),
        {"step": 2.5},
        wrt=(),
        note="whole",
    ),
]
