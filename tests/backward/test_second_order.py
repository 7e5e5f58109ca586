"""Gradients of gradients: the programs and the losses of real Fluid 1.8.5."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest

import paddlelike as fluid
from tests.backward.second_order_cases import CASES, SEED, STEPS, feeds
from tests.helpers.canonical import assert_same_program, canonical
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table

GOLDEN = table("second_order")


@pytest.mark.parametrize("name", CASES)
def test_a_program_with_second_gradients_is_fluids_and_trains_as_in_fluid(name: str) -> None:
    golden = GOLDEN[name]
    with fresh_programs(SEED) as (main, startup):
        loss = CASES[name](fluid)
        for program, which in ((startup, "startup"), (main, "main")):
            assert_same_program(
                canonical(program), canonical(zlib.decompress(base64.b64decode(golden[which])))
            )
        exe = fluid.Executor()
        exe.run(startup)
        losses = []
        for step in range(STEPS):
            feed = {n: a for n, a in feeds(step).items() if main.global_block().has_var(n)}
            losses.append(float(exe.run(main, feed=feed, fetch_list=[loss])[0][0]))
    # float32 with another order of sums, through four steps
    np.testing.assert_allclose(losses, golden["losses"], rtol=2e-5, atol=1e-6)
