"""What Executor.explain says of a run, against what is known of the network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import UnsupportedError
from paddlelike.executor import explain
from paddlelike.executor.explain import Explanation
from tests.helpers.fresh import fresh_programs


def is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


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


def build_nets() -> dict[str, Callable[[Any], Any]]:
    def loop(x: Any) -> Any:
        step, limit = fluid.layers.fill_constant([1], "int64", 0), fluid.layers.fill_constant([1], "int64", 3)
        return fluid.layers.while_loop(
            lambda i, _: fluid.layers.less_than(i, limit),
            lambda i, y: [i + 1, fluid.layers.fc(y, 5)],
            [step, x],
        )[1]

    def embed(x: Any) -> Any:
        ids = fluid.layers.cast(fluid.layers.reshape(x, [-1, 1]), "int64")
        return fluid.layers.embedding(ids, [9, 3], is_sparse=True)

    return {
        "deep": lambda x: fluid.layers.fc(
            [fluid.layers.fc(x, 3, act="relu"), fluid.layers.dropout(x, 0.5)], 2
        ),
        "views": lambda x: fluid.layers.concat(
            fluid.layers.split(fluid.layers.reshape(fluid.layers.fc(x, 5), [-1, 1]), 5, 0)
        ),
        "loop": loop,
        "rows": embed,
    }


@pytest.mark.parametrize("net", ["deep", "views", "loop", "rows"])
def test_the_peak_of_memory_equals_a_count_of_all_values_after_every_step(
    exe: fluid.Executor, net: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[tuple[int, int]] = []
    update = explain._Temporaries.update

    def count_all(self: explain._Temporaries, positions: Iterable[int]) -> None:
        update(self, positions)
        arrays = [v for at, v in enumerate(self._frame.values) if at not in self._frame.holders]
        buffers = {id(b): b.nbytes for b in map(explain._find_buffer, filter(is_array, arrays))}
        counts.append((self.nbytes, sum(buffers.values())))

    monkeypatch.setattr(explain._Temporaries, "update", count_all)
    with fresh_programs() as (main, startup):
        x = fluid.data("x", [4, 5])
        loss = fluid.layers.mean(build_nets()[net](x))
        if net != "loop":
            fluid.optimizer.Adam(0.1).minimize(loss)
        exe.run(startup)
        explained = exe.explain(main, {"x": np.ones((4, 5), "float32")}, [loss], repeat=1)
    assert len(counts) == len(explained.steps) + 1
    assert [kept for kept, _ in counts] == [every for _, every in counts]
    assert explained.peak_bytes == max(every for _, every in counts)


def test_computing_the_memory_of_twice_the_operators_takes_twice_the_work(
    exe: fluid.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count_work(layers: int) -> int:
        work: list[int] = []
        find = explain._find_buffer
        monkeypatch.setattr(explain, "_find_buffer", lambda array: (work.append(1), find(array))[1])
        with fresh_programs() as (main, _):
            out = fluid.data("x", [4])
            for _ in range(layers):
                out = fluid.layers.scale(fluid.layers.sin(out), 2.0)
            kept = [variable.name for variable in main.list_vars() if variable.name.startswith("sin")]
            exe.explain(main, {"x": np.ones(4, "float32")}, kept)  # so that values stay
        monkeypatch.setattr(explain, "_find_buffer", find)
        return len(work)

    assert count_work(80) < 2.1 * count_work(40)
