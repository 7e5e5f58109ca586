"""Cases of adam, adamax and lamb: one step from a given state."""

import numpy as np

from tests.ops.harness.contract import Case
from tests.ops.update.arrays import DENSE, HELD, LR, SPARSE_GRAD, G, M, P, V, one


def _adam(g=G, *, betas=None, ahead=False, moving=True):
    def expected(Param, Moment1, Moment2, Beta1Pow, Beta2Pow, beta1, beta2, epsilon):
        b1, b2 = betas or (beta1, beta2)
        m1 = np.where(moving, b1 * Moment1 + (1 - b1) * g, Moment1)
        m2 = np.where(moving, b2 * Moment2 + (1 - b2) * g**2, Moment2)
        powers = Beta1Pow * b1, Beta2Pow * b2
        one, two = powers if ahead else (Beta1Pow, Beta2Pow)
        step = 0.1 * (1 - two) ** 0.5 / (1 - one) * m1 / (m2**0.5 + epsilon)
        moments = {"Moment1Out": m1, "Moment2Out": m2}
        powers = {"Beta1PowOut": powers[0], "Beta2PowOut": powers[1]}
        return {"ParamOut": np.where(moving, Param - step, Param), **moments, **powers}

    return expected


def _adamax(Param, Grad, Moment, InfNorm, Beta1Pow, beta1, beta2, epsilon):
    m = beta1 * Moment + (1 - beta1) * Grad
    u = np.where(np.abs(Grad) > beta2 * InfNorm + epsilon, np.abs(Grad), beta2 * InfNorm + epsilon)
    p = Param - 0.1 / (1 - Beta1Pow) * m / u
    return {"ParamOut": p, "MomentOut": m, "InfNormOut": u}


def _lamb(g=G):
    def expected(Param, Moment1, Moment2, weight_decay, beta1, beta2, epsilon):
        m1 = beta1 * Moment1 + (1 - beta1) * g
        m2 = beta2 * Moment2 + (1 - beta2) * g**2
        r = m1 / (m2**0.5 + epsilon) + weight_decay * Param
        trust = np.linalg.norm(Param) / np.linalg.norm(r) if Param.any() else 1.0
        return {"ParamOut": Param - 0.1 * trust * r, "Moment1Out": m1, "Moment2Out": m2}

    return expected


_ADAM = {"Param": P, "Grad": G, "LearningRate": LR, "Moment1": V, "Moment2": M}
_ADAM |= {"Beta1Pow": one(0.81), "Beta2Pow": one(0.998)}
_ADAMAX = {"Param": P, "Grad": G, "LearningRate": LR, "Moment": V, "InfNorm": M}
_ADAMAX |= {"Beta1Pow": one(0.81)}
_HALF_LIFE = {"Beta1Tensor": one(0.5), "Beta2Tensor": one(0.75)}

CASES = [
    Case("adam", _ADAM, _adam()),
    Case("adam", _ADAM | _HALF_LIFE, _adam(betas=(0.5, 0.75)), note="beta-tensors"),
    Case("adam", _ADAM | SPARSE_GRAD, _adam(DENSE, ahead=True), note="sparse"),
    Case(
        "adam",
        _ADAM | SPARSE_GRAD,
        _adam(DENSE, ahead=True, moving=HELD),
        {"lazy_mode": True},
        note="lazy",
    ),
    Case("adamax", _ADAMAX, _adamax),
    Case("lamb", _ADAM, _lamb(), {"weight_decay": 0.01}),
    Case("lamb", _ADAM | {"Param": 0 * P}, _lamb(), {"weight_decay": 0.01}, note="zero-parameter"),
    Case("lamb", _ADAM | SPARSE_GRAD, _lamb(DENSE), {"weight_decay": 0.01}, note="sparse"),
]  # fmt: skip
