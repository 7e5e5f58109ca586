"""Seeds of programs, and their descriptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid


@pytest.mark.parametrize("seed", ["5", 1.5, None, True])
def test_a_seed_is_an_integer(seed: Any) -> None:
    with pytest.raises(ValueError, match="random_seed"):
        fluid.Program().random_seed = seed


def test_a_global_seed_also_applies_to_the_default_programs() -> None:
    program = fluid.Program()
    program.global_seed(5)
    seeds = [p.random_seed for p in (program, fluid.default_main_program(), fluid.default_startup_program())]
    assert seeds == [5, 5, 5]


def test_every_change_of_a_program_drops_its_plans() -> None:
    program = fluid.Program()
    block = program.global_block()
    for change in (
        lambda: block.create_var(name="x", shape=[1], dtype="float32"),
        lambda: block.append_op("scale", {"X": "x"}, {"Out": "x"}),
        lambda: block._remove_op(0),
        lambda: block._remove_var("x"),
    ):
        program.plans["a plan"] = None
        change()
        assert not program.plans


def test_a_program_copies_variable_descriptions_from_another() -> None:
    """As scripts do that prune and read programs by Fluid's inner functions."""
    x = fluid.data("x", [None, 4])
    y = fluid.layers.fc(x, 2, param_attr=fluid.ParamAttr("w", trainable=False))
    main = fluid.default_main_program()
    main._is_chief, main._endpoints = True, ["127.0.0.1:1"]
    pruned = main._prune_with_input(["x"], [y])._inference_optimize(prune_read_op=True)
    pruned._copy_dist_param_info_from(main)
    pruned.desc._set_version()
    read = fluid.Program.parse_from_string(pruned.desc.serialize_to_string(), trusted=True)
    assert read.all_parameters() == []
    read.global_block().var("x").is_data = False
    read._copy_param_info_from(main)
    read._copy_data_info_from(main)
    read._sync_with_cpp()
    assert (pruned._is_chief, pruned._endpoints) == (True, ["127.0.0.1:1"])
    found = {p.name: (p.shape, p.trainable) for p in read.all_parameters()}
    assert found == {"w": ((4, 2), False), "fc_0.b_0": ((2,), True)}
    assert read.global_block().var("x").is_data


def test_op_descs_are_counted_and_removed_through_the_block_desc() -> None:
    y = fluid.layers.relu(fluid.layers.fc(fluid.data("x", [None, 4]), 2))
    desc = fluid.default_main_program().global_block().desc
    assert (desc.op_size(), desc.op(2).type(), desc.op(2).output("Out")) == (3, "relu", [y.name])
    desc.op(2).set_is_target(True)
    desc._remove_op(0, 2)
    assert [(op.type, op.is_target) for op in desc.ops] == [("relu", True)]


def test_block_descs_find_variables_and_operators() -> None:
    """What real Paddle Fluid 1.8.5 answers for the same network."""
    fluid.layers.fc(fluid.data("x", [2, 3], lod_level=1), 2)
    block = fluid.default_main_program().desc.block(0)
    assert (block.id, block.parent, block.op(0).type()) == (0, -1, "mul")
    assert sorted(one.name() for one in block.all_vars()) == [
        "fc_0.b_0", "fc_0.tmp_0", "fc_0.tmp_1", "fc_0.w_0", "x",
    ]  # fmt: skip
    assert (block.has_var(b"x"), block.has_var(b"y")) == (True, False)
    assert (block.find_var(b"y"), block.find_var_recursive(b"y")) == (None, None)
    found, again = block.find_var(b"x"), block.find_var_recursive("x")
    assert found is not None
    assert again is not None
    assert (found.shape(), again.get_shape(), found.lod_level()) == ([2, 3], [2, 3], 1)


def test_var_descs_change_types_and_lod_levels() -> None:
    y = fluid.layers.relu(fluid.data("x", [2, 3]))
    program = fluid.default_main_program()
    exe = fluid.Executor()
    feed = {"x": np.array([[-1, 0, 1], [2, 3, 4]], "float32")}
    exe.run(feed=feed, fetch_list=[y])
    program.desc.block(0).op(0).set_type("square")
    (found,) = exe.run(feed=feed, fetch_list=[y])
    assert found.tolist() == [[1, 0, 1], [4, 9, 16]]
    y.desc.set_lod_level(2)
    y.desc.set_type(fluid.core.VarDesc.VarType.SELECTED_ROWS)
    assert (y.lod_level, y.type) == (2, fluid.core.VarDesc.VarType.SELECTED_ROWS)


def test_operators_appended_under_a_role_guard_get_its_role() -> None:
    program = fluid.default_main_program()
    role = fluid.core.op_proto_and_checker_maker.OpRole
    x = fluid.data("x", [2, 3])
    before, program._current_role = program._current_role, role.Backward
    y = fluid.layers.relu(x)
    program._current_role = before
    z = fluid.layers.relu(y)
    assert [one.op.attr("op_role") for one in (y, z)] == [int(role.Backward), int(role.Forward)]
