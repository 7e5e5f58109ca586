"""Rewrite steps: drop dims, keep only the shape of values, and copy LoDs to outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any, Final, NamedTuple, cast

import numpy as np

from paddlelike.core import Array, LoD
from paddlelike.executor.plans.frame import Frame, Share, Step
from paddlelike.framework import Block, Operator, Variable
from paddlelike.framework.graph.variable import HOLDERS
from paddlelike.framework.opdef import EMPTY, GRAD, OpDef

_FIRST: Final = 2_005_000  # Paddle 2.5.0, as programs record it


def drop_dims(kernel: Callable[..., Any], cls: type[OpDef], op: Operator, block: Block) -> Callable[..., Any]:
    """Return a kernel whose results have no dims if the program declares them so."""
    if block.program.paddle_version < _FIRST:
        return kernel
    places = [
        [_has_no_dims(block._find_var_recursive(name)) for name in op.outputs.get(slot.name, [])]
        for slot in cls.output_slots
    ]
    if not any(any(place) for place in places):
        return kernel
    single = len(places) == 1

    def run(*args: object) -> object:
        result = kernel(*args)
        results = (result,) if single else result
        shaped = tuple(
            None
            if value is None
            else [_drop(v) if no_dims else v for v, no_dims in zip(value, place, strict=False)]
            if slot.several
            else _drop(value)
            if any(place)
            else value
            for slot, value, place in zip(cls.output_slots, results, places, strict=True)
        )
        return shaped[0] if single else shaped

    return run


def _has_no_dims(variable: Variable | None) -> bool:
    return variable is not None and variable.type not in HOLDERS and variable.shape == ()


def _drop(value: object) -> object:
    """Return a result of one element without dims; return other results unchanged."""
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        return np.asarray(value).reshape(())
    return value


SMALL: Final = 16 << 10  # bytes; smaller arrays stay as they are
_RESHAPES: Final = frozenset({"reshape", "reshape2"})


def hollow_after(step: Step, positions: tuple[int, ...]) -> Step:
    """Return a step that afterwards replaces the arrays at some positions by arrays without data.

    The new arrays have the shape and dtype of the replaced arrays, and one zero for all elements.
    """
    if not positions:
        return step
    run_before = step.run

    def run(frame: Frame) -> None:
        run_before(frame)
        values = frame.values
        for position in positions:
            value = values[position]
            if type(value) is np.ndarray and value.nbytes > SMALL:
                values[position] = make_hollow(value)

    binding = step.binding and step.binding._replace(hollow=positions)
    return step._replace(run=run, binding=binding)


def make_hollow(array: Array) -> Array:
    """Return an array with the shape and dtype of another one, whose elements are all one shared zero."""
    return np.broadcast_to(np.zeros((), array.dtype), array.shape)


def find_reshaped(ops: Iterable[Operator]) -> set[str]:
    """Return the variables that a reshape overwrites with their own reshaped values."""
    return {op.input("X")[0] for op in ops if op.type in _RESHAPES and op.input("X") == op.output("Out")}


def take_in_shape(
    kernel: Callable[..., Any], cls: type[OpDef], op: Operator, reshaped: Set[str]
) -> Callable[..., Any]:
    """Return a kernel that gets its forward value reshaped to the shape of the gradient."""
    if not cls.by_element or cls.forward_of is None or reshaped.isdisjoint(op.input_arg_names):
        return kernel
    if len(cls.input_slots) != 2:
        return kernel

    def run(value: Array, d_out: Array) -> object:
        same_size = value.shape != d_out.shape and value.size == d_out.size
        return kernel(value.reshape(d_out.shape) if same_size else value, d_out)

    return run


class _Pair(NamedTuple):
    source: int  # position of the input
    target: int  # position of the output
    path: tuple[int, ...]  # indexes that lead to the output in the kernel's result


def make_lod_sharer(cls: type[OpDef], op: Operator, get_position: Callable[[str], int]) -> Share | None:
    """Return a function that copies the LoD of an input to the outputs, or None when none is declared.

    The function takes the LoDs by position and the kernel's result. It skips results with another number of
    rows (of reshape, split, ...).
    """
    pairs = _collect_pairs(cls, op, get_position)
    if not pairs:
        return None

    def share(lods: dict[int, LoD], result: object) -> None:
        for source, target, path in pairs:
            lod = lods.get(source)
            if lod and (result is None or _has_rows(result, path, lod[-1][-1])):
                lods[target] = lod
            else:
                lods.pop(target, None)

    return share


def _collect_pairs(cls: type[OpDef], op: Operator, get_position: Callable[[str], int]) -> list[_Pair]:
    pairs = []
    single = len(cls.output_slots) == 1
    for index, slot in enumerate(cls.output_slots):
        names = op.inputs.get(cls.find_lod_source(slot.name) or "")
        if not names:
            continue
        each = slot.name.endswith(GRAD) and len(names) == len(op.outputs.get(slot.name, []))
        for item, out in enumerate(op.outputs.get(slot.name, [])):
            path = (() if single else (index,)) + ((item,) if slot.several else ())
            if out != EMPTY:
                source = names[item if each else 0]  # each gradient has the LoD of its variable
                pairs.append(_Pair(get_position(source), get_position(out), path))
    return pairs


def _has_rows(result: object, path: tuple[int, ...], rows: int) -> bool:
    """Return whether the value at ``path`` in a kernel's result is an array with that number of rows.

    One row also matches zero rows: ``ctc_align`` returns one row when no label is left.
    """
    for index in path:
        result = cast("Sequence[object]", result)[index]
    if not isinstance(result, np.ndarray) or not result.shape:
        return False
    is_xshape = result.shape[0] == 0 < len(result.shape) - 1  # it holds only dims: 0, then those of X
    return result.shape[0] in (rows, rows or 1) or (is_xshape and result.shape[1] == rows)
