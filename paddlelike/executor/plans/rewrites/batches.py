"""Runs of consecutive operators of one type that are bound as a single step.

An operator class that declares ``forward_many`` (those that read and write files) takes all operators of such
a run at once. A program that holds no other operators needs no analysis of its values at all, so that
programs of tens of thousands of ``save`` or ``load`` operators are planned at no cost.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from paddlelike.errors import PaddlelikeError
from paddlelike.executor.plans.context import StepContext
from paddlelike.executor.plans.frame import Frame, Run
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.opdef import registry


def is_batched(op_type: str) -> bool:
    """Return whether operators of a type are run several at a time."""
    cls = registry.find_or_none(op_type)
    return cls is not None and hasattr(cls, "forward_many")


def list_batched(ops: Sequence[Operator]) -> list[Operator]:
    """Return the operators among ``ops`` that are run several at a time."""
    batched = {op_type for op_type in {op.type for op in ops} if is_batched(op_type)}
    return [op for op in ops if op.type in batched] if batched else []


def group_batches(ops: Sequence[Operator]) -> list[list[Operator]]:
    """Split operators into runs of one type each.

    >>> [[op.type for op in run] for run in group_batches([])]
    []
    """
    return [list(run) for _, run in itertools.groupby(ops, lambda op: op.type)]


def bind_batch(block: Block, ops: Sequence[Operator], dead: Sequence[int] = ()) -> Run:
    """Return a function that runs operators of one type and then drops the values at ``dead`` positions.

    An error of the operators gets the line that created them, if it is the same for all.
    """
    forward_many = registry.find(ops[0].type).forward_many

    def run(frame: Frame) -> None:
        try:
            forward_many(StepContext(frame, ops[0], block), ops)
        except PaddlelikeError as error:
            lines = {op.line for op in ops}
            if len(lines) > 1 or None in lines:
                raise
            raise type(error)(f"{error.message}\n  created at {lines.pop()}", hint=error.hint) from error
        for position in dead:
            frame.values[position] = None

    return run
