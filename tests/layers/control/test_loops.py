"""While and while_loop: values, gradients and misuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from tests.helpers.small_networks import number, run, x

layers = fluid.layers
pytestmark = pytest.mark.filterwarnings("ignore:layers.While, while_loop that overwrite")


def test_a_loop_carries_nested_structures_of_variables() -> None:
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


@pytest.mark.usefixtures("textbook")
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


@pytest.mark.usefixtures("textbook")
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


def test_a_condition_that_nothing_in_the_block_writes_is_an_error() -> None:
    i, limit = number(0), number(3)
    going = layers.less_than(i, limit)

    def build() -> None:
        with layers.While(going).block():
            layers.increment(i)
            layers.less_than(i, limit)  # a new variable

    with pytest.raises(GraphError, match=f"nothing in the block writes its condition '{going.name}'"):
        build()


def _less_than(i: Any, limit: Any, going: Any) -> None:
    layers.less_than(i, limit, cond=going)


def _assign(i: Any, limit: Any, going: Any) -> None:
    layers.assign(layers.less_than(i, limit), going)


def _logical_and(i: Any, limit: Any, going: Any) -> None:
    layers.logical_and(layers.less_than(i, limit), layers.less_than(i, limit), out=going)


def _switch(i: Any, limit: Any, going: Any) -> None:
    """Only a block inside of the block writes it."""
    with layers.Switch() as switch, switch.case(layers.greater_equal(i, limit)):
        layers.assign(layers.less_than(i, limit), going)


def _inner_loop(i: Any, limit: Any, going: Any) -> None:
    inner = layers.fill_constant([1], "bool", True)
    with layers.While(inner).block():
        layers.less_than(i, limit, cond=going)
        layers.assign(layers.fill_constant([1], "bool", False), inner)


def _py_func(i: Any, limit: Any, going: Any) -> None:
    layers.py_func(lambda i, limit: np.asarray(i) < np.asarray(limit), [i, limit], going)


def _array(i: Any, limit: Any, going: Any) -> None:
    place = layers.fill_constant([1], "int64", 0)
    array = layers.array_write(layers.less_than(i, limit), place)
    layers.assign(layers.array_read(array, place), going)


@pytest.mark.parametrize("write", [_less_than, _assign, _logical_and, _switch, _inner_loop, _py_func, _array])
def test_a_condition_may_be_written_in_every_way_that_fluid_has(write: Any) -> None:
    i, limit = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    going = layers.less_than(i, limit)
    with layers.While(going, is_test=True).block():
        layers.increment(i)
        write(i, limit, going)
    (found,) = fluid.Executor().run(fetch_list=[i])
    assert found == 3
