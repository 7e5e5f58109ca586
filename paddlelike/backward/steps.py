"""Transform the gradient operators of a pass before they are appended: drop, sum, fill with zeros."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from paddlelike.framework import Block, Operator, follows_fluid, warn_quirk
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


def drop_detached_steps(steps: list[Step], known: AbstractSet[str]) -> list[Step]:
    """Drop the steps that only follow from gradients computed elsewhere, unless these are all steps.

    As in Fluid, such a chain is dropped although the step before may pass a gradient to it. ``known`` are the
    variables of the forward operators.
    """
    versions: dict[str, int] = {}  # a number for each value of a variable
    readers: dict[int, list[int]] = defaultdict(list)
    inputs: list[list[int]] = []
    outputs: list[list[int]] = []
    first: list[int] = []
    written: set[str] = set()
    count = itertools.count()
    for at, step in enumerate(steps):
        reads, writes = ([n for names in slots.values() for n in names] for slots in step.grad[1:3])
        if not any(name in known or name in written for name in reads):
            first.append(at)
        inputs.append([versions.setdefault(name, next(count)) for name in reads])
        for value in inputs[at]:
            readers[value].append(at)
        versions.update(zip(writes, count, strict=False))
        outputs.append([versions[name] for name in writes])
        written.update(writes)
    dropped: set[int] = set()
    for start in first:
        ready, chain, seen = set(inputs[start]), [start], {start}
        for at in chain:
            if not inputs[at] or not ready.issuperset(inputs[at]):
                break
            ready.update(outputs[at])
            following = [one for value in outputs[at] for one in readers[value] if one not in seen]
            chain += following
            seen.update(following)
        else:
            dropped.update(chain)
    kept = [step for at, step in enumerate(steps) if at not in dropped]
    return kept or steps


def complete_steps(
    steps: list[Step],
    stops: AbstractSet[str],
    given: AbstractSet[str] | None,
    block_idx: int,
    starts: Sequence[Step] = (),
    known: AbstractSet[str] | None = None,
) -> list[Step]:
    """Return ``starts`` followed by the complete steps; the gradients ``given`` exist already.

    ``given`` is None inside of a loop, where a gradient may come from the step before. ``known`` are the
    variables of the forward operators, or None where no chain is detached.
    """
    steps = drop_zero_steps(steps, stops)
    if given is not None:
        steps = drop_unfed_steps(steps, given)
    steps = add_zeros(drop_empty_steps(add_sums([*starts, *steps], block_idx)), stops)
    if known is None:
        return steps
    return [*steps[: len(starts)], *drop_detached_steps(steps[len(starts) :], known)]


def add_sums(steps: list[Step], block_idx: int) -> list[Step]:
    """Return the steps with a name for each contribution to a gradient, summed before they are read.

    As in Fluid, contributions after a read are summed with those before it, though these belong to a later
    value of a variable that the program overwrites. With the textbook's they get their own sum.
    """
    follows = follows_fluid("overwritten_gradient")
    steps = [Step(_copy(step.grad), step.forward, step.inner) for step in steps]
    before: list[list[Step]] = [[] for _ in (*steps, None)]  # the sums in front of each step
    parts: dict[str, list[str]] = {}
    places: dict[str, list[tuple[list[str], int]]] = defaultdict(list)  # where a contribution is named
    counts: Counter[str] = Counter()
    finished: set[str] = set()  # contributions that were read
    warns = False

    def make_name(name: str) -> str:
        counts[name] += 1
        return f"{name}@RENAME@block{block_idx}@{counts[name] - 1}"

    def add_sum(at: int, name: str) -> None:
        grad = make_plain_op("sum", {"X": parts[name]}, {"Out": [name]}, {"use_mkldnn": False})
        before[at].append(Step(grad, steps[min(at, len(steps) - 1)].forward))
        parts[name] = [name]
        places[name].append((grad.outputs["Out"], 0))

    for at, step in enumerate(steps):
        reads = [(names, n) for _, names in sorted(step.grad.inputs.items()) for n in range(len(names))]
        for names, index in reads:
            name = names[index]
            if GRAD in name and len(parts.setdefault(name, [])) > 1:
                add_sum(at, name)
            if not follows:
                parts.pop(name, None), places.pop(name, None)
            elif parts.get(name):
                places[name].append((names, index))
                finished.add(name)
        # in Fluid an operator that reads a gradient overwrites it
        is_read = {names[index] for names, index in reads} if follows else ()
        for _, names in sorted(step.grad.outputs.items()):
            for index, name in enumerate(names):
                if name in is_read and parts.get(name):
                    places[name].append((names, index))
                if GRAD not in name or name in is_read:
                    continue
                mine = parts.setdefault(name, [])
                if len(mine) == 1:
                    mine[0] = make_name(name)
                    for where, place in places.pop(name):
                        where[place] = mine[0]
                if mine:
                    names[index] = make_name(name)
                    warns = warns or name in finished
                mine.append(names[index])
                if len(mine) == 1:
                    places[name].append((names, index))
    for name in [name for name, names in parts.items() if len(names) > 1]:
        add_sum(len(steps), name)
    if warns:
        warn_quirk("overwritten_gradient")
    return [one for sums, step in zip(before, (*steps, None), strict=True) for one in (*sums, step) if one]


def _copy(grad: GradOp) -> GradOp:
    """Return an operator whose names may be changed in place."""
    inputs, outputs = ({s: list(names) for s, names in slots.items()} for slots in grad[1:3])
    return grad._replace(inputs=inputs, outputs=outputs)


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
