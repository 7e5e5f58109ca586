"""Several operators of one type as one step: updates of parameters, and files."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from paddlelike.core import LoDTensor, VarType
from paddlelike.errors import PaddlelikeError
from paddlelike.executor.plans.binding import Take, make_taker
from paddlelike.executor.plans.context import StepContext
from paddlelike.executor.plans.flat import bind_flat, is_small
from paddlelike.executor.plans.frame import (
    Binding,
    Frame,
    Run,
    Step,
    flatten_positions,
    run_parts,
    write_persistable,
)
from paddlelike.executor.plans.layout import Layout
from paddlelike.executor.plans.touched import ROWS
from paddlelike.framework import Block, Operator
from paddlelike.framework.opdef import GroupKernel, registry

_FLAT: Final = 8  # number of small parameters from which flat arrays are faster


def group_steps(steps: Sequence[Step], layout: Layout) -> list[Step]:
    """Return the steps, with consecutive steps of one type joined where their operators allow it.

    ``OpDef.make_group_kernel`` joins them. Operators that cannot be joined keep a step of their own before
    the joined one; none of them reads a variable that another writes.
    """
    found: list[Step] = []
    for _, run in itertools.groupby(steps, lambda step: step.op.type):
        found += _group_run(list(run), layout)
    return found


def _group_run(steps: list[Step], layout: Layout) -> list[Step]:
    """Return consecutive steps of one type, joined where possible."""
    if len(steps) < 2 or not _are_independent(steps):
        return steps
    steps = _keep_shared(steps)
    groups: dict[str, list[Step]] = {}
    for step in steps:
        binding = step.binding
        takes_rows = step.kernel == ROWS or _has_rows(step.op)
        if binding is not None and _can_group(binding, layout) and not takes_rows:
            groups.setdefault(repr(sorted(binding.keywords.items())), []).append(step)
    made: list[Step] = []
    grouped: set[int] = set()
    for group in groups.values():
        small = [step for step in group if is_small(step)]
        small = small if len(small) >= _FLAT else []
        rest = [step for step in group if not any(step is one for one in small)]
        if small:
            made.append(_make_group(small, bind_flat))
        if len(rest) >= _count_needed(rest):
            made.append(_make_group(rest))
        else:
            rest = []
        grouped |= {id(step) for step in (*small, *rest)}
    return [step for step in steps if id(step) not in grouped] + made


def _keep_shared(steps: list[Step]) -> list[Step]:
    """Return steps that drop shared values, such as a learning rate, only after all steps of the group."""
    counts = Counter(
        at for step in steps if step.binding for at in set(flatten_positions(step.binding.inputs))
    )
    return [_keep(step, counts) for step in steps]


def _keep(step: Step, counts: Mapping[int, int]) -> Step:
    """Return a step that does not drop values with several readers."""
    binding = step.binding
    if binding is None or not (kept := [at for at in binding.dead if counts[at] > 1]):
        return step
    parts = tuple(_keep(part, counts) for part in step.parts)  # a profile runs them one by one

    def run(frame: Frame) -> None:
        values = [frame.values[position] for position in kept]
        step.run(frame)
        for position, value in zip(kept, values, strict=True):
            frame.values[position] = value

    dead = tuple(position for position in binding.dead if position not in kept)
    return step._replace(run=run, binding=binding._replace(dead=dead), parts=parts)


def _count_needed(steps: list[Step]) -> int:
    """Return the least number of operators for which one joined step is faster.

    A single sgd has a short kernel.
    """
    return 4 if steps and steps[0].kernel == "specialized" else 2


def _can_group(binding: Binding, layout: Layout) -> bool:
    """Return whether an operator may join a group: its gradient is dense, and all outputs are in the
    scope.
    """
    if binding.cls.make_group_kernel(binding.keywords) is None or binding.share or binding.hollow:
        return False
    if not all(isinstance(position, int) for position in (*binding.inputs, *binding.outputs)):
        return False
    written = {position for position in flatten_positions(binding.outputs) if position >= 0}
    return written <= layout.persistables.keys() & set(flatten_positions(binding.inputs))


def _has_rows(op: Operator) -> bool:
    """Return whether an input holds selected rows, as sparse gradients do."""
    variables = (op.block._find_var_recursive(name) for name in op.input_arg_names)
    return any(variable is not None and variable.type == VarType.SELECTED_ROWS for variable in variables)


def _are_independent(steps: list[Step]) -> bool:
    """Return whether no operator reads or writes a variable that another operator writes."""
    written: set[int] = set()
    read: set[int] = set()
    for step in steps:
        if step.binding is None:
            return False
        inputs, outputs = (
            set(flatten_positions(step.binding.inputs)),
            set(flatten_positions(step.binding.outputs)) - {-1},
        )
        if outputs & (written | read) or inputs & written:
            return False
        written |= outputs
        read |= inputs
    return True


def _make_group(
    parts: list[Step], bind: Callable[[Sequence[Step], Run], Run] = lambda parts, run: run
) -> Step:
    """Return one step for several that are independent of one another."""
    bindings = [part.binding for part in parts if part.binding is not None]
    kernel = bindings[0].cls.make_group_kernel(bindings[0].keywords)
    assert kernel is not None
    takes = [make_taker(binding.inputs) for binding in bindings]
    outputs = [at for binding in bindings for at in flatten_positions(binding.outputs) if at >= 0]
    dead = [at for binding in bindings for at in binding.dead]
    run = bind(parts, _bind_group(kernel, tuple(parts), takes, outputs, dead))
    return Step(run, parts[0].op, "group", len(parts), parts=tuple(parts))


def _bind_group(
    kernel: GroupKernel, parts: tuple[Step, ...], takes: list[Take], outputs: list[int], dead: list[int]
) -> Run:
    def run(frame: Frame) -> None:
        values, holders = frame.values, frame.holders
        if not kernel([take(values) for take in takes]):
            run_parts(frame, parts)
            return
        for position in outputs:
            tensor = holders[position]._value
            if type(tensor) is LoDTensor and values[position] is tensor._array:
                tensor.version += 1
            elif isinstance(values[position], np.ndarray):
                values[position] = write_persistable(frame, position, values[position])
        for position in dead:
            values[position] = None

    return run


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
