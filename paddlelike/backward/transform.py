"""Transform the gradient operators of a pass before they are appended: drop, sum, fill with zeros."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set as AbstractSet
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

    :func:`restore_names` removes the marks.
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

    As in Fluid, steps are dropped after the sums are added, so a ``sum`` stays even if its only reader is
    dropped.
    """
    return [
        step
        for step in steps
        if step.inner or any(n != EMPTY for names in step.grad.outputs.values() for n in names)
    ]


def drop_zero_steps(steps: list[Step], stops: AbstractSet[str]) -> list[Step]:
    """Drop the steps whose incoming gradients are all zero, because they belong to variables in ``stops``."""
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
    """Drop the chains of steps that need only gradients from outside of ``steps``, unless no step would
    be left.

    As in Fluid, such a chain is dropped even in a loop, where another step may pass a gradient to it.
    ``known`` are the variables of the forward operators.
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
    """Return ``starts`` and the steps, with sums and zeros added and useless steps dropped.

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


class _Total:
    """A gradient to which several steps contribute.

    Attributes
    ----------
    parts
        The names of the contributions so far.
    places
        The slots, and the indices in them, with the name of the first contribution, which a second one
        changes.
    was_read
        Whether a step has read a contribution.
    """

    def __init__(self, name: str, numbers: Iterator[int], block_idx: int) -> None:
        self.name = name
        self.parts: list[str] = []
        self.places: list[tuple[list[str], int]] = []
        self.was_read = False
        self._names = (f"{name}@RENAME@block{block_idx}@{number}" for number in numbers)

    def contribute(self, names: list[str], index: int) -> None:
        """Add the contribution that a slot names; from the second on each has a name of its own."""
        if not self.parts:
            self.places.append((names, index))
        else:
            if len(self.parts) == 1:
                self.parts[0] = next(self._names)
                for slot, place in self.places:
                    slot[place] = self.parts[0]
                self.places.clear()
            names[index] = next(self._names)
        self.parts.append(names[index])

    def sum_up(self) -> GradOp:
        """Return the operator that sums the contributions; its result is then the only one."""
        grad = make_plain_op("sum", {"X": self.parts}, {"Out": [self.name]}, {"use_mkldnn": False})
        self.parts = [self.name]
        self.places.append((grad.outputs["Out"], 0))
        return grad


def add_sums(steps: list[Step], block_idx: int) -> list[Step]:
    """Return the steps with a name for each contribution to a gradient, summed before they are read.

    As in Fluid, contributions after a read are added to the contributions before it, even if the program
    overwrites the variable and they belong to different values. In the textbook each value has its own sum.
    """
    follows = follows_fluid("overwritten_gradient")
    totals: dict[str, _Total] = {}
    numbers: dict[str, Iterator[int]] = defaultdict(itertools.count)
    warns = False
    result: list[Step] = []

    def find_totals(slots: dict[str, list[str]]) -> Iterator[tuple[_Total, list[str], int]]:
        for _, names in sorted(slots.items()):
            for index, name in enumerate(names):
                if GRAD in name:
                    if name not in totals:
                        totals[name] = _Total(name, numbers[name], block_idx)
                    yield totals[name], names, index

    for step in [Step(_copy(step.grad), step.forward, step.inner) for step in steps]:
        read: set[_Total] = set()
        for total, names, index in find_totals(step.grad.inputs):
            if len(total.parts) > 1:
                result.append(Step(total.sum_up(), step.forward))
            if not follows:
                del totals[total.name]
                continue
            read.add(total)
            if total.parts:
                total.places.append((names, index))
                total.was_read = True
        for total, names, index in find_totals(step.grad.outputs):
            if total not in read:
                warns = warns or total.was_read
                total.contribute(names, index)
            elif total.parts:  # in Fluid an operator that reads a gradient overwrites it
                total.places.append((names, index))
        result.append(step)
    result += [Step(total.sum_up(), steps[-1].forward) for total in totals.values() if len(total.parts) > 1]
    if warns:
        warn_quirk("overwritten_gradient")
    return result


def _copy(grad: GradOp) -> GradOp:
    """Return a copy of an operator, whose names may be changed in place."""
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
