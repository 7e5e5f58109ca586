"""Cases of the operators that put an array into a larger one."""

import numpy as np

from tests.ops.harness.contract import Case

_rng = np.random.default_rng(11)
X = _rng.standard_normal((2, 3))
IMAGES = _rng.standard_normal((2, 2, 3, 4))
_WIDTHS = [(0, 0), (0, 0), (2, 1), (0, 3)]


def _by_index(mode):
    """Borders by the index of what they copy: 2 rows above, 1 below, 3 columns on the right."""
    rows, columns = {
        "reflect": ([2, 1, 0, 1, 2, 1], [0, 1, 2, 3, 2, 1, 0]),
        "edge": ([0, 0, 0, 1, 2, 2], [0, 1, 2, 3, 3, 3, 3]),
    }[mode]
    return lambda X: X[:, :, rows][..., columns]


CASES = [
    Case(
        "pad",
        {"X": X},
        lambda X: np.pad(X, [(0, 1), (2, 3)], constant_values=1.5),
        {"paddings": [0, 1, 2, 3], "pad_value": 1.5},
    ),
    Case(
        "pad_constant_like",
        {"X": IMAGES[0], "Y": IMAGES[1, :, :2, :3]},
        lambda Y: np.pad(Y, [(0, 0), (0, 1), (0, 1)], constant_values=-1),
        {"pad_value": -1.0},
        wrt=["Y"],
    ),
    Case(
        "pad2d",
        {"X": IMAGES},
        lambda X: np.pad(X, _WIDTHS, constant_values=0.5),
        {"paddings": [2, 1, 0, 3], "pad_value": 0.5},
    ),
    Case(
        "pad2d",
        {"X": IMAGES, "Paddings": np.array([2, 1, 0, 3], np.int32)},
        lambda X: np.pad(X, _WIDTHS),
        {"paddings": [0, 0, 0, 0]},
        note="tensor",
    ),
    *(
        Case("pad2d", {"X": IMAGES}, _by_index(mode), {"paddings": [2, 1, 0, 3], "mode": mode}, note=mode)
        for mode in ("reflect", "edge")
    ),
    Case(
        "pad2d",
        {"X": IMAGES},
        lambda X: X[:, [1, 0, 1]][:, :, [0, 1, 2, 1, 0]],
        {"paddings": [1, 0, 0, 2], "mode": "reflect", "data_format": "NHWC"},
        note="nhwc",
    ),
]
