"""Kernels bound to a frame: how inputs are read and results are stored."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from paddlelike.executor.plans.binding import bind_kernel, make_storer, make_taker

NOTHING: frozenset[int] = frozenset()


def frame(*values: Any) -> Any:
    """A frame with these values and no persistables."""
    return SimpleNamespace(values=list(values), lods={}, holders={})


@pytest.mark.parametrize(
    ("positions", "taken"),
    [([2], ["c"]), ([2, 0], ["c", "a"]), ([[0, 1], 2], [["a", "b"], "c"]), ([], [])],
    ids=["one", "two", "several-in-a-slot", "none"],
)
def test_a_bound_step_passes_inputs_by_slot(positions: list[Any], taken: list[Any]) -> None:
    assert list(make_taker(positions)(["a", "b", "c"])) == taken


def test_an_input_that_the_kernel_overwrites_is_copied() -> None:
    values = [np.zeros(2), np.ones(2)]
    first, second = make_taker([0, 1], frozenset([1]))(values)
    assert first is values[0]
    assert second is not values[1]
    assert not np.shares_memory(second, values[1])
    assert second.tolist() == [1, 1]


def test_results_are_stored_by_slot_and_unused_ones_dropped() -> None:
    run = frame(None, None, None, None)
    store = make_storer(
        [3, [0, -1, 1], 2], several=[False, True, False], kept=NOTHING, copies=False, fresh=False
    )
    store(run, ("x", ["a", "unused", "b"], None))
    assert run.values == ["a", "b", None, "x"]


def test_a_single_unused_result_is_dropped() -> None:
    run = frame("old")
    make_storer([-1], several=[False], kept=NOTHING, copies=False, fresh=False)(run, "new")
    assert run.values == ["old"]


def test_results_that_share_memory_are_copied_on_request() -> None:
    run, array = frame(None), np.arange(3.0)
    make_storer([0], several=[False], kept=NOTHING, copies=True, fresh=False)(run, array[1:])
    assert run.values[0].tolist() == [1, 2]
    assert not np.shares_memory(run.values[0], array)


@pytest.mark.parametrize("inputs", [[0], [0, 1], [0, 1, 2], [[0, 1], 2]], ids=str)
def test_every_form_of_inputs_gives_the_kernel_the_same_arguments(inputs: list[Any]) -> None:
    calls = []

    def kernel(*given: Any) -> str:
        calls.append(given)
        return "out"

    store = make_storer([3], several=[False], kept=NOTHING, copies=False, fresh=False)
    for target in (3, None):  # the fast forms write the value themselves
        run = frame("a", "b", "c", None)
        bind_kernel(kernel, inputs, NOTHING, store, None, (0,), target)(run)
        assert run.values == [None, "b", "c", "out"]
    expected = tuple(["abc"[i] for i in one] if isinstance(one, list) else "abc"[one] for one in inputs)
    assert calls == [expected, expected]


def test_existing_lods_are_shared_after_the_kernel_runs() -> None:
    shared = []
    store = make_storer([1], several=[False], kept=NOTHING, copies=False, fresh=False)

    def share(lods: dict[int, Any], result: Any) -> None:
        shared.append((dict(lods), result))

    run = frame("a", None)
    step = bind_kernel(str.upper, [0], NOTHING, store, share, (), 1)
    step(run)
    assert shared == []
    run.lods[0] = [[0, 1]]
    step(run)
    assert shared == [({0: [[0, 1]]}, "A")]
