"""Persistables that always have equal values, such as the powers of beta that Adam keeps for each parameter.

Each is small, but needs its own input, result and kernel of XLA; together they take a sixth of a small
network's step. If the same rule updates several from their own values alone, equal values stay equal. So a
piece takes one of them, and returns one result for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from paddlelike.compiled.pieces.piece_plan import CompiledPlan
from paddlelike.framework import Operator

#: By operator with several outputs, those that depend only on one input and one attribute (or a tensor in its
#: place).
_OWN: Final = {
    "adam": {
        "Beta1PowOut": ("Beta1Pow", "beta1", "Beta1Tensor"),
        "Beta2PowOut": ("Beta2Pow", "beta2", "Beta2Tensor"),
    }
}
_IN_PLACE: Final = ("increment", "scale")  # with one input and one output


class Alike:
    """Groups of persistables with the same update rule. Each run checks which of them have equal values."""

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        self._groups = groups
        self.group_of = {n: index for index, group in enumerate(groups) for n in group}

    def find_same(self, values: Mapping[int, Any]) -> dict[int, int]:
        """Return the positions that share an array with another, each with the first such position."""
        same = {}
        for group in self._groups:
            first: dict[int, int] = {}
            for position in group:
                value = values.get(position)
                if value is not None and first.setdefault(id(value), position) != position:
                    same[position] = first[id(value)]
        return same


def find_alike(plan: CompiledPlan, start: int, stop: int, small: set[int]) -> Alike:
    """Return groups of persistables that the steps ``start`` to ``stop`` update by the same rule."""
    writers: dict[int, list[int]] = {}
    for index in range(start, stop):
        for position in plan.writes[index] & small:
            writers.setdefault(position, []).append(index)
    groups: dict[Any, list[int]] = {}
    for position, (index, *others) in sorted(writers.items()):
        if not others:
            for rule in _find_rules(plan, plan.steps[index].op, position):
                groups.setdefault(rule, []).append(position)
    return Alike([group for group in groups.values() if len(group) > 1])


def _find_rules(plan: CompiledPlan, op: Operator, position: int) -> Iterator[Any]:
    """Yield the rules that compute a persistable from its old value and constants alone."""
    if op.type in _IN_PLACE:
        names = {*op.input_arg_names, *op.output_arg_names}
        if len(names) == 1 and plan.layout.get_position(op.block, *names) == position:
            attrs = {name: value for name, value in op.attrs.items() if not name.startswith("op_")}
            yield op.type, repr(sorted(attrs.items()))
    for output, (source, attribute, tensor) in _OWN.get(op.type, {}).items():
        names = {*op.input(source), *op.output(output)}
        if op.input(tensor) or len(names) != 1:
            continue
        if plan.layout.get_position(op.block, *names) == position:
            yield op.type, output, op.attrs.get(attribute)
