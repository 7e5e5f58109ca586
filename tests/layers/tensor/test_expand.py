"""Rolling against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.small_networks import RNG, run

layers = fluid.layers


@pytest.mark.parametrize(("shifts", "dims"), [(2, None), ([1, -1], [0, 1]), (1, 1)])
def test_roll_shifts_elements_around(shifts: Any, dims: Any) -> None:
    a = RNG.normal(size=(3, 4)).astype("float32")
    out = layers.roll(fluid.data("x", [3, 4]), shifts, dims)
    wanted = np.roll(a, shifts, None if dims is None else tuple(np.atleast_1d(dims)))
    np.testing.assert_array_equal(run(out, x=a), wanted)
