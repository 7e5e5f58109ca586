"""Times of operators, collected while they run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.executor import profile


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
    one = profile.Profile()
    with pytest.raises(KeyError), one.measure("mul"):
        raise KeyError
    assert len(one.times["mul"]) == 1


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
    assert lines[0] == "time in ms"
    assert [line.split()[0] for line in lines[2:]] == order


def test_a_row_holds_calls_total_extremes_mean_and_ratio() -> None:
    one = profile.Profile()
    one.times = {"a": [0.001, 0.003], "b": [0.012]}
    assert one.format_table().splitlines()[2].split() == [
        "a", "2", "4.000", "1.0000", "3.0000", "2.0000", "25.0%",
    ]  # fmt: skip


def test_without_a_start_the_profile_is_empty() -> None:
    assert profile.stop().times == {}
