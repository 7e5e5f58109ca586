"""Files of real Paddle 2.6.2 load into the same network built here, and training goes on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import paddlelike as fluid
from tests.helpers.golden_data import GOLDEN, arrays, manifest
from tests.helpers.runs import Run, building

NAME = "paddle262/mlp_adam"
HERE = GOLDEN / NAME


@pytest.fixture
def run() -> Iterator[Run]:
    with building("mlp_adam") as run:
        run.exe.run(run.startup)
        yield run


def train(run: Run) -> None:
    losses = [run.train(arrays(NAME, "io", f"train{step}/"))[0] for step in range(5)]
    np.testing.assert_allclose(losses, manifest(NAME)["losses"], rtol=1e-5)  # float32, five steps


def test_files_of_single_variables_are_read(run: Run) -> None:
    """Its learning rate has no dims at all, ours has one of 1: both are one number."""
    fluid.io.load_persistables(run.exe, str(HERE / "persistables"), run.main)
    train(run)


def test_a_combined_file_is_read(run: Run) -> None:
    where = str(HERE / "combined")
    fluid.io.load_persistables(run.exe, where, run.main, filename="all_persistables")
    train(run)


def test_pickles_of_static_save_are_read(run: Run) -> None:
    fluid.load(run.main, str(HERE / "static_save" / "model"), run.exe)
    train(run)


def test_an_inference_model_runs_here(run: Run) -> None:
    program, feeds, targets = fluid.io.load_inference_model(
        str(HERE / "inference"), run.exe, "model.pdmodel", "model.pdiparams"
    )
    recorded = arrays(NAME, "io")
    (out,) = run.exe.run(program, feed={feeds[0]: recorded["infer_in/x"]}, fetch_list=targets)
    np.testing.assert_allclose(out, recorded["infer_out"], rtol=1e-5, atol=1e-6)
