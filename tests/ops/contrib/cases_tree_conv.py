"""Cases of tree_conv, node by node."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(59)
NODES = _rng.standard_normal((2, 5, 3))
FILTER = _rng.standard_normal((3, 3, 2, 2))
EDGES = np.array([[[1, 2], [2, 3], [0, 0], [0, 0]], [[1, 2], [1, 3], [3, 4], [3, 5]]], np.int32)
#: (root, node) -> (place among the siblings from 0 to 1, depth), for two steps down at most.
PLACES: list[dict[tuple[int, int], tuple[float, int]]] = [
    {(1, 2): (0.5, 1), (2, 3): (0.5, 1), (1, 3): (0.5, 2)},
    {
        (1, 2): (0.0, 1),
        (1, 3): (1.0, 1),
        (3, 4): (0.0, 1),
        (3, 5): (1.0, 1),
        (1, 4): (0.0, 2),
        (1, 5): (1.0, 2),
    },
]


def _convolve(NodesVector, Filter, max_depth):
    out = np.zeros((2, 5, 2, 2))
    for tree, (places, count) in enumerate(zip(PLACES, (3, 5), strict=True)):
        pairs = {(n, n): (0.5, 0) for n in range(1, count + 1)} | places
        for (root, node), (place, depth) in pairs.items():
            if depth >= max_depth:
                continue
            low = depth / max_depth
            weights = (low * place, low * (1 - low * place), 1 - low)
            for part, weight in enumerate(weights):
                vector = NodesVector[tree, node - 1]
                out[tree, root - 1] += weight * np.einsum("d,dof->of", vector, Filter[:, part])
    return out


CASES = [
    Case(
        "tree_conv", {"NodesVector": NODES, "EdgeSet": EDGES, "Filter": FILTER}, _convolve,
        {"max_depth": depth}, note=str(depth),
    )
    for depth in (2, 3)
]  # fmt: skip
