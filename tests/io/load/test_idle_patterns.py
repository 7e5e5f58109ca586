"""A pattern of a load that matches no name is said, with the names most like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError, LoadError

Rules = fluid.io.Rules


@pytest.fixture
def saved(tmp_path: Path) -> tuple[fluid.Executor, Path]:
    with fluid.unique_name.guard():
        fluid.layers.fc(fluid.layers.fc(fluid.data("x", [None, 4]), 3), 2)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_params(exe, tmp_path / "net")
    return exe, tmp_path / "net"


OPTIONS: dict[str, dict[str, Any]] = {
    "skip": {"skip": "fc1_*"},
    "init": {"init": {"fc1_*": 0.0}},
    "rule_skip": {"rules": Rules().skip("fc1_*")},
    "rule_rename": {"rules": Rules().rename("fc1_*", "fc_1*")},
    "rule_expression": {"rules": Rules().rename(r"re:fc1_(\d)", r"fc_1_\1")},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_load_warns_of_a_pattern_that_matches_nothing(
    saved: tuple[fluid.Executor, Path], options: dict[str, Any]
) -> None:
    exe, where = saved
    with pytest.warns(UserWarning, match=r"'?.*fc1_.* matches no variable.*; .*'fc_1\.w_0'"):
        report = fluid.io.load_params(exe, where, **options)
    assert sum("matches no variable" in note for note in report.notes) == 1
    assert len(report.loaded) == 4


def test_a_refused_load_names_the_pattern_that_matched_nothing(saved: tuple[fluid.Executor, Path]) -> None:
    exe, where = saved
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        fluid.layers.fc(fluid.layers.fc(fluid.data("x", [None, 4]), 3), 5)
    with pytest.raises(LoadError, match=r"skip: 'fc1_\*' matches no variable"):
        fluid.io.load_params(exe, where, main, skip="fc1_*")
    assert bool(fluid.io.load_params(exe, where, main, skip="fc_1.*"))


def test_a_plan_shows_the_pattern_that_matches_nothing(saved: tuple[fluid.Executor, Path]) -> None:
    plan = fluid.io.plan_load(saved[1], skip="conv_*")
    assert plan.notes[0].startswith("skip: 'conv_*' matches no variable; the names most like it are ")
    assert plan.notes[0] in str(plan)
    assert fluid.io.plan_load(saved[1], skip="fc_1.*").notes == ()


def test_fit_state_warns_of_a_pattern_that_matches_nothing() -> None:
    with fluid.unique_name.guard():
        fluid.layers.fc(fluid.data("x", [None, 4]), 3, bias_attr=False)
    with pytest.warns(UserWarning, match="fit_state: skip: 'fc1_"):
        fluid.io.fit_state({"fc_0.w_0": np.ones((4, 3), "float32")}, skip="fc1_*")


def test_an_unknown_name_in_vars_is_an_error(
    saved: tuple[fluid.Executor, Path],
) -> None:
    with pytest.raises(GraphError, match=r"fc_0\.w_0"):
        fluid.io.load_vars(saved[0], saved[1], vars=["fc_O.w_0"])
