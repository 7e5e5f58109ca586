"""Loops that end when values say so, as those that decode: compiled up to a bound, else run with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from tests.compiled.harness.nets import Net, build, train

pytestmark = pytest.mark.slow

L = fluid.layers
WORDS, LIMIT, END = 6, 5, 3


def find_refused(net: Net) -> dict[str, str]:
    engine = next(v for key, v in net.main.plans.items() if key[0] == "engine")
    return {engine.plan.steps[index].op.type: why for index, why in engine.refused.items()}


def follow_words(*, has_limit: bool) -> list[Any]:
    """Return the steps, and the words, of a chain of words that ends at a word or at a limit."""
    word = L.assign(fluid.data("x", [1], "int64"))
    following = fluid.data("following", [WORDS], "int64")
    i, limit = L.zeros([1], "int64"), L.fill_constant([1], "int64", LIMIT)
    end = L.fill_constant([1], "int64", END)
    words = L.array_write(word, i)
    going = L.logical_not(L.equal(word, end))
    with L.While(going).block():
        L.assign(L.gather(following, word), word)
        L.increment(i)
        L.array_write(word, i, words)
        still = L.logical_not(L.equal(word, end))
        if has_limit:
            L.logical_not(L.logical_or(L.logical_not(still), L.greater_equal(i, limit)), out=going)
        else:
            L.assign(still, going)
    return [i, L.array_length(words), L.tensor_array_to_tensor(words, axis=0)[0]]


#: After each word the next one; word 3 is the end, and from 1 nobody gets there.
FOLLOWING = np.array([4, 2, 1, 0, 5, 3], "int64")
CHAINS = {0: [0, 4, 5, 3], 5: [5, 3], 3: [3], 1: [1, 2, 1, 2, 1, 2]}


def test_a_loop_ends_at_its_condition_or_at_its_limit() -> None:
    net = build(lambda: follow_words(has_limit=True))
    feeds = [{"x": np.array([first]), "following": FOLLOWING} for first in CHAINS]
    for (steps, length, words), chain in zip(train(net, feeds), CHAINS.values(), strict=True):
        assert (steps.item(), length.item()) == (len(chain) - 1, len(chain))
        np.testing.assert_array_equal(words, chain)
    assert find_refused(net) == {"tensor_array_to_tensor": "the number of elements depends on values"}


def test_numpy_runs_a_loop_that_writes_an_array_without_a_known_bound() -> None:
    net = build(lambda: follow_words(has_limit=False))
    for first in (0, 5, 3):
        ((steps, length, words),) = train(net, [{"x": np.array([first]), "following": FOLLOWING}])
        assert (steps.item(), length.item()) == (len(CHAINS[first]) - 1, len(CHAINS[first]))
        np.testing.assert_array_equal(words, CHAINS[first])
    assert find_refused(net)["while"] == "the length of the array depends on values"


def test_loops_that_end_early_train_as_with_numpy() -> None:
    def make() -> Any:
        x = L.fc(fluid.data("x", [2, 3]), 3)
        i, limit = L.zeros([1], "int64"), L.fill_constant([1], "int64", 4)
        states = L.array_write(x, i)
        going = L.fill_constant([1], "bool", True)
        with L.While(going).block():
            new = L.fc(L.array_read(states, i), 3, act="tanh")
            i = L.increment(i)
            L.array_write(new, i, states)
            is_large = L.greater_than(L.reduce_max(L.abs(new)), L.fill_constant([1], "float32", 0.5))
            L.logical_and(L.less_than(i, limit), is_large, out=going)
        return L.mean(L.square(L.array_read(states, i)))

    rng = np.random.default_rng(4)
    feeds = [{"x": (rng.standard_normal((2, 3)) * size).astype("float32")} for size in (0.1, 9, 0.3, 3)]
    net, other = (build(make, lambda: fluid.optimizer.SGD(0.1)) for _ in range(2))
    # Another order of float32 sums.
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-5)
    assert find_refused(net) == {}


def test_beam_search_compiles_to_one_piece_and_finds_the_words_of_numpy() -> None:
    def make() -> list[Any]:
        start = L.fc(fluid.data("x", [None, 6]), 5)
        cell = L.GRUCell(5)
        decoder = L.BeamSearchDecoder(
            cell, 0, END, 3, lambda x: fluid.embedding(x, [9, 5], param_attr="e"),
            lambda x: L.fc(x, 9, num_flatten_dims=2, param_attr="w", bias_attr="b"),
        )  # fmt: skip
        words, _, lengths = L.dynamic_decode(decoder, inits=start, max_step_num=LIMIT, return_length=True)
        return [words, lengths]

    rng = np.random.default_rng(5)
    feeds = [{"x": rng.standard_normal((2, 6)).astype("float32") * 5} for _ in range(3)]
    net, other = build(make), build(make)
    for (ours, our_lengths), (words, lengths) in zip(
        train(net, feeds), train(other, feeds, "numpy"), strict=True
    ):
        np.testing.assert_array_equal(ours, words)
        np.testing.assert_array_equal(our_lengths, lengths)
    assert "while" not in find_refused(net)
