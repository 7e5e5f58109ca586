"""Training programs of real Fluid 1.8.5, read from their bytes, train on with its losses."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from tests.golden_runs.test_control import OTHER_PROGRAM
from tests.helpers.control_networks import RATE, SEED, STEPS, TRAINED
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import GOLDEN, arrays, table, with_lod
from tests.helpers.networks import NETWORKS
from tests.optimizer.harness import cases

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums in another order, through some steps
RECORDED = table("training")
CONTROL = table("control")


def parse(data: bytes) -> Any:
    return fluid.Program.parse_from_string(data)


def unpack(text: str) -> Any:
    return parse(zlib.decompress(base64.b64decode(text)))


def find_loss(main: Any) -> str:
    """Return the variable whose operator the backward pass marked as the loss."""
    return next(op.output_arg_names[0] for op in main.global_block().ops if op.attrs.get("op_role") == 256)


def train(main: Any, batches: list[Any]) -> list[float]:
    exe, block = fluid.Executor(), main.global_block()
    losses = []
    for batch in batches:
        feed = {name: value for name, value in batch.items() if block.has_var(name)}
        (loss,) = exe.run(main, feed=feed, fetch_list=[find_loss(main)])
        losses.append(float(np.ravel(loss)[0]))
    return losses


@pytest.mark.parametrize("name", NETWORKS)
def test_a_program_continues_from_saved_variables(name: str) -> None:
    programs = GOLDEN / name / "programs"
    main, startup = (parse((programs / f"{one}_train.pb").read_bytes()) for one in ("main", "startup"))
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor()
        exe.run(startup)
        fluid.io.load_persistables(exe, str(GOLDEN / name / "persistables"), main)
        losses = train(main, [with_lod(fluid, arrays(name, "io", f"train{step}/")) for step in range(10)])
    np.testing.assert_allclose(losses, arrays(name, "io")["losses"], **CLOSE)


@pytest.mark.parametrize("name", [name for name, record in RECORDED.items() if "error" not in record])
def test_a_program_with_clips_schedules_and_optimizers_trains(name: str) -> None:
    record = RECORDED[name]
    with fluid.scope_guard(fluid.Scope()):
        fluid.Executor().run(unpack(record["startup"]))
        losses = train(unpack(record["main"]), cases.feeds())
    np.testing.assert_allclose(losses, record["losses"], **CLOSE)


@pytest.mark.parametrize("name", [name for name in TRAINED if name != OTHER_PROGRAM])
def test_a_program_with_loops_and_branches_trains(name: str) -> None:
    with fresh_programs(SEED):
        loss, feed = TRAINED[name](fluid)
        fluid.optimizer.SGD(RATE).minimize(loss)
    with fluid.scope_guard(fluid.Scope()):
        fluid.Executor().run(unpack(CONTROL[name]["startup"]))
        losses = train(unpack(CONTROL[name]["main"]), [feed] * STEPS)
    np.testing.assert_allclose(losses, CONTROL[name]["losses"], **CLOSE)
