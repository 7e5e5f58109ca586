"""Cases of ftrl: one step from a given state."""

import numpy as np

from tests.ops.harness.contract import Case
from tests.ops.update.arrays import DENSE, LR, SPARSE_GRAD, G, P, S, Z


def _ftrl(g=G, rows=slice(None)):
    def expected(Param, SquaredAccumulator, LinearAccumulator, l1, l2, lr_power):
        p, n, z = Param.copy(), SquaredAccumulator.copy(), LinearAccumulator.copy()
        n[rows] += g[rows] ** 2
        sigma = (n**-lr_power - SquaredAccumulator**-lr_power) / 0.1
        z[rows] += (g - sigma * Param)[rows]
        shrunk = (np.where(z > 0, l1, -l1) - z) / (n**-lr_power / 0.1 + 2 * l2)
        p[rows] = np.where(np.abs(z) > l1, shrunk, 0)[rows]
        return {"ParamOut": p, "SquaredAccumOut": n, "LinearAccumOut": z}

    return expected


_FTRL = {"Param": P, "SquaredAccumulator": S, "LinearAccumulator": Z, "Grad": G, "LearningRate": LR}

CASES = [
    # The operator adds 1e-10 to l1 and l2.
    Case("ftrl", _FTRL, _ftrl(), {"l1": 1.5, "l2": 0.2}, rtol=1e-8),
    Case("ftrl", _FTRL, _ftrl(), {"l1": 0.1, "lr_power": -0.7}, rtol=1e-8, note="power"),
    Case("ftrl", _FTRL | SPARSE_GRAD, _ftrl(DENSE, [1, 3]), {"l1": 0.1}, rtol=1e-8, note="sparse"),
]  # fmt: skip
