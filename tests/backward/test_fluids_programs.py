"""Gradients of gradients, activations computed again, nested control flow: as in real Fluid 1.8.5."""

from __future__ import annotations

import base64
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.backward import branch_cases, nested_cases, recompute_cases, second_order_cases
from tests.helpers.canonical import Canonical, assert_same_program, canonical
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table

MODULES = {
    "second_order": second_order_cases,
    "recompute": recompute_cases,
    "branches": branch_cases,
    "nested": nested_cases,
}
CASES = [(kind, name) for kind, module in MODULES.items() for name in module.CASES]


def real_program(golden: dict[str, Any], which: str) -> Canonical:
    return canonical(zlib.decompress(base64.b64decode(golden[which])))


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_program_matches_fluid_and_trains_as_in_fluid(kind: str, name: str) -> None:
    cases, golden = MODULES[kind], table(kind)[name]
    with fresh_programs(cases.SEED) as (main, startup):
        loss = cases.CASES[name](fluid)
        for program, which in ((startup, "startup"), (main, "main")):
            assert_same_program(canonical(program), real_program(golden, which))
        exe = fluid.Executor()
        exe.run(startup)
        losses = []
        for step in range(cases.STEPS):
            feed = {n: a for n, a in cases.feeds(step).items() if main.global_block().has_var(n)}
            losses.append(float(exe.run(main, feed=feed, fetch_list=[loss])[0][0]))
    # float32 with another order of sums, through four steps
    np.testing.assert_allclose(losses, golden["losses"], rtol=2e-5, atol=1e-6)


def test_recomputing_saves_memory() -> None:
    rows, width, depth = 512, 128, 16
    peaks = {}
    for recomputes in (False, True):
        with fresh_programs(1) as (main, startup), fluid.scope_guard(fluid.Scope()):
            hidden = [fluid.data("x", [None, width])]
            for _ in range(depth):
                hidden.append(fluid.layers.tanh(fluid.layers.fc(hidden[-1], width)))
            optimizer = fluid.optimizer.SGD(0.1)
            if recomputes:
                optimizer = fluid.optimizer.RecomputeOptimizer(optimizer)
                optimizer._set_checkpoints(hidden[4::4])
            loss = fluid.layers.mean(hidden[-1])
            optimizer.minimize(loss)
            exe = fluid.Executor()
            exe.run(startup)
            batch = {"x": np.ones((rows, width), "float32")}
            exe.run(main, feed=batch, fetch_list=[loss])  # keeps what it allocates for good
            tracemalloc.start()
            exe.run(main, feed=batch, fetch_list=[loss])
            peaks[recomputes] = tracemalloc.get_traced_memory()[1] / (rows * width * 4)
            tracemalloc.stop()
    # in activations: 16 layers keep tanh each; with checkpoints 4, and a segment of 4 layers
    assert 16 < peaks[False] < 20
    assert peaks[True] < 12
