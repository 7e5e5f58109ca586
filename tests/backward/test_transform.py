"""Gradient operators before they are appended: sums, zeros, and what is dropped."""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.backward.transform import (
    Step,
    add_sums,
    add_zeros,
    collect_gradients,
    drop_detached_steps,
    drop_empty_steps,
    drop_stopped_outputs,
    drop_unfed_steps,
    drop_zero_steps,
    find_variable_name,
)
from paddlelike.errors import QuirkWarning
from paddlelike.framework import flags
from paddlelike.framework.opdef import EMPTY, GradOp


@pytest.fixture
def forward() -> Any:
    """Any operator: steps only carry it along."""
    return fluid.layers.relu(fluid.data("x", [None, 4])).op


def step(forward: Any, reads: str, writes: str) -> Step:
    """A step that reads and writes variables, given as words."""
    return Step(GradOp("some_grad", {"X": reads.split()}, {"Out": writes.split()}, {}), forward)


def flow(steps: list[Step]) -> list[tuple[str, str, str]]:
    """Type, inputs and outputs of each step."""
    return [
        (
            one.grad.type,
            *(" ".join(n for names in slots.values() for n in names) for slots in one.grad[1:3]),
        )
        for one in steps
    ]


@pytest.mark.parametrize(
    ("gradient", "variable"),
    [("w@GRAD", "w"), ("w@GRAD@RENAME@block0@3", "w"), ("w", "w"), ("a@GRAD@GRAD", "a@GRAD")],
)
def test_the_variable_of_a_gradient_follows_from_its_name(gradient: str, variable: str) -> None:
    assert find_variable_name(gradient) == variable


def test_gradients_are_recognized_by_their_names() -> None:
    assert collect_gradients({"X": ["a", "a@GRAD"], "Y": ["b@GRAD@RENAME@block0@0", "c"]}) == [
        "a@GRAD",
        "b@GRAD@RENAME@block0@0",
    ]


def test_two_contributions_are_summed_before_the_total_is_read(forward: Any) -> None:
    steps = [
        step(forward, "loss@GRAD", "x@GRAD"),
        step(forward, "loss@GRAD", "x@GRAD"),
        step(forward, "x@GRAD", "w@GRAD"),
    ]
    assert flow(add_sums(steps, 2)) == [
        ("some_grad", "loss@GRAD", "x@GRAD@RENAME@block2@0"),
        ("some_grad", "loss@GRAD", "x@GRAD@RENAME@block2@1"),
        ("sum", "x@GRAD@RENAME@block2@0 x@GRAD@RENAME@block2@1", "x@GRAD"),
        ("some_grad", "x@GRAD", "w@GRAD"),
    ]


def test_a_total_without_readers_is_summed_at_the_end(forward: Any) -> None:
    steps = [step(forward, "loss@GRAD", "w@GRAD"), step(forward, "loss@GRAD", "w@GRAD")]
    assert flow(add_sums(steps, 0))[-1] == ("sum", "w@GRAD@RENAME@block0@0 w@GRAD@RENAME@block0@1", "w@GRAD")


def test_a_contribution_computed_after_the_total_was_read_is_summed_with_it_unless_quirks_are_off(
    forward: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [
        step(forward, "loss@GRAD", "x@GRAD"),
        step(forward, "x@GRAD", "w@GRAD"),
        step(forward, "loss@GRAD", "x@GRAD"),
    ]
    with pytest.warns(QuirkWarning, match="of a variable that the program overwrites"):
        assert flow(add_sums(steps, 0)) == [
            ("some_grad", "loss@GRAD", "x@GRAD@RENAME@block0@0"),
            ("some_grad", "x@GRAD@RENAME@block0@0", "w@GRAD"),
            ("some_grad", "loss@GRAD", "x@GRAD@RENAME@block0@1"),
            ("sum", "x@GRAD@RENAME@block0@0 x@GRAD@RENAME@block0@1", "x@GRAD"),
        ]
    monkeypatch.setitem(flags._flags, "FLAGS_fluid_quirks", False)
    assert flow(add_sums(steps, 0)) == flow(steps)


def test_a_chain_that_only_reads_gradients_from_elsewhere_is_dropped(forward: Any) -> None:
    steps = [
        step(forward, "i", "i"),
        step(forward, "x@GRAD", "a@GRAD"),
        step(forward, "a@GRAD", "b@GRAD"),
        step(forward, "y@GRAD", "c@GRAD"),
        step(forward, "c@GRAD w", "d@GRAD"),
    ]
    assert drop_detached_steps(steps, {"i", "w"}) == [steps[0], *steps[3:]]
    assert drop_detached_steps(steps[1:3], {"i", "w"}) == steps[1:3]


def test_a_missing_gradient_of_a_stopped_variable_is_filled_with_zeros_once(forward: Any) -> None:
    steps = [step(forward, "a@GRAD b@GRAD", "c@GRAD"), step(forward, "a@GRAD", "d@GRAD")]
    assert flow(add_zeros(steps, {"a"})) == [
        ("fill_zeros_like", "a", "a@GRAD"),
        ("some_grad", "a@GRAD b@GRAD", "c@GRAD"),
        ("some_grad", "a@GRAD", "d@GRAD"),
    ]


def test_steps_that_only_receive_zeros_are_dropped_with_the_steps_after_them(forward: Any) -> None:
    steps = [
        step(forward, "stop@GRAD", "a@GRAD"),
        step(forward, "a@GRAD", "b@GRAD"),
        step(forward, "stop@GRAD live@GRAD", "c@GRAD"),
    ]
    assert drop_zero_steps(steps, {"stop"}) == steps[2:]


def test_steps_without_an_existing_incoming_gradient_are_dropped(forward: Any) -> None:
    steps = [
        step(forward, "loss@GRAD", "a@GRAD"),
        step(forward, "a@GRAD", "b@GRAD"),
        step(forward, "other@GRAD", "c@GRAD"),
        step(forward, "x", "d@GRAD"),
    ]
    assert drop_unfed_steps(steps, {"loss@GRAD"}) == [steps[0], steps[1], steps[3]]


def test_outputs_for_stopped_variables_are_dropped_or_left_empty() -> None:
    a, b = fluid.data("a", [2]), fluid.data("b", [2])
    total = fluid.layers.sums([a, b]).op
    one = fluid.layers.elementwise_mul(a, b).op
    several = GradOp("sum_grad", {}, {"X@GRAD": ["a@GRAD", "b@GRAD"]}, {})
    single = GradOp("elementwise_mul_grad", {}, {"X@GRAD": ["a@GRAD"], "Y@GRAD": ["b@GRAD"]}, {})

    kept = drop_stopped_outputs(several, total, {"a"}, keep_empty=False)
    assert kept.outputs == {"X@GRAD": [EMPTY, "b@GRAD"]}  # places in a slot of several count
    kept = drop_stopped_outputs(single, one, {"a"}, keep_empty=False)
    assert kept.outputs == {"X@GRAD": [], "Y@GRAD": ["b@GRAD"]}
    kept = drop_stopped_outputs(single, one, {"a", "b"}, keep_empty=False)
    assert drop_empty_steps([Step(kept, one)]) == []
    kept = drop_stopped_outputs(single, one, {"a", "b"}, keep_empty=True)
    assert kept.outputs == {"X@GRAD": [EMPTY], "Y@GRAD": [EMPTY]}
