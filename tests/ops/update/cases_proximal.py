"""Cases of proximal_gd and proximal_adagrad: one step from a given state."""

import numpy as np

from tests.ops.harness.contract import Case
from tests.ops.update.arrays import LR, G, M, P


def _proximal(p, rate, l1, l2):
    """The minimum of |p' - p|^2 / 2 + rate (l1 |p'| + l2 p'^2 / 2)."""
    return np.where(p > 0, (p - rate * l1).clip(0), (p + rate * l1).clip(None, 0)) / (1 + rate * l2)


def _proximal_gd(Param, Grad, l1, l2):
    return _proximal(Param - 0.1 * Grad, 0.1, l1, l2)


def _proximal_adagrad(Param, Moment, Grad, l1, l2):
    m = Moment + Grad**2
    return {"ParamOut": _proximal(Param - 0.1 * Grad / m**0.5, 0.1, l1, l2), "MomentOut": m}


_ADAGRAD = {"Param": P, "Grad": G, "Moment": M, "LearningRate": LR}

CASES = [
    Case("proximal_gd", {"Param": P, "Grad": G, "LearningRate": LR}, _proximal_gd, {"l2": 0.5}),
    Case(
        "proximal_gd",
        {"Param": P, "Grad": G, "LearningRate": LR},
        _proximal_gd,
        {"l1": 3.0, "l2": 0.5},
        note="l1",
    ),
    Case("proximal_adagrad", _ADAGRAD, _proximal_adagrad, {"l1": 3.0, "l2": 0.5}),
]  # fmt: skip
