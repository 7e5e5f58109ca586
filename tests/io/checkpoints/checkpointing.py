"""What the tests of checkpoints share: two variables, and a look at them."""

from __future__ import annotations

import numpy as np

import paddlelike as fluid


def two_variables() -> fluid.Program:
    """A program of the persistables a and b, which are 0."""
    program = fluid.Program()
    for name in "ab":
        program.global_block().create_var(name=name, shape=[2], dtype="float32", persistable=True)
        put(name, 0)
    return program


def put(name: str, number: float) -> None:
    fluid.global_scope().var(name).get_tensor().set(np.full(2, number, "float32"))


def value(name: str) -> float:
    return float(np.array(fluid.global_scope().find_var(name).get_tensor())[0])


def steps(checkpoints: fluid.io.Checkpoints) -> list[int]:
    return [checkpoint.step for checkpoint in checkpoints.list()]
