"""Learning rates that a load replaces are named in its report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import paddlelike as fluid


@pytest.fixture(autouse=True)
def scope() -> Iterator[None]:
    with fluid.scope_guard(fluid.Scope()):
        yield


def build(rate: float) -> fluid.Program:
    """A network trained at ``rate``, its startup program run."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        out = fluid.layers.fc(fluid.data("x", [None, 2]), 1)
        fluid.optimizer.SGD(rate).minimize(fluid.layers.mean(out))
    fluid.Executor().run(startup)
    return main


def rate() -> float:
    return float(np.array(fluid.global_scope().find_var("learning_rate_0").get_tensor())[0])


def test_a_changed_learning_rate_is_reported(tmp_path: Path) -> None:
    exe = fluid.Executor()
    fluid.io.save_persistables(exe, str(tmp_path / "m"), build(0.5))
    report = fluid.io.load_persistables(exe, str(tmp_path / "m"), build(0.25))
    assert rate() == 0.5  # as Fluid's own load
    assert report.notes == (
        "learning rate learning_rate_0: 0.5 was loaded, the startup program had set 0.25",
    )


@pytest.mark.parametrize("in_place", [False, True])
def test_a_learning_rate_changed_by_an_in_place_load_is_reported(tmp_path: Path, in_place: bool) -> None:
    exe = fluid.Executor()
    fluid.io.save_persistables(exe, str(tmp_path / "m"), build(0.5))
    report = fluid.io.load_persistables(exe, str(tmp_path / "m"), build(0.25), in_place=in_place)
    assert "0.5 was loaded, the startup program had set 0.25" in report.notes[0]


def test_an_equal_learning_rate_or_a_second_load_adds_no_note(tmp_path: Path) -> None:
    exe = fluid.Executor()
    fluid.io.save_persistables(exe, str(tmp_path / "other"), build(0.25))
    main = build(0.5)
    fluid.io.save_persistables(exe, str(tmp_path / "m"), main)
    assert fluid.io.load_persistables(exe, str(tmp_path / "m"), main).notes == ()
    fluid.io.load_persistables(exe, str(tmp_path / "m"), main)
    assert fluid.io.load_persistables(exe, str(tmp_path / "other"), main).notes == ()


def test_fluid_load_reports_a_changed_learning_rate(tmp_path: Path) -> None:
    exe = fluid.Executor()
    fluid.save(build(0.5), str(tmp_path / "net"))
    report = fluid.load(build(0.25), str(tmp_path / "net"), exe)
    assert "0.5 was loaded, the startup program had set 0.25" in report.notes[0]


def test_loading_parameters_alone_reports_no_learning_rate(tmp_path: Path) -> None:
    exe = fluid.Executor()
    fluid.io.save_persistables(exe, str(tmp_path / "m"), build(0.5))
    main = build(0.25).clone(for_test=True)
    assert fluid.io.load_params(exe, str(tmp_path / "m"), main).notes == ()
