"""Several operators of one type as one step: updates of the parameters of an optimizer."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.tensor import LoDTensor
from paddlelike.executor.plans.binding import Take, make_taker
from paddlelike.executor.plans.frame import (
    Binding,
    Frame,
    Step,
    flatten_positions,
    run_parts,
    write_persistable,
)
from paddlelike.executor.plans.layout import Layout
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.opdef import GroupKernel

__all__ = ["group_steps"]


def group_steps(steps: Sequence[Step], layout: Layout) -> list[Step]:
    """Return the steps with consecutive ones of one type put together where their operators allow it.

    They do so by ``OpDef.make_group_kernel``. Operators among them that cannot be put together keep a step of
    their own in front of the others: none of them reads what another writes.
    """
    found: list[Step] = []
    for _, run in itertools.groupby(steps, lambda step: step.op.type):
        found += _group_run(list(run), layout)
    return found


def _group_run(steps: list[Step], layout: Layout) -> list[Step]:
    """Return consecutive steps of one type, those put together that can be."""
    groups: dict[str, list[Step]] = {}
    for step in steps:
        binding = step.binding
        if binding is not None and _can_group(binding, layout) and not _has_rows(step.op):
            groups.setdefault(repr(sorted(binding.keywords.items())), []).append(step)
    large = [group for group in groups.values() if len(group) >= _count_needed(group[0])]
    if not large or not _are_independent(steps):
        return steps
    grouped = {id(step) for group in large for step in group}
    return [step for step in steps if id(step) not in grouped] + [_make_group(g) for g in large]


def _count_needed(step: Step) -> int:
    """Return from how many on one step for all is faster; alone, sgd has a short kernel."""
    return 4 if step.kernel == "specialized" else 2


def _can_group(binding: Binding, layout: Layout) -> bool:
    """Return whether an operator may be one of a group: dense, and all that it writes is in the scope."""
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
    """Return whether no operator reads or writes what another one writes."""
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


def _make_group(parts: list[Step]) -> Step:
    """Return one step for several that are independent of one another."""
    bindings = [part.binding for part in parts if part.binding is not None]
    kernel = bindings[0].cls.make_group_kernel(bindings[0].keywords)
    assert kernel is not None
    takes = [make_taker(binding.inputs) for binding in bindings]
    outputs = [at for binding in bindings for at in flatten_positions(binding.outputs) if at >= 0]
    dead = [at for binding in bindings for at in binding.dead]
    return _bind_group(kernel, tuple(parts), takes, outputs, dead)


def _bind_group(
    kernel: GroupKernel, parts: tuple[Step, ...], takes: list[Take], outputs: list[int], dead: list[int]
) -> Step:
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

    return Step(run, parts[0].op, "group", len(parts), parts=parts)
