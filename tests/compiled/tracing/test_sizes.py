"""Sizes that programs compute of what is fed: the piece is compiled for them, and is not split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from tests.compiled.harness.nets import Net, build, train

pytestmark = pytest.mark.slow

L = fluid.layers


def pieces_of(net: Net) -> list[Any]:
    (engine,) = (v for key, v in net.main.plans.items() if key[0] == "engine")
    assert engine.refused == {}
    return list(engine.pieces)


def mask_up_to_the_longest() -> Any:
    lengths = fluid.data("n", [None], dtype="int64")
    return L.sequence_mask(lengths, maxlen=L.reduce_max(lengths), dtype="float32")


def sum_of_messages() -> Any:
    """Sum rows at the nodes of a graph, as message passing does; the number of nodes is fed."""
    count = fluid.data("n", [1], dtype="int64")
    rows, to = fluid.data("rows", [None, 2]), fluid.data("to", [None], dtype="int64")
    hidden = L.fc(rows, 3, param_attr=fluid.initializer.Constant(0.5), bias_attr=False)
    out = L.fill_constant([L.cast(count, "int32"), 3], "float32", 0.0)
    return L.scatter(out, to, hidden, overwrite=False)


def numbers_up_to() -> Any:
    return L.range(
        0,
        L.elementwise_mul(fluid.data("n", [1], dtype="int64"), L.fill_constant([1], "int64", 2)),
        1,
        "int64",
    )


@pytest.mark.parametrize(
    ("make", "feeds", "expected"),
    [
        pytest.param(
            mask_up_to_the_longest,
            [{"n": np.array(lengths)} for lengths in ([1, 3], [3, 2], [1, 1])],
            [np.tril(np.ones((3, 3)))[[0, 2]], np.tril(np.ones((3, 3)))[[2, 1]], np.ones((2, 1))],
            id="the greatest of fed lengths",
        ),
        pytest.param(
            sum_of_messages,
            [
                {"n": np.array([n]), "rows": np.eye(2, dtype="float32"), "to": np.array([1, 1])}
                for n in (3, 3, 4)
            ],
            [np.repeat([[0.0], [1], [0], [0]], 3, 1)[:n] for n in (3, 3, 4)],
            id="the fed number of rows",
        ),
        pytest.param(
            numbers_up_to,
            [{"n": np.array([n])} for n in (2, 2, 1)],
            [np.arange(4), np.arange(4), np.arange(2)],
            id="the end of a range",
        ),
    ],
)
def test_a_size_computed_from_a_feed_is_a_compile_time_constant(
    make: Callable[[], Any], feeds: list[Any], expected: list[Any]
) -> None:
    net = build(make)
    for (found,), numbers in zip(train(net, feeds), expected, strict=True):
        np.testing.assert_array_equal(found, numbers)
    (piece,) = pieces_of(net)
    assert piece.compilations == 2, "for each size once"


def test_an_operator_reads_a_size_after_it_was_overwritten() -> None:
    def make() -> Any:
        size = fluid.data("n", [1], dtype="int64")
        first = L.fill_constant([size], "float32", 1.0)
        L.increment(size, 2)
        return [first, L.fill_constant([size], "float32", 2.0)]

    net = build(make)
    first, second = train(net, [{"n": np.array([3])}])[0]
    assert (first.shape, second.shape) == ((3,), (5,))
    assert len(pieces_of(net)) == 1


def test_the_warning_at_the_tenth_compilation_names_the_feed_that_determines_sizes() -> None:
    net = build(numbers_up_to)
    train(net, [{"n": np.array([n])} for n in range(1, 10)])
    with pytest.warns(UserWarning, match="compiled 10 times, because the feed 'n' gave 10 different sizes"):
        train(net, [{"n": np.array([10])}])
