"""Small parameters in flat arrays: what saves, loads, other programs and holders of arrays see."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.executor.plans import run_plan as planning
from tests.executor.plans.rewrites.test_groups import FEED, build, train

Values = dict[str, bytes]


def start(main: Any, startup: Any) -> tuple[Any, Any]:
    exe, scope = fluid.Executor(), fluid.core.Scope()
    exe.run(startup, scope=scope)
    return exe, scope


def read(scope: Any) -> Values:
    return {name: np.array(scope.find_var(name).get_tensor()).tobytes() for name in scope.local_var_names()}


def is_flat(scope: Any, names: list[str]) -> bool:
    """Return whether the arrays of some variables are parts of one array."""
    bases = [scope.find_var(name).get_tensor().array.base for name in names]
    return bases[0] is not None and all(base is bases[0] for base in bases)


MOMENTS = [f"fc_{index}.b_0_moment1_0" for index in range(5)]


@pytest.fixture
def expected(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Values]:
    """Return a function that gives the values after some steps of Adam, each operator a step of its own."""

    def run(count: int, **changes: Any) -> Values:
        with monkeypatch.context() as patched:
            patched.setattr(planning, "group_steps", lambda steps, layout: list(steps))
            values = train(*build(fluid.optimizer.Adam(0.1)), count, **changes)
        return {name: value.tobytes() for name, value in values.items()}

    return run


def test_a_save_and_a_load_in_the_middle_change_no_bit(
    tmp_path: Path, expected: Callable[[int], Values]
) -> None:
    main, startup = build(fluid.optimizer.Adam(0.1))
    exe, scope = start(main, startup)
    for _ in range(2):
        exe.run(main, feed=FEED, scope=scope)
    assert is_flat(scope, MOMENTS)
    with fluid.scope_guard(scope):
        fluid.io.save_persistables(exe, str(tmp_path / "saved"), main)
        assert read(scope) == expected(2)
        exe.run(main, feed=FEED)
        fluid.io.load_persistables(exe, str(tmp_path / "saved"), main)
        assert read(scope) == expected(2)
        exe.run(main, feed=FEED)
    assert is_flat(scope, MOMENTS)
    assert read(scope) == expected(3)


def test_the_next_step_reads_a_variable_that_was_set_or_replaced() -> None:
    main, startup = build(fluid.optimizer.SGD(0.1))
    exe, scope = start(main, startup)
    exe.run(main, feed=FEED, scope=scope)
    name = "fc_4.b_0"
    tensor = scope.find_var(name).get_tensor()
    for change in (lambda value: tensor.set(value), lambda value: tensor.adopt(value)):
        change(np.full(2, 0.5, "float32"))
        others = read(scope)
        exe.run(main, feed=FEED, scope=scope)
        after = np.array(scope.find_var(name).get_tensor())
        assert (after != 0.5).all()
        np.testing.assert_allclose(after, 0.5, atol=0.1)  # the rate times a gradient below 1
        assert read(scope)["fc_0.b_0"] != others["fc_0.b_0"]


def test_an_array_held_by_the_user_is_updated_in_place(expected: Callable[[int], Values]) -> None:
    main, startup = build(fluid.optimizer.Adam(0.1))
    exe, scope = start(main, startup)
    held = scope.find_var("fc_2.w_0").get_tensor().array
    view = scope.find_var("fc_3.b_0").get_tensor().array[1:]
    exe.run(main, feed=FEED, scope=scope)
    assert not is_flat(scope, MOMENTS)
    assert held.tobytes() == expected(1)["fc_2.w_0"]
    assert view.tobytes() == expected(1)["fc_3.b_0"][4:]
    del held, view
    exe.run(main, feed=FEED, scope=scope)
    assert is_flat(scope, MOMENTS)
    assert read(scope) == expected(2)


def test_fetched_parameters_keep_the_values_of_their_run() -> None:
    main, startup = build(fluid.optimizer.SGD(0.1))
    exe, scope = start(main, startup)
    fetched = [exe.run(main, feed=FEED, fetch_list=["fc_0.b_0"], scope=scope)[0] for _ in range(3)]
    assert len({array.tobytes() for array in fetched}) == 3


def test_several_scopes_and_programs_keep_separate_values(expected: Callable[[int], Values]) -> None:
    main, startup = build(fluid.optimizer.Adam(0.1))
    scopes = [start(main, startup) for _ in range(2)]
    for fetches in ([], ["fc_0.b_0"], []):  # another plan for each choice of fetches
        for exe, scope in scopes:
            exe.run(main, feed=FEED, fetch_list=fetches, scope=scope)
    assert read(scopes[0][1]) == read(scopes[1][1]) == expected(3)
    assert not np.shares_memory(*(scope.find_var(MOMENTS[0]).get_tensor().array for _, scope in scopes))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda scope: pickle.loads(pickle.dumps(scope))])
def test_a_copied_scope_trains_independently(
    duplicate: Callable[[Any], Any], expected: Callable[[int], Values]
) -> None:
    main, startup = build(fluid.optimizer.Adam(0.1))
    exe, scope = start(main, startup)
    exe.run(main, feed=FEED, scope=scope)
    other = duplicate(scope)
    exe.run(main, feed=FEED, scope=other)
    assert read(scope) == expected(1)
    assert read(other) == expected(2)


def test_every_step_counts_as_a_write_of_each_variable() -> None:
    main, startup = build(fluid.optimizer.Adam(0.1))
    exe, scope = start(main, startup)
    exe.run(main, feed=FEED, scope=scope)
    before = {name: scope.find_var(name).version for name in scope.local_var_names()}
    exe.run(main, feed=FEED, scope=scope)
    changed = {name: scope.find_var(name).version - count for name, count in before.items()}
    assert {name for name, count in changed.items() if count == 0} == {"learning_rate_0"}
