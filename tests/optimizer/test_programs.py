"""Clips, regularizers, schedules and optimizers together build and do what the real system does."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.canonical import Canonical, assert_same_program, canonical
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table
from tests.optimizer.harness import cases

GOLDEN = table("training")

#: Programs that do the same with other operators, and why.
DIFFERENT = {
    "moving_average_with_whole_steps": "Fluid declares the decay as int64 and casts it",
    "two_optimizers": "the second backward pass names its gradients otherwise",
}


@pytest.mark.parametrize("name", sorted(GOLDEN))
@pytest.mark.filterwarnings("ignore:Ftrl", "ignore:ExponentialMovingAverage", "ignore:set_gradient_clip")
def test_programs_and_values_of_optimizers_match_fluid(name: str) -> None:
    golden = GOLDEN[name]
    with fresh_programs(seed=cases.SEED) as (main, startup):
        loss = cases.CASES[name](fluid)
        if name not in DIFFERENT:
            assert_same_program(known(canonical(main)), known(decoded(golden["main"])))
            assert_same_program(canonical(startup), decoded(golden["startup"]))
        exe = fluid.Executor()
        exe.run(startup)
        before = values(golden["persistables"])
        losses = [exe.run(main, feed=fed(main, batch), fetch_list=[loss])[0][0] for batch in cases.feeds()]
        after = values(golden["persistables"])
    np.testing.assert_allclose(losses, golden["losses"], rtol=2e-5)  # float32, five steps
    for key, (first, last) in golden["persistables"].items():
        np.testing.assert_array_equal(before[key], first, err_msg=key)
        np.testing.assert_allclose(after[key], last, rtol=2e-5, atol=1e-6, err_msg=key)


def test_every_case_has_golden_data() -> None:
    assert sorted(cases.CASES) == sorted(GOLDEN)
    assert set(DIFFERENT) <= set(GOLDEN)


def decoded(program: str) -> Canonical:
    return canonical(zlib.decompress(base64.b64decode(program)))


def known(program: Canonical) -> Canonical:
    """A program without the differences that are meant."""
    for block in program["blocks"]:
        for op in block["ops"]:
            if op["type"] == "conditional_block":  # Fluid lists what a block touches in any order
                op["inputs"]["Input"].sort()
                op["outputs"]["Out"].sort()
            # An error clip has no role in Fluid, so that a test program keeps it and fails.
            op["attrs"].setdefault("op_role", ["INT", 1])
            op["attrs"].setdefault("op_device", ["STRING", ""])
        for variable in block["vars"].values():
            if variable["type"] == "SELECTED_ROWS":  # Fluid forgets the shape behind some operators
                variable.pop("shape")
                variable.pop("lod_level", None)
    return program


def fed(program: Any, batch: dict[str, Any]) -> dict[str, Any]:
    return {name: array for name, array in batch.items() if program.global_block().has_var(name)}


def values(names: Any) -> dict[str, Any]:
    scope = fluid.global_scope()
    return {n: np.array(scope.find_var(n).get_tensor()).astype(float).ravel() for n in names}
