"""Cases of momentum and lars_momentum: one step from a given state."""

import numpy as np

from tests.ops.harness.contract import Case
from tests.ops.update.arrays import DENSE, LR, SPARSE_GRAD, G, P, V


def _momentum(g=G):
    def expected(Param, Velocity, mu, use_nesterov):
        v = mu * Velocity + g
        step = g + mu * v if use_nesterov else v
        return {"ParamOut": Param - 0.1 * step, "VelocityOut": v}

    return expected


def _lars(Param, Grad, Velocity, mu, lars_coeff, lars_weight_decay):
    size = lambda x: np.sum(x**2) ** 0.5
    rate = 0.1
    if size(Param) and size(Grad):
        rate *= lars_coeff * size(Param) / (size(Grad) + lars_weight_decay * size(Param))
    v = mu * Velocity + rate * Grad + rate * lars_weight_decay * Param
    return {"ParamOut": Param - v, "VelocityOut": v}


_MOMENTUM = {"Param": P, "Grad": G, "Velocity": V, "LearningRate": LR}
_NESTEROV = {"mu": 0.9, "use_nesterov": True}

CASES = [
    Case("momentum", _MOMENTUM, _momentum(), {"mu": 0.9}),
    Case("momentum", _MOMENTUM, _momentum(), _NESTEROV, note="nesterov"),
    Case("momentum", _MOMENTUM | SPARSE_GRAD, _momentum(DENSE), _NESTEROV, note="sparse"),
    Case("lars_momentum", _MOMENTUM, _lars, {"mu": 0.9}),
    Case("lars_momentum", _MOMENTUM | {"Param": 0 * P}, _lars, {"mu": 0.9}, note="zero-parameter"),
]  # fmt: skip
