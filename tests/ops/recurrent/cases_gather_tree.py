"""The case of gather_tree: the example of Paddle's documentation, checked by walking back by hand."""

from typing import Any

import numpy as np

from tests.ops.harness.contract import Case

IDS = np.array([[[2, 2], [6, 1]], [[3, 9], [6, 1]], [[0, 1], [9, 0]]])
PARENTS = np.array([[[0, 0], [1, 1]], [[1, 0], [1, 0]], [[0, 0], [0, 1]]])


def _walk(Ids: Any, Parents: Any) -> Any:
    out = np.zeros_like(Ids)
    for n in range(2):
        for end in range(2):
            beam = end
            for t in (2, 1, 0):
                out[t, n, end] = Ids[t, n, beam]
                beam = Parents[t, n, beam]
    return out


CASES = [Case("gather_tree", {"Ids": IDS, "Parents": PARENTS}, _walk)]
