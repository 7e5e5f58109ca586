"""The operators that a backward pass differentiates, and where it stops."""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.backward.paths import collect_stops, find_path, find_unused_outputs

L = fluid.layers


def types(path: list[Any]) -> list[str]:
    return [op.type for op in path]


def test_the_path_contains_exactly_the_operators_that_the_target_needs() -> None:
    x = fluid.data("x", [None, 4])
    h = L.relu(x)
    L.tanh(h)  # contributes nothing
    out = L.mean(L.square(h))
    assert types(find_path(out.block, {out.name}, set())) == ["relu", "square", "mean"]


def test_the_path_begins_at_the_inputs() -> None:
    h = L.relu(fluid.data("x", [None, 4]))
    out = L.mean(L.square(h) + L.tanh(fluid.data("y", [None, 4])))
    path = find_path(out.block, {out.name}, set(), {h.name})
    assert types(path) == ["square", "elementwise_add", "mean"]


def test_the_path_ends_at_stop_variables() -> None:
    h = L.relu(fluid.data("x", [None, 4]))
    out = L.mean(L.square(h))
    assert types(find_path(out.block, {out.name}, {h.name})) == ["square", "mean"]


def test_operators_without_a_gradient_are_left_out() -> None:
    x = fluid.data("x", [None, 4])
    out = L.mean(L.cast(L.argmax(x, axis=-1), "float32"))
    assert types(find_path(out.block, {out.name}, set())) == ["cast", "mean"]


def test_variables_with_given_gradients_and_constants_count_as_stop_variables() -> None:
    x, y, z = fluid.data("x", [1]), L.relu(fluid.data("a", [1])), L.relu(fluid.data("b", [1]))
    w = L.tanh(y)
    w.stop_gradient = True
    stops = collect_stops(x.block, [y, z.name + "@GRAD"])
    assert {y.name, z.name, w.name, "x", "a", "b"} == stops


@pytest.mark.parametrize(
    ("given", "words"),
    [("x", "no_grad_set is 'x', expected a list"), (3, "is 3, expected a list"), ([3], "holds 3, expected")],
)
def test_stop_variables_of_other_types_are_refused(given: Any, words: str) -> None:
    block = fluid.data("x", [1]).block
    with pytest.raises(TypeError, match=words):
        collect_stops(block, given)


def test_outputs_that_lead_nowhere_have_no_gradient() -> None:
    x = fluid.data("x", [None, 4])
    first, second = L.split(x, 2, dim=1)
    out = L.mean(first)
    path = find_path(out.block, {out.name}, set())
    assert find_unused_outputs(path, {out.name}, set()) == {second.name}
