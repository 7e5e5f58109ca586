"""What Executor.explain says of a run, against what is known of the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import UnsupportedError
from paddlelike.executor.explain import Explanation
from tests.helpers.fresh import fresh_programs

FEED = {"x": np.ones((4, 3, 8, 8), "float32")}


def explain_training(exe: fluid.Executor) -> tuple[Explanation, Any]:
    """The explanation of a step of a small network, and the parameters before and after it."""
    with fresh_programs() as (main, startup):
        x = fluid.data("x", [None, 3, 8, 8])
        hidden = fluid.layers.conv2d(x, 5, 3, bias_attr=False)  # (4, 5, 6, 6)
        out = fluid.layers.fc(hidden, 2, bias_attr=False)
        loss = fluid.layers.mean(fluid.layers.reshape(out, [-1]))
        fluid.optimizer.SGD(0.1).minimize(loss)
        exe.run(startup)

        def read() -> list[Any]:
            names = [p.name for p in main.all_parameters()]
            return [np.array(fluid.global_scope().find_var(n).get_tensor()) for n in names]

        before = read()
        explained = exe.explain(main, FEED, [loss])
        return explained, (before, read())


def test_multiply_adds_and_bytes_match_the_arithmetic(exe: fluid.Executor) -> None:
    explained, _ = explain_training(exe)
    steps = {step.operators[0]: step for step in explained.steps}
    assert steps["conv2d"].multiply_adds == 4 * 5 * 6 * 6 * 3 * 3 * 3
    assert steps["conv2d_grad"].multiply_adds == steps["conv2d"].multiply_adds  # of the filter alone
    assert steps["mul"].multiply_adds == 4 * 180 * 2
    assert steps["mul_grad"].multiply_adds == 2 * 4 * 180 * 2
    assert steps["relu" if "relu" in steps else "mean"].multiply_adds == 0
    assert steps["conv2d"].bytes_moved == 4 * (4 * 3 * 64 + 5 * 27 + 4 * 5 * 36)
    assert explained.persistable_bytes == 4 * (5 * 27 + 180 * 2 + 1)


def test_products_whose_results_nobody_reads_are_counted(exe: fluid.Executor) -> None:
    with fresh_programs() as (main, startup):
        x = fluid.data("x", [None, 3, 8, 8])
        fluid.layers.conv2d(x, 5, 3, bias_attr=False)
        flat = fluid.layers.reshape(x, [-1, 8, 24])
        fluid.layers.matmul(flat, flat, transpose_y=True)
        fluid.layers.fc(x, 2, bias_attr=False)
        exe.run(startup)
        explained = exe.explain(main, FEED)
    counts = {step.operators[0]: step.multiply_adds for step in explained.steps}
    assert counts["conv2d"] == 4 * 5 * 6 * 6 * 3 * 3 * 3
    assert counts["matmul"] == 4 * 8 * 8 * 24
    assert counts["mul"] == 4 * 192 * 2


def test_explain_lists_overwritten_shared_and_released_values(exe: fluid.Executor) -> None:
    explained, _ = explain_training(exe)
    updates = [step for step in explained.steps if step.operators[0] == "sgd"]
    assert sorted(name for step in updates for name in step.in_place) == ["conv2d_0.w_0", "fc_0.w_0"]
    released = [name for step in explained.steps for name in step.released]
    assert len(released) == len(set(released))
    assert "fc_0.w_0@GRAD" in released
    shares = {step.operators[0]: step.shares_memory for step in explained.steps}
    assert shares["reshape2"]
    assert not shares["conv2d"]


def test_explain_changes_no_variable(exe: fluid.Executor) -> None:
    _, (before, after) = explain_training(exe)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_text_has_a_line_for_each_type_of_operator(exe: fluid.Executor) -> None:
    explained, _ = explain_training(exe)
    table = str(explained).split("\n\n")[1].splitlines()
    assert sorted(line.split()[0] for line in table[1:]) == sorted({s.operators[0] for s in explained.steps})
    times = [float(line.split()[2]) for line in table[1:]]
    assert times == sorted(times, reverse=True)
    assert sum(times) == pytest.approx(
        1e3 * explained.seconds, abs=0.001 * len(times)
    )  # rounded to microseconds


def test_explain_does_not_run_a_program_with_external_effects(exe: fluid.Executor) -> None:
    called = []
    with fresh_programs() as (main, _):
        x = fluid.data("x", [None, 3, 8, 8])
        out = main.current_block().create_var(name="out", shape=[-1, 3, 8, 8], dtype="float32")
        fluid.layers.py_func(called.append, x, out)
        with pytest.raises(UnsupportedError, match="'py_func' has effects outside"):
            exe.explain(main, FEED, [out])
    assert not called
