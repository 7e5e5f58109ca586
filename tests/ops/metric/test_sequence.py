"""F1 of chunk_eval, to the last bit of real Fluid 1.8.5."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.small_networks import run

#: Chunks found, true and correct; F1 as Fluid 1.8.5 computed it. Computed in float64 and rounded once, it is
#: one bit of float32 away for all of these.
F1 = [
    (20, 21, 12, "0x1.2bb514p-1"), (9, 10, 7, "0x1.794360p-1"), (15, 18, 10, "0x1.364d92p-1"),
    (12, 13, 6, "0x1.eb8520p-2"), (25, 27, 19, "0x1.762764p-1"), (9, 6, 4, "0x1.111110p-1"),
    (9, 8, 6, "0x1.696968p-1"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "true", "correct", "f1"), F1)
def test_f1_has_the_same_bits_as_fluid(found: int, true: int, correct: int, f1: str) -> None:
    begin, outside = 0, 2
    rows = np.full((2, found + true - correct, 1), outside)
    rows[0, :found] = begin
    rows[1, found - correct :] = begin
    x, y = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("x", "y"))
    feed = {
        name: fluid.create_lod_tensor(value, [[len(value)]], fluid.CPUPlace())
        for name, value in zip(("x", "y"), rows, strict=True)
    }
    values = run(list(fluid.layers.chunk_eval(x, y, "IOB", 1)), **feed)
    assert [int(value[0]) for value in values[3:]] == [found, true, correct]
    assert float(values[2][0]) == float.fromhex(f1)
