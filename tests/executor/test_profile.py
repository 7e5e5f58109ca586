"""Times of operators, collected while they run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.executor import profile
from paddlelike.executor.plans.frame import Step


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    """No profile outlives a test."""
    yield
    profile.stop()


def test_every_operator_of_a_run_is_counted(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    y = fluid.layers.relu(fluid.layers.relu(fluid.layers.scale(x, 2.0)))
    feed = {"x": np.ones((2, 4), "float32")}
    exe.run(feed=feed, fetch_list=[y])
    profile.start()
    for _ in range(3):
        exe.run(feed=feed, fetch_list=[y])
    collected = profile.stop()
    assert {name: len(times) for name, times in collected.times.items()} == {"scale": 3, "relu": 6}
    exe.run(feed=feed, fetch_list=[y])
    assert len(collected.times["scale"]) == 3


def test_an_operator_that_fails_is_timed_as_well() -> None:
    def fail(frame: object) -> None:
        raise KeyError

    one, op = profile.Profile(), fluid.layers.relu(fluid.data("x", [None, 4])).op
    with pytest.raises(KeyError):
        one.run_step(None, Step(fail, op))  # type: ignore[arg-type]
    assert len(one.times["relu"]) == 1


def test_events_of_a_trace_lie_within_their_runs(exe: fluid.Executor) -> None:
    x = fluid.data("x", [None, 4])
    y = fluid.layers.relu(fluid.layers.scale(x, 2.0))
    profile.start()
    for _ in range(2):
        exe.run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[y])
    events = json.loads(profile.stop().format_trace())["traceEvents"]
    assert [event["name"] for event in events] == ["run", "scale", "relu"] * 2
    assert all(event["ph"] == "X" for event in events)
    for run, *inside in (events[:3], events[3:]):
        for event in inside:
            assert run["ts"] <= event["ts"]
            assert event["ts"] + event["dur"] <= run["ts"] + run["dur"] + 0.002  # rounded to nanoseconds
    assert events[1]["args"]["inputs"] == {"X": ["x"]}
    assert "test_profile.py" in events[1]["args"]["created at"]


@pytest.mark.parametrize(
    ("key", "order"),
    [
        ("default", ["a", "b", "c"]),
        ("calls", ["b", "a", "c"]),
        ("total", ["c", "b", "a"]),
        ("max", ["c", "b", "a"]),
        ("min", ["c", "b", "a"]),
        ("ave", ["c", "b", "a"]),
    ],
)
def test_the_table_is_sorted_by_a_column(key: str, order: list[str]) -> None:
    one = profile.Profile()
    one.times = {"a": [0.001, 0.001], "b": [0.002, 0.002, 0.004], "c": [0.1]}
    lines = one.format_table(key).splitlines()
    head = next(index for index, line in enumerate(lines) if line.startswith("Event "))
    assert [line.split()[0] for line in lines[head + 1 :]] == order


def test_a_profile_row_holds_calls_total_extremes_mean_and_ratio() -> None:
    one = profile.Profile()
    one.times = {"a": [0.001, 0.003], "b": [0.012]}
    one.seconds_of_runs = 0.020
    lines = one.format_table().splitlines()
    assert lines[-3].split() == ["Event", "Calls", "Total", "Min.", "Max.", "Ave.", "Ratio."]  # as Fluid's
    assert lines[-2].split() == ["a", "2", "4", "1", "3", "2", "0.25"]
    assert "  Computation time       Total: 16          Ratio: 80%" in lines
    assert "  Framework overhead     Total: 4           Ratio: 20%" in lines


def test_without_a_start_the_profile_is_empty() -> None:
    assert profile.stop().times == {}
