"""Detectors that propose regions train as in real Fluid 1.8.5: programs and losses of five steps."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.canonical import assert_same_program, canonical
from tests.helpers.detector_networks import RATE, SEED, STEPS, TRAINED
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table

GOLDEN = table("detectors")


@pytest.mark.parametrize("name", TRAINED)
def test_a_detector_trains_as_in_fluid(name: str) -> None:
    golden = GOLDEN[name]
    with fresh_programs(SEED) as (main, startup):
        loss, feed = TRAINED[name](fluid)
        fluid.optimizer.SGD(RATE).minimize(loss)
        for program, which in ((startup, "startup"), (main, "main")):
            real = canonical(zlib.decompress(base64.b64decode(golden[which])))
            assert_same_program(canonical(program), real)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(startup)
        losses = [float(exe.run(main, feed=feed, fetch_list=[loss])[0]) for _ in range(STEPS)]
    # float32 with another order of sums, through five steps
    np.testing.assert_allclose(losses, golden["losses"], rtol=2e-5)
