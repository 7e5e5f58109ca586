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
