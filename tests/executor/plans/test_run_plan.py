"""Plans are made once per program, feeds and fetches, and made anew when the program changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import NotInitializedError
from paddlelike.framework.opdef import registry
from tests.helpers.fresh import fresh_programs

FEED = {"x": np.ones((2, 4), "float32")}


def network() -> Any:
    return fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 3))


def plans() -> list[Any]:
    return list(fluid.default_main_program().plans.values())


def test_a_plan_serves_all_runs_and_executors(exe: fluid.Executor) -> None:
    loss = network()
    exe.run(fluid.default_startup_program())
    exe.run(feed=FEED, fetch_list=[loss])
    (first,) = plans()
    exe.run(feed={"x": np.ones((7, 4), "float32")}, fetch_list=[loss.name], return_numpy=False)
    fluid.Executor().run(feed=FEED, fetch_list=loss, scope=fluid.global_scope())
    (second,) = plans()
    assert first is second


def test_each_choice_of_fetches_and_feeds_has_its_own_plan(exe: fluid.Executor) -> None:
    loss = network()
    exe.run(fluid.default_startup_program())
    exe.run(feed=FEED, fetch_list=[loss])
    exe.run(feed=FEED, fetch_list=["fc_0.tmp_0"])
    with pytest.warns(UserWarning, match="'surplus' is not found"):
        exe.run(feed={**FEED, "surplus": FEED["x"]}, fetch_list=[loss])
    exe.run(feed=FEED, fetch_list=[loss], use_prune=True)
    assert len(plans()) == 4


def test_a_compiled_program_is_pruned_too(exe: fluid.Executor) -> None:
    x, y = fluid.data("x", [None, 2]), fluid.data("y", [None, 2])
    first, _ = fluid.layers.scale(x, 2.0), fluid.layers.scale(y, 2.0)
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    feed = {"x": np.ones((1, 2), "float32")}
    with pytest.raises(NotInitializedError, match="reads 'y'"):
        exe.run(compiled, feed=feed, fetch_list=[first])
    (got,) = exe.run(compiled, feed=feed, fetch_list=[first], use_prune=True)
    assert got.tolist() == [[2.0, 2.0]]


def test_feeds_with_other_names_get_a_new_plan(exe: fluid.Executor) -> None:
    fluid.data("x", [1])
    p = fluid.layers.create_global_var([1], 3.0, "float32", persistable=True, name="p")
    out = fluid.layers.scale(p, 2.0)
    exe.run(fluid.default_startup_program())
    one = np.ones(1, "float32")
    assert [exe.run(feed={name: one}, fetch_list=[out])[0][0] for name in ("x", "p")] == [6.0, 2.0]


def test_temporaries_of_an_operator_stay_out_of_the_scope(
    exe: fluid.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = fluid.layers.scale(fluid.data("x", [1]), 2.0)
    out.persistable = True
    monkeypatch.setattr(registry.find("scale"), "temporaries", lambda op: {out.name})
    assert exe.run(feed={"x": np.ones(1, "float32")}, fetch_list=[out])[0] == 2
    assert fluid.global_scope().find_var(out.name) is None


CHANGES = {
    "operator": lambda main: fluid.layers.scale(main.global_block().var("x"), 2.0),
    "attribute": lambda main: main.global_block().ops[0]._set_attr("x_num_col_dims", 1),
    "removed": lambda main: main.global_block()._remove_op(len(main.global_block().ops) - 1),
    "variable": lambda main: main.global_block().create_var(name="v"),
    "persistable": lambda main: setattr(main.global_block().var("fc_0.tmp_0"), "persistable", True),
    "described": lambda main: main.global_block().var("fc_0.tmp_0").desc.set_persistable(True),
    "input": lambda main: main.global_block().ops[0]._rename_input("nobody", "else"),
    "name": lambda main: main.global_block()._rename_var("fc_0.tmp_0", "other"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_program_is_planned_again(exe: fluid.Executor, change: str) -> None:
    network()
    exe.run(fluid.default_startup_program())
    exe.run(feed=FEED)
    (first,) = plans()
    CHANGES[change](fluid.default_main_program())
    exe.run(feed=FEED)
    (second,) = plans()
    assert first is not second


def test_a_variable_that_becomes_persistable_keeps_its_value_from_then_on(exe: fluid.Executor) -> None:
    loss = network()
    exe.run(fluid.default_startup_program())
    exe.run(feed=FEED)
    assert fluid.global_scope().find_var(loss.name) is None
    loss.persistable = True
    exe.run(feed=FEED)
    assert fluid.global_scope().find_var(loss.name).get_tensor().shape() == [1]


def test_a_copy_of_a_program_does_not_share_plans(exe: fluid.Executor) -> None:
    loss = network()
    exe.run(fluid.default_startup_program())
    exe.run(feed=FEED, fetch_list=[loss])
    assert not fluid.default_main_program().clone().plans


def test_a_refused_run_leaves_no_plan(exe: fluid.Executor) -> None:
    network()
    with pytest.raises(fluid.core.EnforceNotMet, match="nobody"):
        exe.run(feed=FEED, fetch_list=["nobody"])
    assert not plans()


def test_a_scope_may_change_between_runs(exe: fluid.Executor) -> None:
    loss = network()
    scopes = fluid.Scope(), fluid.Scope()
    for scope, number in zip(scopes, (1.0, 2.0), strict=True):
        exe.run(fluid.default_startup_program(), scope=scope)
        scope.find_var("fc_0.w_0").get_tensor().set(np.full((4, 3), number, "float32"))
    found = [exe.run(feed=FEED, fetch_list=[loss], scope=s)[0][0] for s in (*scopes, scopes[0])]
    assert found == [4.0, 8.0, 4.0]


def test_a_child_scope_sees_the_parameters_of_its_parent(exe: fluid.Executor) -> None:
    loss = network()
    exe.run(fluid.default_startup_program())
    child = fluid.global_scope().new_scope()
    exe.run(feed=FEED, fetch_list=[loss], scope=child)
    assert child.local_var_names() == []


def test_a_sub_block_reads_and_writes_the_persistables_around_it() -> None:
    """Programs of parameter servers declare what a schedule's branches use once more in those."""
    total = fluid.layers.create_global_var([1], 1.0, "float32", persistable=True, name="total")
    doubled = total * 2.0
    doubled.persistable = True  # computed in this run: the scope holds nothing before it
    yes = fluid.layers.fill_constant([1], "bool", True)
    with fluid.layers.control_flow.ConditionalBlock([yes], is_scalar_condition=True).block():
        fluid.layers.assign(doubled, total)
    main = fluid.default_main_program()
    for var in (total, doubled):
        main.blocks[1]._clone_variable(var)
    after = total + 0.5
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(fluid.default_startup_program(), scope=scope)
    assert exe.run(main, fetch_list=[after], scope=scope) == [[2.5]]
    assert np.array(scope.find_var("total").get_tensor()) == [2.0]


L = fluid.layers


@pytest.mark.parametrize("shape", [[-1, 2, 2], [-1, 1, 4]], ids=str)  # the second could be broadcast
@pytest.mark.parametrize("name", ["relu", "tanh", "leaky_relu", "sigmoid", "exp"])
def test_an_in_place_reshape_has_the_gradient_of_a_copy(name: str, shape: list[int]) -> None:
    assert train(name, shape, inplace=True) == train(name, shape, inplace=False)


def test_a_layer_that_reads_a_value_before_it_is_overwritten_gets_its_gradient() -> None:
    assert train("square", [-1, 2, 2], inplace=True) == train("square", [-1, 2, 2], inplace=False)


def train(name: str, shape: list[int], *, inplace: bool) -> bytes:
    """Return the gradient of a weight before an activation, the bits."""
    with fresh_programs() as (main, startup):
        startup.random_seed = 3
        hidden: Any = L.fc(fluid.data("x", [None, 4]), 4, param_attr="w")
        value = hidden if name == "square" else getattr(L, name)(hidden)
        read = L.square(hidden)
        loss = L.mean(L.tanh(L.reshape(value, shape, inplace=inplace))) + L.mean(read)
        fluid.backward.append_backward(loss)
        exe = fluid.Executor()
        exe.run(startup)
        feed = {"x": np.linspace(-1, 1, 12).reshape(3, 4).astype("float32")}
        (grad,) = exe.run(main, feed=feed, fetch_list=["w@GRAD"])
    return np.asarray(grad).tobytes()
