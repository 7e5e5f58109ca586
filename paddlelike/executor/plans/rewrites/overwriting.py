"""Results written over an input that no later step uses and that has no other references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any, Final

import numpy as np

from paddlelike.executor.plans.binding import make_taker
from paddlelike.executor.plans.frame import Binding, Frame, Run, Step, flatten_positions
from paddlelike.executor.plans.layout import Layout

Array = np.ndarray[Any, Any]

LEAST: Final = 64 << 10  # bytes; smaller arrays are allocated and filled within the cache


def overwrite_inputs(step: Step, hollow: Sequence[int], layout: Layout) -> Step:
    """Return a step that writes its result over an input where its operator and the plan allow it.

    Each run checks that no other object refers to the array (:func:`is_unshared`); a small or shared array is
    left unchanged. ``hollow`` are the values that later steps read only for their shape.
    """
    binding = step.binding
    if binding is None or len(binding.outputs) != 1:
        return step
    target = binding.outputs[0]
    kernel = binding.cls.make_overwriting_kernel(binding.keywords)
    unused = {*binding.dead, *hollow}
    candidates = tuple(dict.fromkeys(at for at in flatten_positions(binding.inputs) if at in unused))
    if kernel is None or not candidates or not isinstance(target, int) or target < 0:
        return step
    if target in layout.persistables or any(at in layout.persistables for at in candidates):
        return step
    run = _bind(kernel, binding, candidates, target, step.run)
    names = dict.fromkeys(step.op.input_arg_names)
    over = {layout.get_position(step.op.block, name): name for name in names}
    return step._replace(
        run=run,
        binding=binding._replace(candidates=candidates),
        overwrites=tuple(over[at] for at in candidates),
    )


def _bind(
    kernel: Callable[..., bool], binding: Binding, candidates: tuple[int, ...], target: int, run_plain: Run
) -> Run:
    take, share, dead = make_taker(binding.inputs), binding.share, binding.dead

    def run(frame: Frame) -> None:
        values = frame.values
        for position in candidates:
            array = values[position]
            if type(array) is np.ndarray and array.nbytes >= LEAST and is_unshared(array):
                if not kernel(array, *take(values)):
                    continue
                values[target] = array
                if share is not None and frame.lods:
                    share(frame.lods, array)
                for at in dead:
                    values[at] = None
                return
        run_plain(frame)

    return run


def is_unshared(array: Array) -> bool:
    """Return whether only one list and one local variable of the caller refer to an array.

    A view refers to the array that owns the memory, so memory with any other view is shared. Without
    reference counts like CPython's, every array counts as shared.
    """
    if getrefcount(array) != _REFERENCES:
        return False
    base = array.base
    if base is None:
        return bool(array.flags.writeable)
    return (
        type(base) is np.ndarray
        and base.base is None
        and getrefcount(base) == _REFERENCES_OF_BASE
        and bool(array.flags.writeable)
    )


def _count(array: Array) -> tuple[int, int]:
    """Return the reference counts that :func:`is_unshared` compares."""
    references = getrefcount(array)
    base = array.base
    return references, getrefcount(base)


def _calibrate() -> tuple[int, int]:
    """Return the reference counts of an array in one list and one variable, and of the array it views."""
    values = [np.zeros(4)[1:]]
    array = values[0]
    return _count(array)


_REFERENCES, _REFERENCES_OF_BASE = _calibrate()
