"""Who owns which parameter with ReduceStrategy.Reduce, and what each worker's program has left."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.distributed.collective.sharding import Sharding, plan_sharding


def build(case: str) -> fluid.Program:
    main = fluid.Program()
    with fluid.program_guard(main, fluid.Program()), fluid.unique_name.guard():
        x, ids = fluid.data("x", [None, 8]), fluid.data("ids", [None, 1], "int64")
        hidden = fluid.layers.fc([x, fluid.layers.embedding(ids, [50, 8], is_sparse=case == "sparse")], 6)
        loss = fluid.layers.mean(fluid.layers.square(fluid.layers.fc(hidden, 3)))
        clip = fluid.clip.GradientClipByGlobalNorm(1.0) if case == "clipped" else None
        regularization = fluid.regularizer.L2Decay(0.1) if case == "decayed" else None
        optimizer = fluid.optimizer.Adam(0.1, grad_clip=clip, regularization=regularization)
        _, pairs = optimizer.minimize(loss)
        if case == "decoupled":
            for param, grad in pairs:
                with main._optimized_guard([param, grad]):
                    fluid.layers.assign(param * 0.9, output=param)
        if case == "averaged":
            fluid.optimizer.ExponentialMovingAverage(0.9).update()
        if case == "watched":  # the state of one parameter is read in the next step
            fluid.layers.mean(main.global_block().var("fc_1.w_0_moment1_0"))
        if case == "read at once":
            with main._optimized_guard([]):
                block, index = main.global_block(), find_updates(main)[0] + 1
                out = block.create_var(name="seen", shape=[1], persistable=True)
                block._insert_op(
                    index, "mean", {"X": read_param(main, index - 1)}, {"Out": out}, {"op_role": 2}
                )
    return main


def find_updates(program: fluid.Program) -> list[int]:
    return [index for index, op in enumerate(program.global_block().ops) if op.type == "adam"]


def read_param(program: fluid.Program, index: int) -> Any:
    return program.global_block().var(program.global_block().ops[index].input("Param")[0])


def plan(program: fluid.Program, workers: int) -> Sharding:
    return plan_sharding(program, workers, [f"{one.name}@GRAD" for one in program.all_parameters()])


@pytest.mark.parametrize(
    ("case", "whole", "summed_by_all"),
    [
        ("plain", set(), set()),
        ("decayed", set(), set()),
        ("decoupled", set(), set()),
        ("averaged", set(), set()),
        ("sparse", {"embedding_0.w_0"}, {"embedding_0.w_0"}),
        ("clipped", set(), None),
        ("watched", {"fc_1.w_0"}, {"fc_1.w_0"}),
        ("read at once", {"embedding_0.w_0"}, {"embedding_0.w_0"}),
    ],
)
@pytest.mark.parametrize("workers", [2, 3, 9])
def test_each_update_runs_on_one_worker_or_on_all(
    case: str, whole: set[str], summed_by_all: set[str] | None, workers: int
) -> None:
    program = build(case)
    params = {one.name for one in program.all_parameters()}
    sharding = plan(program, workers)
    assert params - sharding.owners.keys() == whole
    expected = params if summed_by_all is None else summed_by_all
    assert {name.partition("@")[0] for name in sharding.gradients} == params - expected
    assert len(sharding.state) == 4 * len(sharding.owners)  # two moments, two powers
    updates: Counter[str] = Counter()
    others: list[list[str]] = []
    for rank in range(workers):
        block = program.clone().global_block()
        sharding.remove_updates(block, rank)
        updates.update(op.input("Param")[0] for op in block.ops if op.type == "adam")
        used = {name for op in block.ops for name in [*op.input_arg_names, *op.output_arg_names]}
        assert not used & {*sharding.find_others(rank)}
        at = [op.type for op in block.ops].index("gather_from_owners")
        assert {op.input("Param")[0] for op in block.ops[at:] if op.type == "adam"} <= whole
        others.append([op.type for op in block.ops if not op.attrs.get("op_role", 0) & 2])
    assert updates == {name: workers if name in whole else 1 for name in params}
    assert all(one == others[0] for one in others)


def test_owners_have_about_equal_numbers_of_elements() -> None:
    program = build("plain")
    owners = plan(program, 2).owners
    sizes = [
        sum(math.prod(program.global_block().var(n).shape) for n in owners if owners[n] == rank)
        for rank in (0, 1)
    ]
    largest = max(math.prod(one.shape) for one in program.all_parameters())
    assert abs(sizes[0] - sizes[1]) <= largest
