"""Runs the initializers of variables that have no value yet."""

from __future__ import annotations

from paddlelike.executor.run import Executor
from paddlelike.framework import Program
from paddlelike.io.state import is_initialized


def initialize(executor: Executor, startup: Program, program: Program) -> None:
    """Run the initializers of variables without a value; in a distributed job, the whole startup program."""
    if program._is_distributed:
        executor.run(startup)
        return
    rest = startup.clone()
    block = rest.global_block()
    block.ops = [op for op in block.ops if not all(map(is_initialized, op.output_arg_names))]
    if block.ops:
        executor.run(rest)
