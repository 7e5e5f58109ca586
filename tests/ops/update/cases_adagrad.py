"""Cases of adagrad, decayed_adagrad and adadelta: one step from a given state."""

from tests.ops.harness.contract import Case
from tests.ops.update.arrays import DENSE, LR, SPARSE_GRAD, G, M, P, S


def _adagrad(g=G, rows=slice(None)):
    def expected(Param, Moment, epsilon):
        p, m = Param.copy(), Moment.copy()
        m[rows] += g[rows] ** 2
        p[rows] -= 0.1 * g[rows] / (m[rows] ** 0.5 + epsilon)
        return {"ParamOut": p, "MomentOut": m}

    return expected


def _decayed_adagrad(Param, Grad, Moment, decay, epsilon):
    m = decay * Moment + (1 - decay) * Grad**2
    return {"ParamOut": Param - 0.1 * Grad / (m**0.5 + epsilon), "MomentOut": m}


def _adadelta(Param, Grad, AvgSquaredGrad, AvgSquaredUpdate, rho, epsilon):
    a = rho * AvgSquaredGrad + (1 - rho) * Grad**2
    update = -(((AvgSquaredUpdate + epsilon) / (a + epsilon)) ** 0.5) * Grad
    b = rho * AvgSquaredUpdate + (1 - rho) * update**2
    p = Param - ((b + epsilon) / (a + epsilon)) ** 0.5 * Grad
    return {"ParamOut": p, "AvgSquaredGradOut": a, "AvgSquaredUpdateOut": b}


_ADAGRAD = {"Param": P, "Grad": G, "Moment": M, "LearningRate": LR}

CASES = [
    Case("adagrad", _ADAGRAD, _adagrad()),
    Case("adagrad", _ADAGRAD | SPARSE_GRAD, _adagrad(DENSE, [1, 3]), note="sparse"),
    Case("decayed_adagrad", _ADAGRAD, _decayed_adagrad),
    Case(
        "adadelta", {"Param": P, "Grad": G, "AvgSquaredGrad": M, "AvgSquaredUpdate": S}, _adadelta
    ),
]  # fmt: skip
