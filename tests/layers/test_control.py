"""Loops, branches and counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError, OperatorError
from paddlelike.layers.control.sub_blocks import ConditionalBlock
from tests.helpers.small_networks import number, run, x

layers = fluid.layers


def chosen(value: float) -> Any:
    return layers.fill_constant([1], "float32", value)


@pytest.mark.parametrize(("step", "wanted"), [(0, 10.0), (4, 10.0), (5, 20.0), (9, 20.0), (10, 30.0)])
def test_the_first_case_that_holds_is_run(step: int, wanted: float) -> None:
    x = fluid.data("step", [1], "float32")
    out = layers.create_global_var([1], -1.0, "float32", persistable=True, name="out")
    with layers.Switch() as switch:
        with switch.case(x < 5.0):
            layers.assign(chosen(10.0), out)
        with switch.case(x < 10.0):
            layers.assign(chosen(20.0), out)
        with switch.default():
            layers.assign(chosen(30.0), out)
    assert run(out, step=np.array([step], "float32")) == [wanted]


def test_case_without_a_default_may_run_no_branch() -> None:
    x = fluid.data("step", [1], "float32")
    out = layers.create_global_var([1], -1.0, "float32", persistable=True, name="out")
    with layers.Switch() as switch, switch.case(x < 5.0):
        layers.assign(chosen(10.0), out)
    assert run(out, step=np.array([7], "float32")) == [-1.0]


def test_cond_returns_none_for_branches_without_results() -> None:
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    seven = layers.fill_constant([1], "float32", 7.0)

    def write() -> None:
        layers.assign(seven, out)

    assert layers.cond(number(1) < number(2), write) is None
    assert run([out])[0].tolist() == [7]


def test_minimize_inside_a_branch_updates_only_when_the_branch_runs() -> None:
    hidden = layers.fc(x(2, 3), 3)
    losses = []

    def compute() -> Any:
        losses.append(layers.mean(hidden))
        return losses[-1]

    layers.cond(number(0) < number(1), compute, compute)
    with pytest.raises(GraphError, match="inside a block of control flow"):
        fluid.optimizer.SGD(0.1).minimize(losses[0])
    running = number(0) < number(1)
    with pytest.raises(GraphError, match="minimized inside of the loop"), layers.While(running).block():
        fluid.optimizer.SGD(0.1).minimize(layers.mean(hidden))


def test_misuse_of_a_switch_is_refused() -> None:
    x = fluid.data("x", [1], "float32")
    with pytest.raises(GraphError, match="inside"), layers.Switch().case(x < 1.0):
        pass
    with layers.Switch() as switch:
        with pytest.raises(GraphError, match="after at least one case"), switch.default():
            pass
        with pytest.raises(TypeError, match="BOOL"), switch.case(x):
            pass


def test_if_else_requires_outputs_of_both_blocks() -> None:
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


pytestmark = pytest.mark.filterwarnings("ignore:layers.While, while_loop that overwrite")


def test_a_loop_carries_nested_structures_of_variables() -> None:
    def body(i: Any, nest: Any) -> Any:
        return [i + 1, {"sum": nest["sum"] + i, "twice": [nest["twice"][0] * 2]}]

    nest = {"sum": number(0), "twice": [number(1)]}
    i, nest = layers.while_loop(lambda i, nest: i < number(4), body, [number(0), nest])
    got = run([i, nest["sum"], nest["twice"][0]])
    assert [value.tolist() for value in got] == [[4], [6], [16]]


def test_a_loop_without_iterations_gives_zero_gradients() -> None:
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
def test_sparse_gradients_of_the_steps_of_a_loop_are_summed() -> None:
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


def test_a_loop_condition_must_be_a_single_bool() -> None:
    with pytest.raises(TypeError, match="BOOL"):
        layers.While(number(0))
    with pytest.raises(TypeError, match="one bool"):
        layers.While(layers.fill_constant([2], "bool", True))


def test_a_loop_that_never_changes_its_condition_is_refused() -> None:
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
def test_every_kind_of_update_of_a_loop_condition_is_accepted(write: Any) -> None:
    i, limit = layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    going = layers.less_than(i, limit)
    with layers.While(going, is_test=True).block():
        layers.increment(i)
        write(i, limit, going)
    (found,) = fluid.Executor().run(fetch_list=[i])
    assert found == 3


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
        (lambda i: layers.switch_case(i, [(1, lambda: i), (1, lambda: i)]), GraphError, "different ones"),
        (lambda i: layers.array_read(i, i), TypeError, "expected an array"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)  # fmt: skip
def test_misuse_of_while_is_refused(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
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


def test_step_counter_counts_runs() -> None:
    counter = layers.autoincreased_step_counter(begin=5, step=2)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    # The first value is begin - 1 + step, as in Fluid.
    assert [int(exe.run(fetch_list=[counter])[0][0]) for _ in range(3)] == [6, 8, 10]


@pytest.mark.parametrize(("rows", "wanted"), [(2, 1.0), (0, -1.0)])
def test_a_conditional_block_runs_if_no_input_is_empty(rows: int, wanted: float) -> None:
    x = fluid.data("x", [None, 3], "float32")
    out = layers.create_global_var([1], -1.0, "float32", persistable=True, name="out")
    with ConditionalBlock([x]).block():
        layers.assign(chosen(1.0), out)
    assert run(out, x=np.zeros((rows, 3), "float32")) == [wanted]


def test_a_block_operator_lists_its_inputs_and_outputs() -> None:
    x = fluid.data("x", [1], "float32")
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    with layers.Switch() as switch, switch.case(x < 5.0):
        doubled = x * 2.0
        layers.assign(doubled + out, out)
    op = fluid.default_main_program().global_block().ops[-1]
    assert op.type == "conditional_block"
    assert op.input("Input") == ["x", "out"]
    assert op.output("Out") == ["out"]
    assert op.sub_blocks() == [1]


def test_conditional_blocks_can_be_nested() -> None:
    x = fluid.data("x", [1], "float32")
    out = layers.create_global_var([1], 0.0, "float32", persistable=True, name="out")
    with layers.Switch() as outer, outer.case(x < 5.0), layers.Switch() as inner, inner.case(x < 3.0):
        layers.assign(x * 2.0, out)
    op = fluid.default_main_program().global_block().ops[-1]
    assert (op.input("Input"), op.output("Out")) == (["x"], ["out"])
    assert run(out, x=np.array([2], "float32")) == [4.0]
    assert run(out, x=np.array([4], "float32")) == [0.0]


def test_a_branch_condition_must_be_a_single_bool() -> None:
    x = fluid.data("x", [2], "float32")
    with layers.Switch() as switch, switch.case(x < 1.0):
        layers.assign(x, layers.create_global_var([2], 0.0, "float32", name="out"))
    with pytest.raises(OperatorError, match="condition must be one bool"):
        run("out", x=np.zeros(2, "float32"))


Body = Callable[[fluid.Variable, fluid.Variable, fluid.Variable], object]
FIXED: dict[str, Body] = {
    "nothing is counted": lambda i, n, going: layers.less_than(i, n, cond=going),
    "the count goes elsewhere": lambda i, n, going: (
        layers.increment(i, in_place=False),
        layers.less_than(i, n, cond=going),
    ),
    "another variable is counted": lambda i, n, going: (
        layers.increment(layers.fill_constant([1], "int64", 0)),
        layers.less_than(i, n, cond=going),
    ),
}
CHANGED: dict[str, Body] = {
    "the index": lambda i, n, going: (layers.increment(i), layers.less_than(i, n, cond=going)),
    "the limit": lambda i, n, going: (layers.increment(n, -1), layers.less_than(i, n, cond=going)),
    "one pass": lambda i, n, going: layers.assign(layers.fill_constant([1], "bool", False), going),
    "random numbers": lambda i, n, going: layers.less_than(
        layers.uniform_random([1]), chosen(0.3), cond=going
    ),
    "a branch": lambda i, n, going: (
        layers.assign(layers.cond(i < n, lambda: i + 1, lambda: i + 2), i),
        layers.less_than(i, n, cond=going),
    ),
}


def build_loop(body: Body) -> fluid.Variable:
    i, n = (layers.fill_constant([1], "int64", value) for value in (0, 3))
    going = layers.less_than(i, n)
    with layers.While(going).block():
        body(i, n, going)
    return i


@pytest.mark.parametrize("body", FIXED.values(), ids=FIXED)
def test_a_loop_whose_condition_cannot_change_is_reported(body: Body) -> None:
    with pytest.warns(
        UserWarning, match=r"ends after its first pass or never\. Change one of them.*increment"
    ):
        build_loop(body)


@pytest.mark.parametrize("body", CHANGED.values(), ids=CHANGED)
def test_a_loop_whose_condition_may_change_is_not_reported(body: Body) -> None:
    run(build_loop(body))


def test_the_advice_for_a_loop_without_a_counter_works() -> None:
    with fluid.program_guard(fluid.Program()), pytest.warns(UserWarning, match=r"layers\.increment\(i\)"):
        build_loop(FIXED["nothing is counted"])
    assert run(build_loop(CHANGED["the index"])) == [3]
