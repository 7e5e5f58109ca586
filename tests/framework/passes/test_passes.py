"""Copies of programs, and their views as graphs."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import GraphError
from paddlelike.framework.passes.clone import prune
from tests.helpers.canonical import canonical

L = fluid.layers


def types(program: fluid.Program) -> list[str]:
    return [op.type for op in program.global_block().ops]


def test_a_copy_of_a_program_shares_no_objects_with_it(main: fluid.Program) -> None:
    before = canonical(main)
    copy = main.clone()
    assert canonical(copy) == before
    block = copy.global_block()
    block.ops[0]._set_attr("x_num_col_dims", 2)
    block.ops[1].inputs["X"].append("more")
    block.var("x").shape = (7, 7)
    block._remove_op(3)
    with fluid.program_guard(copy):
        L.scale(block.var("x"), 2.0)
    assert canonical(main) == before
    assert all(v.block.program is copy for v in copy.list_vars())
    assert all(op.block is block for op in block.ops)


def test_a_copy_keeps_parameters_and_their_options() -> None:
    regularizer = fluid.regularizer.L2Decay(0.1)
    attr = fluid.ParamAttr("w", learning_rate=0.5, regularizer=regularizer, trainable=False)
    L.fc(fluid.data("x", [None, 4]), 3, param_attr=attr, bias_attr=False)
    (weight,) = fluid.default_main_program().clone().all_parameters()
    assert weight.optimize_attr == {"learning_rate": 0.5}
    assert (weight.trainable, weight.regularizer) == (False, regularizer)


def test_a_copy_for_test_drops_training_with_its_variables(main: fluid.Program) -> None:
    test = main.clone(for_test=True)
    assert types(test) == [
        "mul", "elementwise_add", "relu", "dropout", "mul", "elementwise_add", "softmax",
        "cross_entropy2", "mean",
    ]  # fmt: skip
    assert test.global_block().ops[3].attr("is_test") is True
    assert main.global_block().ops[3].attr("is_test") is False
    names = {v.name for v in test.list_vars()}
    assert not [name for name in names if "@GRAD" in name or "velocity" in name or "learning_rate" in name]


def test_a_copy_for_test_keeps_gradients_without_a_loss() -> None:
    x = fluid.data("x", [None, 4])
    x.stop_gradient = False
    (slope,) = fluid.gradients(L.mean(L.square(x)), x)
    test = fluid.default_main_program().clone(for_test=True)
    assert types(test) == types(fluid.default_main_program())  # as in Fluid 1.8.5
    found = fluid.Executor().run(test, feed={"x": np.ones((2, 4), "float32")}, fetch_list=[slope.name])
    np.testing.assert_allclose(found[0], np.full((2, 4), 2 / 8))


def test_a_copy_for_test_predicts_with_the_trained_parameters(main: fluid.Program) -> None:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((2, 4), "float32"), "label": np.array([[0], [0]])}
    test = main.clone(for_test=True)
    first = exe.run(test, feed=feed, fetch_list=["fc_1.tmp_2"])
    np.testing.assert_array_equal(first, exe.run(test, feed=feed, fetch_list=["fc_1.tmp_2"]))
    exe.run(main, feed=feed)
    assert (exe.run(test, feed=feed, fetch_list=["fc_1.tmp_2"])[0] != first[0]).any()


def test_pruning_keeps_what_the_targets_need(main: fluid.Program) -> None:
    pruned = main._prune(["fc_0.tmp_2"])
    assert types(pruned) == ["mul", "elementwise_add", "relu"]
    assert sorted(v.name for v in pruned.list_vars()) == [
        "fc_0.b_0", "fc_0.tmp_0", "fc_0.tmp_1", "fc_0.tmp_2", "fc_0.w_0", "x",
    ]  # fmt: skip


def test_pruning_removes_operators_that_compute_a_fed_variable(main: fluid.Program) -> None:
    pruned = main._prune_with_input(["fc_0.tmp_2"], ["fc_1.tmp_1"])
    assert types(pruned) == ["dropout", "mul", "elementwise_add"]
    assert not pruned.global_block().has_var("fc_0.w_0")


def test_pruning_keeps_every_writer_before_the_reader() -> None:
    total = L.fill_constant([1], "float32", 0.0)
    for _ in range(3):
        L.increment(total)
    out = L.scale(total, 2.0)
    L.increment(total)
    pruned = fluid.default_main_program()._prune([out])
    assert types(pruned) == ["fill_constant", "increment", "increment", "increment", "scale"]


def test_pruning_keeps_sub_blocks_that_are_run() -> None:
    step = fluid.data("step", [1])
    rate = L.create_global_var([1], 0.0, "float32", persistable=True, name="rate")
    other = L.create_global_var([1], 0.0, "float32", persistable=True, name="other")
    for variable in (other, rate):
        with L.Switch() as cases, cases.case(step < L.fill_constant([1], "float32", 5.0)):
            L.assign(L.fill_constant([1], "float32", 1.0), variable)
    pruned = fluid.default_main_program()._prune([rate])
    assert pruned.num_blocks == 2
    assert [op.sub_blocks() for op in pruned.global_block().ops][-1] == [1]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    assert exe.run(pruned, feed={"step": np.ones(1, "float32")}, fetch_list=["rate"])[0] == 1.0


def test_pruning_targets_may_be_operators_or_variables() -> None:
    y = L.fc(fluid.data("x", [None, 4]), 3, act="relu")
    side = L.scale(y, 2.0)
    updates, _ = fluid.optimizer.SGD(0.1).minimize(L.mean(y))
    main = fluid.default_main_program()
    ops = main.global_block().ops
    assert types(main._prune(ops[1])) == ["mul", "elementwise_add"]
    assert types(main._prune([ops[1], side])) == ["mul", "elementwise_add", "relu", "scale"]
    pruned = types(main._prune(updates))
    assert pruned[-2:] == ["sgd", "sgd"]
    assert "scale" not in pruned
    with pytest.raises(GraphError, match=r"cannot be pruned to \['mul'\]"):
        main.clone()._prune([ops[0]])  # an operator of the other program


def test_pruning_to_an_unknown_variable_is_refused(main: fluid.Program) -> None:
    for target in ("nobody", 3):
        with pytest.raises(GraphError, match=r"cannot be pruned to \[.*\]: it has no such variables"):
            main._prune([target])


def test_pruning_keeps_a_target_that_no_operator_computes() -> None:
    L.scale(fluid.data("x", [None, 4]), 2.0)
    pruned = prune(fluid.default_main_program(), feeds=[], targets=["x"])
    assert [v.name for v in pruned.list_vars()] == ["x"]


def test_a_copy_for_test_drops_the_seed_and_other_copies_keep_it(main: fluid.Program) -> None:
    main.random_seed = 7
    assert (main.clone().random_seed, main.clone(for_test=True).random_seed) == (7, 0)


def test_copied_sub_blocks_have_their_copied_parents() -> None:
    x = fluid.data("x", [1])
    L.cond(x > 0, lambda: x * 2, lambda: x * 3)
    program = fluid.default_main_program()
    assert len(program.blocks) > 1
    for copy in (program.clone(), program.clone(for_test=True)):
        assert [b.parent_idx for b in copy.blocks] == [b.parent_idx for b in program.blocks]
        assert all(b._find_var_recursive("x") is copy.global_block().var("x") for b in copy.blocks)


def test_the_graph_contains_operators_and_variables(main: fluid.Program) -> None:
    import networkx as nx

    graph = main.graph()
    assert graph.nodes["fc_0.w_0"] == {"kind": "parameter", "shape": (4, 3), "dtype": "FP32"}
    assert graph.nodes["fc_0.w_0_velocity_0"]["kind"] == "persistable"
    assert graph.nodes["x"]["kind"] == "temporary"
    assert graph.nodes[0, 0] == {"kind": "operator", "type": "mul", "role": 0}
    assert list(graph.predecessors((0, 0))) == ["x", "fc_0.w_0"]
    assert nx.has_path(graph, "x", "mean_0.tmp_0")
    operators = [node for node, facts in graph.nodes(data=True) if facts.get("kind") == "operator"]
    assert len(operators) == len(main.global_block().ops)
