"""Cases of the losses that compare two predictions, or a prediction and a target."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(14)
X, Y, INSIDE, OUTSIDE = _rng.standard_normal((4, 4, 3))
LEFT, RIGHT = _rng.standard_normal((2, 4, 1))
LABEL = np.array([[0.0], [1.0], [0.3], [0.8]])
SIGN = np.array([[1.0], [-1.0], [1.0], [-1.0]])


def _huber(X, Y, delta):
    loss = [r * r / 2 if abs(r) <= delta else delta * abs(r) - delta * delta / 2 for r in (Y - X).ravel()]
    return {"Residual": Y - X, "Out": np.reshape(loss, X.shape)}


def _smooth_l1(X, Y, sigma, InsideWeight, OutsideWeight):
    inside, outside = (np.ones(X.shape) if w is None else w for w in (InsideWeight, OutsideWeight))
    diff = inside * (X - Y)
    each = [(sigma * d) ** 2 / 2 if abs(d) < 1 / sigma**2 else abs(d) - 0.5 / sigma**2 for d in diff.ravel()]
    return {"Diff": diff, "Out": (outside * np.reshape(each, X.shape)).sum(1)[:, None]}


def _margin_rank(X1, X2, Label, margin):
    out = margin - Label * (X1 - X2)
    return {"Activated": out > 0, "Out": out * (out > 0)}


CASES = [
    Case("huber_loss", {"X": X[:, :1], "Y": Y[:, :1]}, _huber, {"delta": 0.75}, through=["Out"]),
    Case(
        "smooth_l1_loss",
        {"X": X, "Y": Y},
        _smooth_l1,
        {"sigma": 1.25},
        wrt=["X", "Y"],
        through=["Out"],
    ),
    Case(
        "smooth_l1_loss",
        {"X": X, "Y": Y, "InsideWeight": INSIDE, "OutsideWeight": OUTSIDE},
        _smooth_l1,
        wrt=["X", "Y"],
        through=["Out"],
        note="weights",
    ),
    Case(
        "rank_loss",
        {"Label": LABEL, "Left": LEFT, "Right": RIGHT},
        lambda Label, Left, Right: np.log(1 + np.exp(Left - Right)) - Label * (Left - Right),
        wrt=["Left", "Right"],
    ),
    Case(
        "margin_rank_loss",
        {"Label": SIGN, "X1": LEFT, "X2": RIGHT},
        _margin_rank,
        {"margin": 0.125},
        wrt=["X1", "X2"],
        through=["Out"],
    ),
]
