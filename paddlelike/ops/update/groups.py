"""Updates of several parameters at once.

A call of numpy takes a third of a microsecond however small its arrays are, and Adam takes thirteen calls. So
small parameters of an optimizer are joined in flat arrays, updated there, and copied back. Every element sees
the same operations as alone, hence the same bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from paddlelike.framework.opdef import Array, FlatKernel, GroupKernel, Slot
from paddlelike.ops.update.rules import Step

#: Elements of a parameter; larger ones are updated in place: copying them takes longer than the calls.
SMALL: Final = 1 << 9
_FEW: Final = 3  # up to this count, small parameters are updated in place
_SHORT: Final = 3  # arrays of a short formula (SGD, Momentum): copies cost more than its few calls
_FLAT: Final = 1 << 16  # elements of a flat array, so that those of one update stay in the cache

Arrays = Sequence[Array]


class _Rule(Protocol):
    """The parts of an update operator's class that this module uses."""

    @property
    def input_slots(self) -> tuple[Slot, ...]: ...

    @property
    def elements(self) -> tuple[str, ...]: ...

    @property
    def inplace(self) -> Mapping[str, str]: ...

    @property
    def read_step(self) -> Callable[..., Step]: ...

    def list_elements(self, keywords: Mapping[str, Any]) -> tuple[str, ...]: ...

    def move_on(self, *others: Any, **keywords: Any) -> tuple[Any, ...]: ...


def make_group_kernel(op: _Rule, keywords: Mapping[str, Any]) -> GroupKernel:
    """Return a function that updates several parameters; see ``OpDef.make_group_kernel``."""
    names = [slot.name for slot in op.input_slots]
    elements = op.list_elements(keywords)
    take_elements = _make_getter([names.index(name) for name in elements])
    others = [index for index, name in enumerate(names) if name not in op.elements]
    moved = [index for index in others if names[index] in op.inplace.values()]
    take_others = _make_getter(others)

    def run(members: Sequence[Sequence[Any]]) -> bool:
        parameters = [take_elements(member) for member in members]
        first = take_others(members[0])
        if not _fit(parameters) or not _are_alike(first, map(take_others, members[1:])):
            return False
        step = op.read_step(*first, **keywords)
        op.move_on(*first, **keywords)
        for index in moved:
            value = members[0][index]
            for member in members[1:]:
                member[index][...] = value
        _update(step, parameters)
        return True

    return run


def make_flat_kernel(op: _Rule, keywords: Mapping[str, Any]) -> FlatKernel:
    """Return a function that updates parameters in one flat array; see ``OpDef.make_flat_kernel``."""
    names = [slot.name for slot in op.input_slots]
    param, once, *state = (names.index(name) for name in op.list_elements(keywords))
    others = [index for index, name in enumerate(names) if name not in op.elements]
    moved = [index for index in others if names[index] in op.inplace.values()]
    shared = tuple(index for index in others if index not in moved)
    alike = 1 + len(state)

    def run(kept: Sequence[Array], grad: Array, values: Sequence[Any]) -> bool:
        if any(value is not None and (type(value) is not np.ndarray or value.size != 1) for value in values):
            return False
        elements, powers = kept[:alike], kept[alike:]
        if any((power != power[0]).any() for power in powers):
            return False
        by_slot = dict(zip(shared, values, strict=True))
        by_slot.update((index, power[:1]) for index, power in zip(moved, powers, strict=True))
        given = [by_slot[index] for index in others]
        step = op.read_step(*given, **keywords)
        op.move_on(*given, **keywords)
        for power in powers:
            power[1:] = power[0]
        arrays = elements[0], grad, *elements[1:]
        for start in range(0, len(grad), _FLAT):
            step.update(*(array[start : start + _FLAT] for array in arrays))
        return True

    return FlatKernel((param, *state, *moved), alike, once, shared, run)


def _make_getter(indexes: list[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    if len(indexes) > 1:
        return operator.itemgetter(*indexes)
    return lambda member: [member[index] for index in indexes]


def _fit(parameters: list[Sequence[Any]]) -> bool:
    """Return whether the arrays of each parameter have one shape, and all of them one dtype."""
    dtype = getattr(parameters[0][0], "dtype", None)
    for arrays in parameters:
        shape = getattr(arrays[0], "shape", None)
        for array in arrays:
            if type(array) is not np.ndarray or array.shape != shape or array.dtype is not dtype:
                return False
    return True


def _are_alike(first: Sequence[Any], rest: Iterable[Sequence[Any]]) -> bool:
    """Return whether all parameters have the same learning rate and the same powers of beta."""
    if any(one is not None and (type(one) is not np.ndarray or one.size != 1) for one in first):
        return False
    values = [None if one is None else one.item() for one in first]
    for others in rest:
        for one, value, other in zip(first, values, others, strict=True):
            if other is one:
                continue
            if one is None or other is None or other.shape != one.shape or other.dtype is not one.dtype:
                return False
            if other.item() != value:
                return False
    return True


def _update(step: Step, parameters: list[Arrays]) -> None:
    """Update parameters; the arrays of each are Param, Grad, and the state."""
    small: list[Arrays] = []
    if len(parameters[0]) > _SHORT:
        small = [arrays for arrays in parameters if arrays[0].size <= SMALL]
        small = small if len(small) > _FEW else []
    for arrays in parameters:
        if not small or arrays[0].size > SMALL:
            step.update(*arrays)
    for batch in _split(small):
        flat = [np.concatenate(arrays, axis=None) for arrays in zip(*batch, strict=True)]
        step.update(*flat)
        start = 0
        for param, _, *state in batch:
            stop = start + param.size
            for target, source in zip((param, *state), (flat[0], *flat[2:]), strict=True):
                piece = source[start:stop]
                target[...] = piece if target.ndim == 1 else piece.reshape(target.shape)
            start = stop


def _split(parameters: list[Arrays]) -> list[list[Arrays]]:
    """Return the parameters in batches of no more than _FLAT elements together."""
    batches: list[list[Arrays]] = []
    room = 0
    for arrays in parameters:
        size = arrays[0].size
        if size > room:
            batches.append([])
            room = _FLAT
        batches[-1].append(arrays)
        room -= size
    return batches
