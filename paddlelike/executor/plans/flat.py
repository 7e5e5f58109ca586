"""Updates of many small parameters on flat arrays, which keep the parameters and their state between runs.

For a small parameter, calling numpy takes longer than the arithmetic. At the first run the arrays of the
variables become parts of one flat array per slot; the scope, saves and loads see the same variables with the
same values. If another object refers to one of the arrays, none is moved, and the operators run one by one.
After a load has replaced values, the flat arrays are built again.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from sys import getrefcount
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array, LoDTensor, ScopeVariable, numpy_dtype
from paddlelike.executor.plans.frame import Frame, Run, Step
from paddlelike.framework.opdef import FlatKernel

_SMALL: Final = 64 << 10  # bytes; larger arrays keep a placement that speeds up saves
_MOVES: Final = 64  # attempts for one step: other programs may separate the arrays each time


class _Flat(NamedTuple):
    """The flat arrays of one step."""

    whole: tuple[Array, ...]  # by slot
    parts: tuple[Array, ...]  # the arrays of the variables, slot by slot
    shapes: list[tuple[int, ...]]  # of the parameters
    moves: int  # number of attempts


def is_small(step: Step) -> bool:
    """Return whether the parameter of an update is small enough to be joined with others."""
    binding = step.binding
    kernel = binding and binding.cls.make_flat_kernel(binding.keywords)
    if binding is None or kernel is None:
        return False
    name = step.op.input(binding.cls.input_slots[kernel.kept[0]].name)[0]
    variable = step.op.block._find_var_recursive(name)
    if variable is None or not variable.shape or min(variable.shape) < 1:
        return False
    return math.prod(variable.shape) * numpy_dtype(variable.dtype).itemsize < _SMALL


def bind_flat(parts: Sequence[Step], run_apart: Run) -> Run:
    """Return a function that runs updates on flat arrays; if that is impossible, it calls ``run_apart``."""
    bindings = [part.binding for part in parts if part.binding is not None]
    kernel = bindings[0].cls.make_flat_kernel(bindings[0].keywords)
    assert kernel is not None
    inputs = [binding.inputs for binding in bindings]
    if any(each[index] != inputs[0][index] for each in inputs for index in kernel.shared):
        return run_apart
    kept: list[Any] = [each[index] for index in kernel.kept for each in inputs]
    dead = [at for binding in bindings for at in binding.dead]
    once: list[Any] = [each[kernel.once] for each in inputs]
    take_kept, take_once = operator.itemgetter(*kept), operator.itemgetter(*once)
    shared: list[Any] = [inputs[0][index] for index in kernel.shared]
    first, count = kept[0], len(bindings)

    def run(frame: Frame) -> None:
        values, holders = frame.values, frame.holders
        flat = holders[first].flat
        if flat is None or not _is_in_place(take_kept(values), flat.parts):
            flat = None  # it refers to the arrays
            flat = _put_together(frame, kept, count, kernel)
        if flat is None or not _run_flat(kernel, flat, take_once(values), [values[at] for at in shared]):
            run_apart(frame)
            return
        for position in kept:
            holders[position]._value.version += 1
        for position in dead:
            values[position] = None

    return run


def _run_flat(kernel: FlatKernel, flat: _Flat, grads: Sequence[Any], shared: Sequence[Any]) -> bool:
    """Run a kernel on flat arrays. Return False, without a change, for gradients of another kind, shape or
    dtype.
    """
    if set(map(type, grads)) != {np.ndarray} or [grad.shape for grad in grads] != flat.shapes:
        return False
    grad = np.concatenate(grads, axis=None)
    return grad.dtype is flat.whole[0].dtype and kernel.run(flat.whole, grad, shared)


def _is_in_place(arrays: Sequence[Any], parts: Sequence[Array]) -> bool:
    return len(arrays) == len(parts) and all(map(operator.is_, arrays, parts))


def _put_together(frame: Frame, kept: list[int], count: int, kernel: FlatKernel) -> _Flat | None:
    """Move the arrays of the variables into one flat array. Return None if they cannot be moved."""
    holders = [frame.holders[position] for position in kept]
    moves = 1 + (holders[0].flat.moves if holders[0].flat is not None else 0)
    if moves > _MOVES:
        return None
    holders[0].flat = _Flat((), (), [], moves)
    arrays: list[Any] = [frame.values[position] for position in kept]
    if not all(_can_move(arrays, index, holder) for index, holder in enumerate(holders)):
        return None
    slots = [arrays[start : start + count] for start in range(0, len(arrays), count)]
    shapes = [array.shape for array in slots[0]]
    if not _fit(slots, shapes, kernel.alike):
        return None
    whole = tuple(np.concatenate(slot, axis=None) for slot in slots)
    parts = tuple(part for flat, slot in zip(whole, slots, strict=True) for part in _cut(flat, slot))
    for position, holder, part in zip(kept, holders, parts, strict=True):
        holder.value._array = frame.values[position] = part
    flat = holders[0].flat = _Flat(whole, parts, shapes, moves)
    return flat


def _can_move(arrays: list[Any], index: int, holder: ScopeVariable) -> bool:
    """Return whether only the variable, the frame and ``arrays`` refer to an array.

    Views of an array refer to it. Views of an array that is itself part of a larger one, as after a load, are
    not seen.
    """
    tensor = holder.value
    if type(arrays[index]) is not np.ndarray or type(tensor) is not LoDTensor:
        return False
    return tensor.held_array is arrays[index] and _count_references(arrays, index) == _REFERENCES


def _count_references(arrays: list[Any], index: int) -> int:
    return getrefcount(arrays[index])


def _calibrate() -> int:
    """Return the reference count of an array that only a tensor and two lists refer to."""
    values = [np.zeros(4)]
    tensor, arrays = LoDTensor(values[0]), list(values)
    return _count_references(arrays, 0) if tensor.held_array is arrays[0] else 0


_REFERENCES: Final = _calibrate()


def _fit(slots: list[list[Array]], shapes: list[tuple[int, ...]], alike: int) -> bool:
    """Return whether all arrays have one dtype, and each has its parameter's shape or one element."""
    dtype = slots[0][0].dtype
    if any(array.dtype is not dtype for slot in slots for array in slot):
        return False
    if any([array.shape for array in slot] != shapes for slot in slots[:alike]):
        return False
    return all(array.size == 1 for slot in slots[alike:] for array in slot)


def _cut(flat: Array, like: Sequence[Array]) -> list[Array]:
    """Cut a flat array into consecutive parts with the shapes of the given arrays; return the parts."""
    ends = list(itertools.accumulate(array.size for array in like))
    return [flat[end - array.size : end].reshape(array.shape) for end, array in zip(ends, like, strict=True)]
