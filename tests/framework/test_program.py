"""Programs: copies stay apart, pruning keeps what is needed, text and bytes say everything.

What real Fluid builds for the same calls is compared in tests/alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.errors import EnforceNotMet, GraphError
from tests.helpers.canonical import canonical

L = fluid.layers


@pytest.fixture
def main() -> fluid.Program:
    """A small classifier with its optimizer."""
    x, label = fluid.data("x", [None, 4]), fluid.data("label", [None, 1], "int64")
    h = L.dropout(L.fc(x, 3, act="relu"), 0.5)
    prediction = L.fc(h, 2, act="softmax")
    loss = L.mean(L.cross_entropy(prediction, label))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return fluid.default_main_program()


def types(program: fluid.Program) -> list[str]:
    return [op.type for op in program.global_block().ops]


# Text and bytes


@pytest.mark.parametrize("details", [False, True])
def test_the_text_is_a_program_desc(main: fluid.Program, details: bool) -> None:
    from google.protobuf import text_format

    from paddlelike.framework.codec.schema import messages

    text = main.to_string(True, with_details=details)
    if details:
        names = (
            "error_clip",
            "stop_gradient",
            "trainable",
            "optimize_attr",
            "regularizer",
            "do_model_average",
        )
        text = "".join(line for line in text.splitlines(keepends=True) if not line.strip().startswith(names))
    parsed = text_format.Parse(text, messages().ProgramDesc())
    assert canonical(parsed.SerializeToString()) == canonical(main)


def test_details_tell_what_only_python_knows(main: fluid.Program) -> None:
    weight = main.global_block().var("fc_0.w_0")
    assert weight.to_string(True, True).splitlines()[-6:] == [
        "error_clip: None", "stop_gradient: False", "trainable: True",
        "optimize_attr: {'learning_rate': 1.0}", "regularizer: None", "do_model_average: True",
    ]  # fmt: skip
    assert "error_clip" not in str(weight)
    assert str(main) == repr(main) == main.to_string(True)


def test_bytes_come_back_as_the_same_program(main: fluid.Program) -> None:
    data = main.desc.serialize_to_string()
    back = fluid.Program.parse_from_string(data)
    assert canonical(back) == canonical(main)
    assert back.desc.serialize_to_string() == data
    assert back.all_parameters() == []
    assert str(back) == str(main)


def test_equal_programs_have_equal_bytes(main: fluid.Program) -> None:
    assert main.clone().desc.serialize_to_string() == main.desc.serialize_to_string()


@pytest.mark.parametrize("data", [b"\xffgarbage", b"\x0a\xff"], ids=["garbage", "cut"])
def test_bytes_that_are_no_program_are_refused(data: bytes) -> None:
    with pytest.raises(EnforceNotMet):
        fluid.Program.parse_from_string(data)


# Copies


def test_a_copy_shares_nothing(main: fluid.Program) -> None:
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


def test_a_copy_for_test_predicts_with_the_trained_parameters(main: fluid.Program) -> None:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((2, 4), "float32"), "label": np.array([[0], [0]])}
    test = main.clone(for_test=True)
    first = exe.run(test, feed=feed, fetch_list=["fc_1.tmp_2"])
    np.testing.assert_array_equal(first, exe.run(test, feed=feed, fetch_list=["fc_1.tmp_2"]))
    exe.run(main, feed=feed)
    assert (exe.run(test, feed=feed, fetch_list=["fc_1.tmp_2"])[0] != first[0]).any()


# Pruning


def test_pruning_keeps_what_the_targets_need(main: fluid.Program) -> None:
    pruned = main._prune(["fc_0.tmp_2"])
    assert types(pruned) == ["mul", "elementwise_add", "relu"]
    assert sorted(v.name for v in pruned.list_vars()) == [
        "fc_0.b_0", "fc_0.tmp_0", "fc_0.tmp_1", "fc_0.tmp_2", "fc_0.w_0", "x",
    ]  # fmt: skip


def test_a_fed_variable_cuts_off_what_computes_it(main: fluid.Program) -> None:
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


def test_pruning_keeps_blocks_that_are_run() -> None:
    step = fluid.data("step", [1])
    rate = L.create_global_var([1], 0.0, "float32", persistable=True, name="rate")
    other = L.create_global_var([1], 0.0, "float32", persistable=True, name="other")
    for variable in (other, rate):
        with L.Switch() as cases, cases.case(step < L.fill_constant([1], "float32", 5.0)):
            L.assign(L.fill_constant([1], "float32", 1.0), variable)
    pruned = fluid.default_main_program()._prune([rate])
    assert pruned.num_blocks == 2
    assert [op.sub_blocks() for op in pruned.global_block().ops][-1] == [1]
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    assert exe.run(pruned, feed={"step": np.ones(1, "float32")}, fetch_list=["rate"])[0] == 1.0


def test_pruning_to_nobody_is_refused(main: fluid.Program) -> None:
    for target in ("nobody", 3):
        with pytest.raises(GraphError, match=r"cannot be pruned to \[.*\]: it has no such variables"):
            main._prune([target])


# The graph


def test_the_graph_holds_operators_and_variables(main: fluid.Program) -> None:
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


# Guards and settings


def test_guards_put_back_what_was_there_even_after_an_error() -> None:
    before = fluid.default_main_program(), fluid.default_startup_program()
    with pytest.raises(KeyError), fluid.program_guard(fluid.Program(), fluid.Program()):
        raise KeyError
    with (
        pytest.raises(KeyError),
        fluid.unique_name.guard("p_"),
        fluid.name_scope("s"),
        fluid.device_guard("cpu"),
    ):
        raise KeyError
    x = L.relu(fluid.data("x", [None, 4]))
    assert x.name == "relu_0.tmp_0"
    op = x.op
    assert (op.attr("op_namescope"), op.attr("op_device")) == ("/", "")
    assert (fluid.default_main_program(), fluid.default_startup_program()) == before


def test_a_guard_takes_programs_only() -> None:
    for programs in ((None,), ("main",), (fluid.Program(), "startup")):
        with pytest.raises(TypeError, match="expected a Program"), fluid.program_guard(*programs):
            pass


@pytest.mark.parametrize("seed", ["5", 1.5, None, True])
def test_a_seed_is_an_integer(seed: Any) -> None:
    with pytest.raises(ValueError, match="random_seed"):
        fluid.Program().random_seed = seed


def test_a_seed_for_everything() -> None:
    program = fluid.Program()
    program.global_seed(5)
    seeds = [p.random_seed for p in (program, fluid.default_main_program(), fluid.default_startup_program())]
    assert seeds == [5, 5, 5]
