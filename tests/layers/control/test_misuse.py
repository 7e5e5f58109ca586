"""Control flow layers name the argument that does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from tests.helpers.small_networks import number

layers = fluid.layers


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda i: layers.while_loop(lambda i: i < i, lambda i: [i, i], [i]), GraphError, "structure"),
        (lambda i: layers.while_loop(lambda i: i < i, lambda i: i, []), GraphError, "empty"),
        (lambda i: layers.while_loop(1, lambda i: i, [i]), TypeError, "cond must be a function"),
        (lambda i: layers.while_loop(lambda i: i < i, lambda i: i, i), TypeError, "list of variables"),
        (lambda i: layers.cond(i < i, lambda: i, lambda: [i, i]), GraphError, "same structure"),
        (lambda i: layers.cond(i < i, lambda: i, lambda: None), GraphError, "false_fn returns None"),
        (lambda i: layers.cond(i, lambda: i, lambda: i), TypeError, "BOOL"),
        (lambda i: layers.case([]), GraphError, "empty"),
        (lambda i: layers.case([i < i]), TypeError, "tuple"),
        (lambda i: layers.switch_case(i, {}), GraphError, "empty"),
        (lambda i: layers.switch_case(i, [(1, lambda: i), (1, lambda: i)]), GraphError, "once"),
        (lambda i: layers.array_read(i, i), TypeError, "expected an array"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)  # fmt: skip
def test_misuse_is_refused(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(number(0))


def test_a_loop_of_a_program_for_prediction_has_no_gradient() -> None:
    x = fluid.data("x", [2, 3])
    x.stop_gradient = False
    total = layers.mean(x)
    index, limit = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    condition = layers.less_than(index, limit)
    loop = layers.While(condition, is_test=True)
    with loop.block():
        layers.assign(layers.scale(total, 2.0), total)
        layers.increment(index, in_place=True)
        layers.less_than(index, limit, cond=condition)
    with pytest.raises(GraphError, match="a program for prediction has no gradient"):
        fluid.gradients(total, x)
