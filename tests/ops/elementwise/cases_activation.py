"""Cases of the activations of each element alone; inputs are away from their bends."""

import math

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(3)
X = _rng.uniform(0.1, 3, (4, 5)) * np.where(_rng.random((4, 5)) < 0.5, 1, -1)
_phi = np.vectorize(lambda x: (1 + math.erf(x / math.sqrt(2))) / 2, otypes=[float])
_ln1pexp = lambda X: np.logaddexp(X, 0)
IMAGES = _rng.standard_normal((2, 6, 3, 2))
SIGNED = IMAGES + np.sign(IMAGES) * 0.1  # away from 0

CASES = [
    Case("relu", {"X": X}, lambda X: (X + np.abs(X)) / 2),
    Case("relu", {"X": np.tile(X, (30, 20))}, lambda X: (X + np.abs(X)) / 2, note="large"),
    Case("relu6", {"X": X}, lambda X: np.where(X < 0, 0, np.where(X > 2, 2, X)), {"threshold": 2.0}),
    Case("leaky_relu", {"X": X}, lambda X: np.where(X > 0, X, 0.25 * X), {"alpha": 0.25}),
    Case("elu", {"X": X}, lambda X: np.where(X > 0, X, 1.5 * (np.exp(X) - 1)), {"alpha": 1.5}),
    Case(
        "selu",
        {"X": X},
        lambda X: 2 * np.where(X > 0, X, 1.5 * (np.exp(X) - 1)),
        {"alpha": 1.5, "scale": 2.0},
    ),
    Case("gelu", {"X": X}, lambda X: X * _phi(X)),
    Case(
        "gelu",
        {"X": X},
        lambda X: X / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (X + 0.044715 * X * X * X))),
        {"approximate": True},
        note="tanh",
    ),
    Case("sigmoid", {"X": X}, lambda X: np.exp(X) / (np.exp(X) + 1)),
    Case("logsigmoid", {"X": X}, lambda X: -_ln1pexp(-X)),
    Case("tanh", {"X": X}, lambda X: (np.exp(2 * X) - 1) / (np.exp(2 * X) + 1)),
    Case("tanh_shrink", {"X": X}, lambda X: X - np.sinh(X) / np.cosh(X)),
    Case(
        "softshrink",
        {"X": X},
        lambda X: np.where(X > 0.75, X - 0.75, np.where(X < -0.75, X + 0.75, 0)),
        {"lambda": 0.75},
    ),
    Case(
        "hard_shrink",
        {"X": X},
        lambda X: np.where((X > 0.75) | (X < -0.75), X, 0),
        {"threshold": 0.75},
    ),
    Case("softplus", {"X": X}, _ln1pexp),
    Case("softsign", {"X": X}, lambda X: np.where(X > 0, X / (1 + X), X / (1 - X))),
    Case("swish", {"X": X}, lambda X: X / (1 + np.exp(-1.5 * X)), {"beta": 1.5}),
    Case(
        "hard_sigmoid",
        {"X": X},
        lambda X: np.maximum(0, np.minimum(1, 0.5 * X + 0.25)),
        {"slope": 0.5, "offset": 0.25},
    ),
    Case(
        "hard_swish",
        {"X": X},
        lambda X: X * np.minimum(np.maximum(X + 1, 0), 2) / 2,
        {"offset": 1.0, "threshold": 2.0, "scale": 2.0},
    ),
    Case(
        "brelu",
        {"X": X},
        lambda X: np.where(X < -1, -1, np.where(X > 2, 2, X)),
        {"t_min": -1.0, "t_max": 2.0},
    ),
    Case(
        "soft_relu",
        {"X": X},
        lambda X: _ln1pexp(np.minimum(np.maximum(X, -2), 2)),
        {"threshold": 2.0},
        wrt=(),  # Paddle's gradient compares Out, not X, with the threshold: see test_activation.py
    ),
    Case("soft_relu", {"X": X}, _ln1pexp, note="inside"),
    Case(
        "stanh",
        {"X": X},
        lambda X: 2 - 4 / (np.exp(X) + 1),
        {"scale_a": 0.5, "scale_b": 2.0},
    ),
    Case("thresholded_relu", {"X": X}, lambda X: np.where(X > 1, X, 0)),
    Case("mish", {"X": X}, lambda X: X * np.tanh(np.log(1 + np.exp(X)))),
    *(
        Case(
            "prelu",
            {"X": SIGNED, "Alpha": _rng.standard_normal(shape)},
            lambda X, Alpha: np.where(X > 0, X, np.broadcast_to(Alpha, X.shape) * X),
            {"mode": mode},
            note=mode,
        )
        for mode, shape in (("all", (1,)), ("channel", (1, 6, 1, 1)), ("element", (1, 6, 3, 2)))
    ),
]
