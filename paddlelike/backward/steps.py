"""Transform the gradient operators of a pass before they are appended: drop, sum, fill with zeros."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from paddlelike.framework import Block, Operator
from paddlelike.framework.opdef import EMPTY, GRAD, GradOp, grad_name, make_plain_op

_CONTRIBUTION: Final = re.compile(r"@RENAME@block\d+@\d+$")
_VALUE: Final = "@VALUE"  # in place of @GRAD in the name of a value


class Step(NamedTuple):
    """A gradient operator and the forward operator it differentiates."""

    grad: GradOp
    forward: Operator
    inner: GradBlock | None = None  # for operators that run a block


class GradBlock(NamedTuple):
    """The block that a gradient operator runs, still empty, and the operators to append to it."""

    block: Block
    steps: list[Step]


def find_total_name(name: str) -> str:
    """Return the name of the sum that a contribution belongs to; other names are returned unchanged."""
    return _CONTRIBUTION.sub("", name)


def find_variable_name(name: str) -> str:
    """Return the name of the variable that a gradient belongs to."""
    return find_total_name(name).removesuffix(GRAD)


def mark_values(step: Step) -> Step:
    """Return a step with other names for values that an earlier pass named as gradients.

    :func:`restore_names` takes the marks back.
    """
    forward = step.forward
    values = {name for name in (*forward.input_arg_names, *forward.output_arg_names) if GRAD in name}
    if not values:
        return step
    marked = {
        slot: [name.replace(GRAD, _VALUE) if name in values else name for name in names]
        for slot, names in step.grad.inputs.items()
    }
    return step._replace(grad=step.grad._replace(inputs=marked))


def restore_names(slots: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return slots with the names that they had before :func:`mark_values`."""
    return {slot: [name.replace(_VALUE, GRAD) for name in names] for slot, names in slots.items()}


def collect_gradients(slots: dict[str, list[str]]) -> list[str]:
    """Return the gradients among the variables of some slots."""
    return [name for names in slots.values() for name in names if GRAD in name]


def drop_stopped_outputs(
    grad: GradOp, forward: Operator, stops: AbstractSet[str], *, keep_empty: bool
) -> GradOp:
    """Return ``grad`` without outputs for the variables in ``stops``; ``keep_empty`` leaves empty names."""
    outputs = {}
    for slot, names in grad.outputs.items():
        kept = [EMPTY if GRAD in name and find_variable_name(name) in stops else name for name in names]
        inputs = forward.input(slot.removesuffix(GRAD)) or names  # py_func names its slots as it likes
        several = keep_empty or len(inputs) > 1
        outputs[slot] = kept if several else [name for name in kept if name != EMPTY]
    return grad._replace(outputs=outputs)


def drop_empty_steps(steps: list[Step]) -> list[Step]:
    """Return the steps that have an output or run a block.

    Fluid does so after the sums: where nobody else reads a total, its ``sum`` stands before a dropped step.
    """
    return [
        step
        for step in steps
        if step.inner or any(n != EMPTY for names in step.grad.outputs.values() for n in names)
    ]


def drop_zero_steps(steps: list[Step], stops: AbstractSet[str]) -> list[Step]:
    """Drop the steps whose incoming gradients all belong to variables in ``stops``, so that they are zero."""
    dead = {grad_name(name) for name in stops}
    computed: set[str] = set()
    kept = []
    for step in steps:
        incoming = collect_gradients(step.grad.inputs)
        outgoing = [n for names in step.grad.outputs.values() for n in names]
        if incoming and all(name in dead and name not in computed for name in incoming):
            dead.update(outgoing)
            continue
        computed.update(outgoing)
        kept.append(step)
    return kept


def drop_unfed_steps(steps: list[Step], available: AbstractSet[str]) -> list[Step]:
    """Drop the steps without an incoming gradient."""
    found = set(available)
    kept = []
    for step in steps:
        incoming = collect_gradients(step.grad.inputs)
        if not incoming or found.intersection(incoming):
            found.update(collect_gradients(step.grad.outputs))
            kept.append(step)
    return kept


def complete_steps(
    steps: list[Step],
    stops: AbstractSet[str],
    given: AbstractSet[str],
    block_idx: int,
    starts: Sequence[Step] = (),
) -> list[Step]:
    """Return ``starts`` followed by the complete steps; the gradients ``given`` exist already."""
    steps = drop_unfed_steps(drop_zero_steps(steps, stops), given)
    return add_zeros(drop_empty_steps(add_sums([*starts, *steps], block_idx)), stops)


def add_sums(steps: list[Step], block_idx: int) -> list[Step]:
    """Return the steps with a name for each contribution to a gradient, summed before they are read.

    Contributions after a total was read belong to an earlier value of the variable and get their own sum.
    """
    counts = _contributions(steps)
    rounds: Counter[str] = Counter()
    indexes: Counter[str] = Counter()
    parts: dict[str, list[str]] = {}
    result: list[Step] = []

    def sum_parts(name: str, forward: Operator) -> None:
        names = parts.pop(name)
        rounds[name] += 1
        if len(names) > 1:
            grad = make_plain_op("sum", {"X": names}, {"Out": [name]}, {"use_mkldnn": False})
            result.append(Step(grad, forward))

    def add_part(name: str) -> str:
        mine = parts.setdefault(name, [])
        if counts[name, rounds[name]] > 1:
            mine.append(f"{name}@RENAME@block{block_idx}@{indexes[name]}")
            indexes[name] += 1
        else:
            mine.append(name)
        return mine[-1]

    for step in steps:
        grad = step.grad
        for names in grad.inputs.values():
            for name in names:
                if name in parts:
                    sum_parts(name, step.forward)
        outputs = {
            slot: [add_part(name) if GRAD in name else name for name in names]
            for slot, names in grad.outputs.items()
        }
        result.append(Step(grad._replace(outputs=outputs), step.forward, step.inner))
    for name in list(parts):
        sum_parts(name, result[-1].forward)
    return result


def _contributions(steps: list[Step]) -> Counter[tuple[str, int]]:
    """Return the number of contributions by (gradient, round); a round ends where the total is read."""
    counts: Counter[tuple[str, int]] = Counter()
    rounds: Counter[str] = Counter()
    for step in steps:
        for name in set(collect_gradients(step.grad.inputs)):
            if counts[name, rounds[name]]:
                rounds[name] += 1
        counts.update((name, rounds[name]) for name in collect_gradients(step.grad.outputs))
    return counts


def add_zeros(steps: list[Step], stops: AbstractSet[str]) -> list[Step]:
    """Add zeros for gradients of ``stops`` that some step reads and no step computes."""
    computed: set[str] = set()
    result: list[Step] = []
    for step in steps:
        for _, names in sorted(step.grad.inputs.items()):
            missing = [n for n in names if GRAD in n and n not in computed and find_variable_name(n) in stops]
            for name in missing:
                first = name.rpartition("grad/")[2].split(GRAD)[0]  # as in Fluid: of the same shape
                zeros = make_plain_op("fill_zeros_like", {"X": [first]}, {"Out": [name]}, {})
                result.append(Step(zeros, step.forward))
                computed.add(name)
        result.append(step)
        computed.update(n for names in step.grad.outputs.values() for n in names)
    return result
