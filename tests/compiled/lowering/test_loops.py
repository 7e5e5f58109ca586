"""Loops and their gradients are compiled, and give what numpy's kernels give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import paddlelike as fluid
from paddlelike.errors import OperatorError
from tests.compiled.harness.nets import Net, build, train

pytestmark = pytest.mark.slow

L = fluid.layers
Feed = dict[str, Any]


def sgd() -> Any:
    return fluid.optimizer.SGD(0.1)


def refused_of(net: Net) -> dict[str, str]:
    engine = next(v for key, v in net.main.plans.items() if key[0] == "engine")
    return {engine.plan.steps[index].op.type: why for index, why in engine.refused.items()}


def make_sequences(rng: np.random.Generator, lengths: list[int]) -> Any:
    ids = rng.integers(0, 20, (sum(lengths), 1))
    return fluid.create_lod_tensor(ids, [lengths], fluid.CPUPlace())


def compare(make: Callable[[], Any], feeds: list[Feed]) -> Net:
    """Train with both; return the compiled network."""
    net, other = build(make, sgd), build(make, sgd)
    got, want = train(net, feeds), train(other, feeds, "numpy")
    # Another order of float32 sums.
    np.testing.assert_allclose([v[0] for v in got], [v[0] for v in want], rtol=1e-5)
    assert refused_of(net) == {}
    for parameter in net.main.all_parameters():
        ours, theirs = (np.array(n.scope.find_var(parameter.name).get_tensor()) for n in (net, other))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6, err_msg=parameter.name)
    return net


def loop_over_arrays() -> Any:
    """Return the loss of a loop that reads an array, and writes a memory."""
    rows = [L.fc(fluid.data(f"d{i}", [3, 4]), 4) for i in range(3)]
    i = L.zeros([1], "int64")
    memory = L.array_write(L.fc(rows[0], 4), i)
    data = None
    for row in rows:
        data = L.array_write(row, i, data)
        i = L.increment(i)
    step, end = L.zeros([1], "int64"), L.array_length(data)
    going = L.less_than(step, end)
    with L.While(going).block():
        both = [L.array_read(data, step), L.array_read(memory, step)]
        new = L.fc(both, 4, act="tanh")
        step = L.increment(step)
        L.array_write(new, step, memory)
        L.less_than(step, end, cond=going)
    all_steps, _ = L.tensor_array_to_tensor(memory, axis=0)
    return L.mean(L.square(L.array_read(memory, step))) + L.mean(L.square(all_steps))


def test_a_loop_over_arrays_trains_as_with_numpy() -> None:
    rng = np.random.default_rng(1)
    feeds = [{f"d{i}": rng.standard_normal((3, 4)).astype("float32") for i in range(3)} for _ in range(10)]
    compare(loop_over_arrays, feeds)


def language_model() -> Any:
    """Return the loss of a recurrent block over words, with dropout in it."""
    words, label = fluid.data("x", [4, 3, 1], "int64"), fluid.data("y", [12, 1], "int64")
    start = L.fill_constant([3, 6], "float32", 0.1)
    rnn = L.StaticRNN()
    with rnn.step():
        word = L.embedding(rnn.step_input(words), [20, 8])
        last = rnn.memory(init=start)
        new = L.fc([word, last], 6, act="tanh")
        rnn.update_memory(last, new)
        rnn.step_output(L.dropout(new, 0.4))
    return L.mean(L.softmax_with_cross_entropy(L.fc(L.reshape(rnn(), [-1, 6]), 20), label))


def make_language_feeds(count: int) -> list[Feed]:
    rng = np.random.default_rng(2)
    return [{"x": rng.integers(0, 20, (4, 3, 1)), "y": rng.integers(0, 20, (12, 1))} for _ in range(count)]


def test_dropout_in_a_recurrent_block_draws_the_same_mask_as_numpy_at_every_step() -> None:
    compare(language_model, make_language_feeds(10))


def test_a_wrong_id_inside_a_loop_is_an_error_and_changes_no_parameter() -> None:
    net = build(language_model, sgd)
    (feed,) = make_language_feeds(1)
    train(net, [feed])
    before = np.array(net.scope.find_var("embedding_0.w_0").get_tensor())
    wrong = feed["x"].copy()
    wrong[2, 1] = 20
    with pytest.raises(OperatorError, match=r"lookup_table.*Ids hold a value outside of 0 to 19"):
        train(net, [feed | {"x": wrong}])
    np.testing.assert_array_equal(np.array(net.scope.find_var("embedding_0.w_0").get_tensor()), before)


def tagger() -> Any:
    """Return the loss of a DynamicRNN with dropout in its block."""
    words, label = fluid.data("x", [None, 1], "int64", lod_level=1), fluid.data("y", [None, 1], "int64")
    rnn = L.DynamicRNN()
    with rnn.block():
        word = L.embedding(rnn.step_input(words), [20, 8])
        last = rnn.memory(shape=[6])
        new = L.dropout(L.fc([word, last], 6, act="tanh"), 0.4)
        rnn.update_memory(last, new)
        rnn.output(new)
    last = L.sequence_last_step(rnn())
    return L.mean(L.softmax_with_cross_entropy(L.fc(last, 4), label))


def test_sequences_of_unequal_lengths_train_with_dropout_at_every_step() -> None:
    rng = np.random.default_rng(3)
    batches = [[1, 5, 2, 5], [7, 1, 1, 4]]  # of one bucket
    feeds = [{"x": make_sequences(rng, each), "y": rng.integers(0, 4, (4, 1))} for each in batches]
    compare(tagger, feeds)


def translation() -> Any:
    """Return the loss of an encoder and a decoder with attention over the encoder's sequences."""
    src, trg, lab = (fluid.data(name, [None, 1], "int64", lod_level=1) for name in ("src", "trg", "lab"))
    words = L.embedding(src, [20, 8])
    forwards = L.dynamic_gru(L.fc(words, 18), 6)
    backwards = L.dynamic_gru(L.fc(words, 18), 6, is_reverse=True)
    encoded = L.concat([forwards, backwards], 1)
    keys = L.fc(encoded, 6, bias_attr=False)
    start = L.fc(L.sequence_pool(backwards, "first"), 6, act="tanh")
    targets = L.embedding(trg, [20, 8])
    rnn = L.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(targets)
        values, key = rnn.static_input(encoded), rnn.static_input(keys)
        state = rnn.memory(init=start, need_reorder=True)
        query = L.sequence_expand(L.fc(state, 6, bias_attr=False), key)
        weights = L.sequence_softmax(L.fc(L.tanh(key + query), 1, bias_attr=False))
        context = L.sequence_pool(L.elementwise_mul(values, L.reshape(weights, [-1]), axis=0), "sum")
        new, _, _ = L.gru_unit(L.fc([context, word], 18), state, 18)
        rnn.update_memory(state, new)
        rnn.output(L.fc(new, 20, act="softmax"))
    return L.mean(L.cross_entropy(rnn(), lab))


def test_machine_translation_with_attention_trains_as_with_numpy() -> None:
    rng = np.random.default_rng(4)
    feeds = []
    for sources, targets in [([1, 5, 3, 8], [4, 2, 7, 7]), ([6, 2, 6, 1], [3, 8, 1, 6])]:
        feeds.append({"src": make_sequences(rng, sources), "trg": make_sequences(rng, targets),
                      "lab": make_sequences(rng, targets)})  # fmt: skip
    compare(translation, feeds * 5)


def repeated_power(end: Any) -> Any:
    """Return the loss of a loop that overwrites a tensor."""
    x = L.fc(fluid.data("x", [2, 3]), 3)
    i = L.zeros([1], "int64")
    _, out = L.while_loop(lambda i, y: L.less_than(i, end), lambda i, y: [L.increment(i), y * x], [i, x])
    return L.mean(out)


@pytest.mark.parametrize("quirks", [True, False], ids=["as in Fluid", "textbook"])
def test_a_loop_that_overwrites_a_tensor_has_the_gradient_of_numpy(quirks: bool) -> None:
    fluid.set_flags({"FLAGS_fluid_quirks": quirks})
    feeds = [{"x": np.random.default_rng(i).standard_normal((2, 3)).astype("float32")} for i in range(3)]
    try:
        if quirks:
            with pytest.warns(fluid.errors.QuirkWarning):
                compare(lambda: repeated_power(L.fill_constant([1], "int64", 3)), feeds)
        else:
            compare(lambda: repeated_power(L.fill_constant([1], "int64", 3)), feeds)
    finally:
        fluid.set_flags({"FLAGS_fluid_quirks": True})


def test_the_gradient_of_a_loop_whose_steps_depend_on_values_runs_with_numpy_and_is_named() -> None:
    def make() -> Any:
        x = L.fc(fluid.data("x", [2, 3]), 3)
        i, total = L.zeros([1], "float32"), L.mean(x)
        memory = L.array_write(x, L.zeros([1], "int64"))
        going = L.less_than(i, total)
        with L.While(going).block():
            L.array_write(L.array_read(memory, L.zeros([1], "int64")) * 2.0, L.zeros([1], "int64"), memory)
            i = L.increment(i)
            L.less_than(i, total, cond=going)
        return L.mean(L.array_read(memory, L.zeros([1], "int64")))

    feeds = [{"x": np.full((2, 3), n, "float32")} for n in (1, 2)]
    net, other = build(make, sgd), build(make, sgd)
    np.testing.assert_allclose(train(net, feeds), train(other, feeds, "numpy"), rtol=1e-6)  # float32
    program = fluid.CompiledProgram(net.main).with_backend("jax")
    text = program.explain(feed=["x"], fetch_list=net.fetch)
    assert "numpy: while: the number of its steps depends on values" in text


# Blocks in blocks


def make_inputs() -> Any:
    return L.fc(fluid.data("x", [4, 3, 5]), 5, num_flatten_dims=2)


def branch_in_a_recurrent_block() -> Any:
    x, start = fluid.data("x", [4, 3, 5]), L.fill_constant([3, 6], "float32", 0.1)
    rnn = L.StaticRNN()
    with rnn.step():
        row = rnn.step_input(x)
        last = rnn.memory(init=start)
        new = L.fc([row, last], 6, act="tanh")
        is_low = L.less_than(L.reduce_sum(row), L.fill_constant([1], "float32", 0.0))
        chosen = L.cond(is_low, lambda: L.scale(new, 2.0), lambda: L.fc(new, 6))
        rnn.update_memory(last, chosen)
        rnn.step_output(chosen)
    return L.mean(L.square(rnn()))


def loop_in_a_loop() -> Any:
    i, end = L.zeros([1], "int64"), L.fill_constant([1], "int64", 3)
    outer = L.array_write(L.reduce_mean(make_inputs(), dim=0), i)
    going = L.less_than(i, end)
    with L.While(going).block():
        j, inner_end = L.zeros([1], "int64"), L.fill_constant([1], "int64", 2)
        inner = L.array_write(L.array_read(outer, i), j)
        goes_on = L.less_than(j, inner_end)
        with L.While(goes_on).block():
            new = L.fc(L.array_read(inner, j), 5, act="tanh", param_attr="w1", bias_attr="b1")
            j = L.increment(j)
            L.array_write(new, j, inner)
            L.less_than(j, inner_end, cond=goes_on)
        i = L.increment(i)
        L.array_write(L.array_read(inner, j), i, outer)
        L.less_than(i, end, cond=going)
    return L.mean(L.square(L.array_read(outer, i)))


def sparse_rows_in_a_recurrent_block() -> Any:
    ids = L.cast(L.floor(L.abs(fluid.data("x", [4, 3, 5]))), "int64")
    start = L.fill_constant([3, 6], "float32", 0.1)
    rnn = L.StaticRNN()
    with rnn.step():
        word = L.reduce_sum(
            L.embedding(L.unsqueeze(rnn.step_input(ids), [2]), [20, 6], is_sparse=True), dim=1
        )
        last = rnn.memory(init=start)
        new = L.tanh(word + last)
        rnn.update_memory(last, new)
        rnn.step_output(new)
    return L.mean(L.square(rnn()))


def one_of_three_branches() -> Any:
    x = make_inputs()
    total = L.reduce_sum(x)
    low, high = (L.fill_constant([1], "float32", n) for n in (-1.0, 1.0))
    branches = [(L.less_than(total, low), lambda: x * 2.0), (L.less_than(total, high), lambda: x * 3.0)]
    out = L.case(branches, default=lambda: L.fc(x, 5, num_flatten_dims=2))
    return L.mean(L.square(out))


NESTED = [
    branch_in_a_recurrent_block, loop_in_a_loop, sparse_rows_in_a_recurrent_block, one_of_three_branches
]  # fmt: skip


@pytest.mark.parametrize("make", NESTED, ids=lambda make: make.__name__)
def test_nested_blocks_train_as_with_numpy(make: Callable[[], Any]) -> None:
    rng = np.random.default_rng(6)
    compare(make, [{"x": rng.standard_normal((4, 3, 5)).astype("float32") * 2} for _ in range(4)])


def test_lazy_updates_touch_the_rows_of_the_batch_only() -> None:
    def make() -> Any:
        words = fluid.data("x", [None, 1], "int64", lod_level=1)
        rnn = L.DynamicRNN()
        with rnn.block():
            word = L.embedding(rnn.step_input(words), [20, 6], is_sparse=True, param_attr="inner")
            last = rnn.memory(shape=[6])
            new = L.tanh(word + last)
            rnn.update_memory(last, new)
            rnn.output(new)
        whole = L.sequence_pool(L.embedding(words, [20, 6], is_sparse=True, param_attr="outer"), "sum")
        return L.mean(L.square(L.sequence_last_step(rnn()))) + L.mean(L.square(whole))

    rng = np.random.default_rng(8)
    with pytest.warns(fluid.errors.QuirkWarning):
        net, other = (build(make, lambda: fluid.optimizer.Adam(0.1, lazy_mode=True)) for _ in range(2))
    feeds = [{"x": make_sequences(rng, lengths)} for lengths in ([2, 5, 1], [3, 3, 2], [5, 1, 1])]
    train(net, feeds[:1])
    # Unused places of a batch name one of its rows: none else moves, as the moments of Adam would.
    moved = np.array(net.scope.find_var("outer_moment1_0").get_tensor()).any(1)
    assert set(np.flatnonzero(moved)) == set(np.array(feeds[0]["x"]).reshape(-1))
    train(net, feeds[1:])
    train(other, feeds, "numpy")
    for name in ("inner", "outer"):
        ours, theirs = (np.array(n.scope.find_var(name).get_tensor()) for n in (net, other))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6, err_msg=name)  # float32 sums
