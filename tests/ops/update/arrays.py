"""Arrays that the cases of optimizer updates share."""

import numpy as np

from paddlelike.core import SelectedRows

_rng = np.random.default_rng(11)
P, G, V, Z = (_rng.standard_normal((5, 3)) for _ in range(4))
M, S = _rng.uniform(0.5, 2, (2, 5, 3))
LR = np.array([0.1])
one = lambda value: np.array([value])
# Rows 1 and 3, the second one twice.
SPARSE = SelectedRows([3, 1, 3], 5, _rng.standard_normal((3, 3)))
DENSE = np.zeros((5, 3))
for _row, _value in zip(SPARSE.rows(), SPARSE.array, strict=True):
    DENSE[_row] += _value
HELD = np.array([[False], [True], [False], [True], [False]])

SPARSE_GRAD = {"Grad": SPARSE}
