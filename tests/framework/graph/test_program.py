"""Seeds of programs."""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid


@pytest.mark.parametrize("seed", ["5", 1.5, None, True])
def test_a_seed_is_an_integer(seed: Any) -> None:
    with pytest.raises(ValueError, match="random_seed"):
        fluid.Program().random_seed = seed


def test_a_global_seed_is_that_of_the_default_programs_too() -> None:
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
