"""Cases of rmsprop: one step from a given state."""

from tests.ops.harness.contract import Case
from tests.ops.update.arrays import DENSE, LR, SPARSE_GRAD, G, P, S, V, Z


def _rmsprop(g=G):
    def expected(Param, MeanSquare, MeanGrad, Moment, decay, epsilon, momentum, centered):
        s = decay * MeanSquare + (1 - decay) * g**2
        a = decay * MeanGrad + (1 - decay) * g if centered else MeanGrad
        v = momentum * Moment + 0.1 * g / (s - (a**2 if centered else 0) + epsilon) ** 0.5
        return {"ParamOut": Param - v, "MomentOut": v, "MeanSquareOut": s, "MeanGradOut": a}

    return expected


_RMSPROP = {"Param": P, "Grad": G, "MeanSquare": S + 3, "MeanGrad": Z / 9, "Moment": V}
_RMSPROP |= {"LearningRate": LR}
_RMS = {"momentum": 0.9, "decay": 0.95, "epsilon": 1e-6}

CASES = [
    Case("rmsprop", _RMSPROP, _rmsprop(), _RMS),
    Case("rmsprop", _RMSPROP, _rmsprop(), _RMS | {"centered": True}, note="centered"),
    Case("rmsprop", _RMSPROP | SPARSE_GRAD, _rmsprop(DENSE), _RMS | {"centered": True}, note="sparse"),
]  # fmt: skip
