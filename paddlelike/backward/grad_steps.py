"""Operators of a backward pass before they are put into a block: chosen, summed up, filled with zeros."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.opdef import EMPTY, GRAD, GradOp, grad_name

__all__ = ["GradBlock", "Step", "base", "gradients_in", "limit", "only_fed", "only_useful", "with_sums",
           "with_zeros"]  # fmt: skip


class Step(NamedTuple):
    """An operator of the backward pass, and the forward one it stems from."""

    grad: GradOp
    forward: Operator
    inner: GradBlock | None = None  # what its sub-block is going to hold


class GradBlock(NamedTuple):
    """The block of a gradient of control flow, still empty, and what goes into it."""

    block: Block
    steps: list[Step]


def base(name: str) -> str:
    """The variable a gradient belongs to."""
    return name.split("@RENAME")[0].removesuffix(GRAD)


def gradients_in(slots: dict[str, list[str]]) -> list[str]:
    """The gradients among the variables of some slots."""
    return [name for names in slots.values() for name in names if GRAD in name]


def limit(grad: GradOp, forward: Operator, blocked: AbstractSet[str], *, keep_empty: bool) -> GradOp | None:
    """``grad`` without the gradients nobody wants; None when none is left.

    ``keep_empty``: unwanted ones keep their place, and the operator stays even with nothing else.
    """
    outputs = {}
    for slot, names in grad.outputs.items():
        kept = [EMPTY if GRAD in name and base(name) in blocked else name for name in names]
        several = keep_empty or len(forward.input(slot.removesuffix(GRAD))) > 1
        outputs[slot] = kept if several else [name for name in kept if name != EMPTY]
    if not keep_empty and all(name == EMPTY for names in outputs.values() for name in names):
        return None
    return grad._replace(outputs=outputs)


def only_useful(steps: list[Step], blocked: AbstractSet[str]) -> list[Step]:
    """Without the operators that only pass on gradients which nothing computes."""
    dead = {grad_name(name) for name in blocked}
    made: set[str] = set()
    kept = []
    for step in steps:
        incoming = gradients_in(step.grad.inputs)
        outgoing = [n for names in step.grad.outputs.values() for n in names]
        if incoming and all(name in dead and name not in made for name in incoming):
            dead.update(outgoing)
            continue
        made.update(outgoing)
        kept.append(step)
    return kept


def only_fed(steps: list[Step], available: AbstractSet[str]) -> list[Step]:
    """Without the operators none of whose incoming gradients exists."""
    found = set(available)
    kept = []
    for step in steps:
        incoming = gradients_in(step.grad.inputs)
        if not incoming or found.intersection(incoming):
            found.update(gradients_in(step.grad.outputs))
            kept.append(step)
    return kept


def with_sums(steps: list[Step], block_idx: int) -> list[Step]:
    """Give every contribution to a gradient a name of its own, and add them up where they are needed.

    What comes after a total was read belongs to an earlier value of the variable, and is summed apart.
    """
    counts = _contributions(steps)
    rounds: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    parts: dict[str, list[str]] = {}
    result: list[Step] = []

    def total(name: str, forward: Operator) -> None:
        names = parts.pop(name)
        rounds[name] += 1
        if len(names) > 1:
            grad = GradOp("sum", {"X": names}, {"Out": [name]}, {"use_mkldnn": False}, own_attrs=True)
            result.append(Step(grad, forward))

    def part(name: str) -> str:
        mine = parts.setdefault(name, [])
        if counts[name, rounds[name]] > 1:
            mine.append(f"{name}@RENAME@block{block_idx}@{numbers[name]}")
            numbers[name] += 1
        else:
            mine.append(name)
        return mine[-1]

    for step in steps:
        grad = step.grad
        for names in grad.inputs.values():
            for name in names:
                if name in parts:
                    total(name, step.forward)
        outputs = {
            slot: [part(name) if GRAD in name else name for name in names]
            for slot, names in grad.outputs.items()
        }
        result.append(step._replace(grad=grad._replace(outputs=outputs)))
    for name in list(parts):
        total(name, result[-1].forward)
    return result


def _contributions(steps: list[Step]) -> Counter[tuple[str, int]]:
    """How many operators contribute to (gradient, round); a round ends where the total is read."""
    counts: Counter[tuple[str, int]] = Counter()
    rounds: Counter[str] = Counter()
    for step in steps:
        for name in set(gradients_in(step.grad.inputs)):
            if counts[name, rounds[name]]:
                rounds[name] += 1
        counts.update((name, rounds[name]) for name in gradients_in(step.grad.outputs))
    return counts


def with_zeros(steps: list[Step], blocked: AbstractSet[str]) -> list[Step]:
    """Zeros for the gradients that an operator reads and nothing computes."""
    made: set[str] = set()
    result: list[Step] = []
    for step in steps:
        for names in step.grad.inputs.values():
            missing = [n for n in names if GRAD in n and n not in made and base(n) in blocked]
            for name in missing:
                zeros = GradOp("fill_zeros_like", {"X": [base(name)]}, {"Out": [name]}, {}, own_attrs=True)
                result.append(Step(zeros, step.forward))
                made.add(name)
        result.append(step)
        made.update(n for names in step.grad.outputs.values() for n in names)
    return result
