"""Cases of sgd: one step, dense and sparse."""

from tests.ops.harness.contract import Case
from tests.ops.update.arrays import DENSE, LR, SPARSE, G, P


def _sgd(g=G):
    return lambda Param: Param - 0.1 * g


CASES = [
    Case("sgd", {"Param": P, "LearningRate": LR, "Grad": G}, _sgd()),
    Case("sgd", {"Param": P, "LearningRate": LR, "Grad": SPARSE}, _sgd(DENSE), note="sparse"),
]  # fmt: skip
