"""The context of a run, as operators with blocks and random numbers see it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.executor.plans.context import StepContext
from paddlelike.executor.plans.run_plan import Plan

L = fluid.layers


@pytest.fixture
def run() -> Any:
    """A context of the operator that doubles ``x`` into ``y``, over a frame with a persistable ``w``."""
    program = fluid.default_main_program()
    x = fluid.data("x", [None, 2])
    w = L.create_global_var([1], 5.0, "float32", persistable=True, name="w")
    y = L.elementwise_mul(L.scale(x, 2.0), w)
    scope = fluid.Scope()
    scope.var("w").get_tensor().set(np.array([5.0], "float32"))
    frame = Plan(program, ["x"], [y.name], None).create_frame(scope, {"door": "open"})
    return StepContext(frame, program.global_block().ops[0], program.global_block())


def test_a_persistable_is_read_from_the_scope(run: Any) -> None:
    assert run.read("w").tolist() == [5.0]
    assert run.read("x") is None


def test_a_written_persistable_is_in_the_scope_at_once(run: Any) -> None:
    run.write("w", np.array([7.0], "float32"))
    assert np.array(run.scope.find_var("w").get_tensor()).tolist() == [7.0]
    assert run.read("w").tolist() == [7.0]


def test_values_and_lods_are_written_and_read(run: Any) -> None:
    run.write("x", np.ones((3, 2)), [[0, 1, 3]])
    assert (run.read("x").shape, run.read_lod("x"), run.lod("X")) == ((3, 2), [[0, 1, 3]], [[0, 1, 3]])
    run.write("x", np.ones((1, 2)))
    assert run.read_lod("x") == run.lod("X") == []
    run.set_lod("Out", [[0, 1]])
    (out,) = run.op.output("Out")
    assert run.read_lod(out) == [[0, 1]]
    run.set_lod("Out", [])
    assert run.read_lod(out) == []
    assert run.lod("NoSuchSlot") == []


def test_a_name_that_no_operator_uses_may_be_written(run: Any) -> None:
    run.write("unheard", np.zeros(1))
    assert run.read("unheard").tolist() == [0.0]


def test_outputs_are_kept_only_if_an_operator_reads_them(run: Any) -> None:
    assert run.is_read("Out")
    last = run.op.block.ops[-1]
    assert not StepContext(run._frame, last, last.block).is_read("Out")


def test_services_are_looked_up_by_name(run: Any) -> None:
    assert run.service("door") == "open"
    assert run.service("window") is None


def test_a_seed_starts_a_new_stream_and_without_one_the_generator_of_the_scope_is_used(run: Any) -> None:
    assert run.random(7).state == run.random(7).state
    assert run.random(0) is run.scope.generator


def test_blocks_hide_outer_variables_and_snapshots_restore_values() -> None:
    i = L.fill_constant([1], "int64", 0)
    limit = L.fill_constant([1], "int64", 3)
    condition = L.less_than(i, limit)
    with L.While(condition).block():
        inner = L.scale(L.cast(i, "float32"), 10.0)
        L.increment(i)
        L.less_than(i, limit, cond=condition)
    program = fluid.default_main_program()
    plan = Plan(program, [], [i.name], None)
    frame = plan.create_frame(fluid.Scope(), {})
    op = next(op for op in program.global_block().ops if op.type == "while")
    outer = StepContext(frame, op, op.block)
    context = outer.inside(1)
    assert context.owns(inner.name)
    assert not outer.owns(inner.name)
    context.write(i.name, np.array([2]))
    context.write(limit.name, np.array([3]))
    context.run_block(1)
    assert context.read(inner.name).tolist() == [20.0]
    kept = context.snapshot(1)
    context.clear(1)
    assert context.read(inner.name) is None
    context.restore(kept)
    assert context.read(inner.name).tolist() == [20.0]
    assert outer.read(i.name).tolist() == [3]
