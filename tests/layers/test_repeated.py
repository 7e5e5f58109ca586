"""Loops, branches, repeated networks, cells, decoders: misuse, and what no golden program shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError, OperatorError

layers = fluid.layers


def run(fetches: list[Any], feed: Any = None) -> list[Any]:
    exe = fluid.Executor(fluid.CPUPlace())
    if fluid.default_startup_program().global_block().ops:
        exe.run(fluid.default_startup_program())
    return exe.run(fluid.default_main_program(), feed=feed, fetch_list=fetches)


def number(value: int) -> Any:
    return layers.fill_constant([1], "int64", value)


def x(*shape: int | None) -> Any:
    return fluid.data("x", [*shape], "float32")


# Loops


def test_a_loop_over_a_nest_of_variables() -> None:
    def body(i: Any, nest: Any) -> Any:
        return [i + 1, {"sum": nest["sum"] + i, "twice": [nest["twice"][0] * 2]}]

    nest = {"sum": number(0), "twice": [number(1)]}
    i, nest = layers.while_loop(lambda i, nest: i < number(4), body, [number(0), nest])
    got = run([i, nest["sum"], nest["twice"][0]])
    assert [value.tolist() for value in got] == [[4], [6], [16]]


def test_a_loop_that_never_runs_gives_zero_gradients() -> None:
    i, n = number(5), number(5)
    state = layers.fc(x(None, 3), 3)
    i, state = layers.while_loop(lambda i, s: i < n, lambda i, s: [i + 1, layers.fc(s, 3)], [i, state])
    pairs = {p.name: g for p, g in fluid.backward.append_backward(layers.mean(state))}
    outer, inner = run([pairs["fc_0.b_0"], pairs["fc_1.b_0"]], {"x": np.ones((2, 3), "float32")})
    np.testing.assert_allclose(outer, np.full(3, 1 / 3), rtol=1e-6)  # float32
    assert inner.tolist() == [0, 0, 0]


def test_a_variable_of_a_loop_keeps_its_last_value_through_training() -> None:
    """Although gradients of what came before the loop saw its first one."""
    state = layers.exp(
        layers.create_parameter([1], "float32", default_initializer=fluid.initializer.Constant(0.0))
    )
    _, state = layers.while_loop(
        lambda i, s: i < number(3), lambda i, s: [i + 1, s * 2.0], [number(0), state]
    )
    fluid.optimizer.SGD(0.1).minimize(layers.reduce_sum(state))
    assert run([state])[0].tolist() == [8]


def test_sparse_gradients_of_a_loop_add_up() -> None:
    ids = fluid.data("ids", [None], "int64")
    total = layers.fill_constant([1], "float32", 0.0)
    total.stop_gradient = False
    attr = fluid.ParamAttr(name="table", initializer=fluid.initializer.Constant(1.0))

    def body(i: Any, total: Any) -> Any:
        rows = fluid.embedding(ids, size=[4, 2], is_sparse=True, param_attr=attr)
        return [i + 1, total + layers.reduce_sum(rows)]

    _, total = layers.while_loop(lambda i, t: i < number(3), body, [number(0), total])
    fluid.optimizer.SGD(1.0).minimize(total)
    run([total], {"ids": np.array([1, 1, 3], "int64")})
    table = np.array(fluid.global_scope().find_var("table").get_tensor())
    np.testing.assert_array_equal(table, [[1, 1], [-5, -5], [1, 1], [-2, -2]])


def test_a_loop_in_a_loop_has_gradients() -> None:
    weight = layers.create_parameter([1], "float32", default_initializer=fluid.initializer.Constant(1.5))

    def inner(s: Any) -> Any:
        return layers.while_loop(
            lambda j, s: j < number(2), lambda j, s: [j + 1, s * weight], [number(0), s]
        )[1]

    start = layers.fill_constant([1], "float32", 2.0)
    start.stop_gradient = False
    state = layers.assign(start)
    _, state = layers.while_loop(
        lambda i, s: i < number(3), lambda i, s: [i + 1, inner(s + 0.0)], [number(0), state]
    )
    ((_, gradient),) = fluid.backward.append_backward(layers.reduce_sum(state))
    value, got = run([state, gradient])
    np.testing.assert_allclose(value, [2 * 1.5**6], rtol=1e-6)  # float32
    np.testing.assert_allclose(got, [2 * 6 * 1.5**5], rtol=1e-6)  # float32


def test_a_condition_of_a_loop_is_one_bool() -> None:
    with pytest.raises(TypeError, match="BOOL"):
        layers.While(number(0))
    with pytest.raises(TypeError, match="one bool"):
        layers.While(layers.fill_constant([2], "bool", True))


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


def test_a_branch_without_results() -> None:
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    seven = layers.fill_constant([1], "float32", 7.0)

    def write() -> None:
        layers.assign(seven, out)

    assert layers.cond(number(1) < number(2), write) is None
    assert run([out])[0].tolist() == [7]


def test_a_loss_inside_a_branch_is_refused() -> None:
    hidden = layers.fc(x(2, 3), 3)

    def train() -> Any:
        loss = layers.mean(hidden)
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss

    with pytest.raises(GraphError, match="inside a block of control flow"):
        layers.cond(number(0) < number(1), train, train)


# Branches by row


def test_if_else_needs_outputs_of_both_blocks() -> None:
    rows = x(None, 1)
    branches = layers.IfElse(rows > layers.zeros_like(rows))
    with pytest.raises(GraphError, match="inside"):
        branches.input(rows)
    with pytest.raises(GraphError, match="no output"), branches.true_block():
        pass
    with pytest.raises(GraphError, match="build its true_block"):
        branches()


@pytest.mark.parametrize("values", [[1, -2, 3], [1, 2], [-1]], ids=str)
def test_if_else_puts_rows_back_in_order(values: list[int]) -> None:
    rows = x(None, 1)
    zero = layers.fill_constant_batch_size_like(rows, [-1, 1], "float32", 0.0)
    branches = layers.IfElse(rows > zero)
    with branches.true_block():
        branches.output(branches.input(rows) * 10.0)
    with branches.false_block():
        branches.output(branches.input(rows) * -1.0)
    (got,) = run(branches(), {"x": np.array(values, "float32")[:, None]})
    assert got.ravel().tolist() == [10 * v if v > 0 else -v for v in values]


# Repeated networks


def test_static_rnn_misuse() -> None:
    rnn = layers.StaticRNN()
    with pytest.raises(GraphError, match="inside"):
        rnn.step_input(x(3, 2, 4))
    with pytest.raises(GraphError, match="after"):
        rnn()
    with pytest.raises(GraphError, match="never updated"):
        _remembering(rnn)


def _remembering(rnn: Any) -> None:
    with rnn.step():
        rnn.memory(shape=[-1, 4], batch_ref=rnn.step_input(fluid.data("y", [3, 2, 4])))


def test_static_rnn_of_inputs_of_two_lengths() -> None:
    rnn = layers.StaticRNN()
    three, five = (fluid.data(f"x{steps}", [steps, 2, 4]) for steps in (3, 5))
    with rnn.step():
        rnn.step_output(rnn.step_input(three))
        with pytest.raises(GraphError, match="5 steps"):
            rnn.step_input(five)


def test_static_rnn_of_inputs_that_differ_when_they_are_fed() -> None:
    rnn = layers.StaticRNN()
    one, two = (fluid.data(name, [None, 2], "float32") for name in "ab")
    with rnn.step():
        rnn.step_output(rnn.step_input(one) + rnn.step_input(two))
    with pytest.raises(OperatorError, match=r"one number of steps .*'a': 3, 'b': 2"):
        run([rnn()], {"a": np.zeros((3, 2), "float32"), "b": np.zeros((2, 2), "float32")})


def test_dynamic_rnn_misuse() -> None:
    rnn = layers.DynamicRNN()
    with pytest.raises(GraphError, match="inside"):
        rnn.step_input(x(None, 2))
    with pytest.raises(GraphError, match="after"):
        rnn()
    with pytest.raises(GraphError, match="call step_input first"), rnn.block():
        rnn.memory(shape=[2])
    with pytest.raises(GraphError, match="no step input"), layers.DynamicRNN().block():
        pass


def test_dynamic_rnn_sums_sequences() -> None:
    words = fluid.data("words", [None, 1], "float32", lod_level=1)
    rnn = layers.DynamicRNN()
    with rnn.block():
        word = rnn.step_input(words)
        total = rnn.memory(shape=[1])
        rnn.update_memory(total, total + word)
        rnn.output(total + word)
    fed = fluid.create_lod_tensor(np.arange(7, dtype="float32")[:, None], [[2, 4, 1]], fluid.CPUPlace())
    exe = fluid.Executor(fluid.CPUPlace())
    (got,) = exe.run(feed={"words": fed}, fetch_list=[rnn()], return_numpy=False)
    assert got.lod() == [[0, 2, 6, 7]]
    assert np.array(got).ravel().tolist() == [0, 1, 2, 5, 9, 14, 6]


# Cells and decoders


class Adder(layers.RNNCell):  # type: ignore[misc]
    """Adds its inputs up."""

    def call(self, inputs: Any, states: Any) -> Any:
        total = inputs + states
        return total, total

    @property
    def state_shape(self) -> list[int]:
        return [2]


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("time_major", [False, True], ids=["batch-first", "time-first"])
def test_a_cell_of_a_script(reverse: bool, time_major: bool) -> None:
    values = np.arange(12, dtype="float32").reshape(2, 3, 2)
    fed = values.swapaxes(0, 1) if time_major else values
    outs, last = layers.rnn(
        Adder(), fluid.data("x", list(fed.shape)), time_major=time_major, is_reverse=reverse
    )
    got, state = run([outs, last], {"x": np.ascontiguousarray(fed)})
    sums = values[:, ::-1].cumsum(1)[:, ::-1] if reverse else values.cumsum(1)
    np.testing.assert_array_equal(got.swapaxes(0, 1) if time_major else got, sums)
    np.testing.assert_array_equal(state, values.sum(1))


def test_sequences_stop_at_their_length() -> None:
    values = np.ones((2, 3, 2), "float32")
    lengths = layers.assign(np.array([1, 3], "int32"))
    _, last = layers.rnn(Adder(), x(2, 3, 2), sequence_length=lengths)
    assert run([last], {"x": values})[0].tolist() == [[1, 1], [3, 3]]


def test_names_of_given_attributes() -> None:
    cell = layers.GRUCell(4, param_attr=fluid.ParamAttr(name="w"), bias_attr=fluid.ParamAttr(name="b"))
    data = x(None, 3)
    cell(data, cell.get_initial_states(data))
    cell(data, cell.get_initial_states(data))  # the same parameters again
    names = sorted(p.name for p in fluid.default_main_program().all_parameters())
    assert names == ["b_candidate", "b_gate", "w_candidate", "w_gate"]


def test_rows_tiled_for_beams() -> None:
    values = np.arange(6, dtype="float32").reshape(2, 3)
    out = layers.BeamSearchDecoder.tile_beam_merge_with_batch(x(2, 3), 2)
    np.testing.assert_array_equal(run([out], {"x": values})[0], values.repeat(2, 0))


def test_decoding_in_test_mode_gives_the_same() -> None:
    state = x(None, 4)
    cell = layers.GRUCell(4)

    def ids(is_test: bool) -> Any:
        def embedded(ids: Any) -> Any:
            return fluid.embedding(ids, size=[5, 3], param_attr=fluid.ParamAttr(name="words"))

        def scored(out: Any) -> Any:
            return layers.fc(out, 5, param_attr=fluid.ParamAttr(name="scores"), bias_attr=False)

        start = layers.fill_constant_batch_size_like(state, [-1], "int64", 0)
        helper = layers.GreedyEmbeddingHelper(embedded, start, end_token=1)
        decoder = layers.BasicDecoder(cell, helper, scored)
        return layers.dynamic_decode(decoder, state, max_step_num=5, is_test=is_test)[0].sample_ids

    one, other = run([ids(False), ids(True)], {"x": np.ones((2, 4), "float32")})
    np.testing.assert_array_equal(one, other)


def test_what_a_subclass_must_give() -> None:
    for call in (
        lambda: layers.RNNCell().call(None, None),
        lambda: layers.Decoder().initialize(None),
        lambda: layers.DecodeHelper().initialize(),
    ):
        with pytest.raises(NotImplementedError, match="must define"):
            call()
