"""Bind a kernel to a frame: build the function that takes inputs, calls the kernel and stores the results.

Most operators take one or two arrays and return one; for these the function does little besides the call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from paddlelike.core import LoDTensor
from paddlelike.executor.plans.frame import Frame, Positions, Run, Share, write_persistable

Take = Callable[[list[Any]], Any]  # a sequence, one item per slot
Store = Callable[[Frame, Any], None]


def make_taker(positions: Positions, copied: frozenset[int] = frozenset()) -> Take:
    """Return a function that reads the inputs from the values, one item per slot.

    ``copied`` are the indexes of slots that the kernel may write into although their variables must not
    change.
    """
    take = _make_taker(positions)
    if not copied:
        return take
    return lambda values: [_copy(v) if i in copied else v for i, v in enumerate(take(values))]


def _make_taker(positions: Positions) -> Take:
    flat = [position for position in positions if isinstance(position, int)]
    if len(flat) < len(positions):
        return lambda values: [
            [values[item] for item in position] if isinstance(position, list) else values[position]
            for position in positions
        ]
    if len(flat) > 1:
        return operator.itemgetter(*flat)
    return lambda values: [values[position] for position in flat]


def make_storer(
    targets: Positions, *, several: Sequence[bool], kept: frozenset[int], copies: bool, fresh: bool
) -> Store:
    """Return a function that stores the results of a kernel.

    Parameters
    ----------
    targets
        Positions by slot; -1: the result is not used.
    several
        Whether each slot has several variables.
    kept
        The persistables among the targets, which are written into the scope.
    copies
        The results may share memory with a value that is overwritten later.
    fresh
        The results are new arrays without another owner.
    """
    if not copies:
        if len(targets) == 1:
            (target,) = targets
            if isinstance(target, int):
                return _make_storer_of_one(target, kept, fresh)
            if len(target) == 1 and target[0] in kept:  # a parameter that comes from a server
                store_kept = _make_storer_of_one(target[0], kept, fresh)
                return lambda frame, result: store_kept(frame, result[0] if result else None)
        elif not any(several):
            return _make_storer_of_each(targets, kept, fresh)
    return _make_storer_of_lists(targets, several, kept, copies, fresh)


def _make_storer_of_one(target: int, kept: frozenset[int], fresh: bool) -> Store:
    """Return a function that stores the only result."""

    def store_kept(frame: Frame, result: object) -> None:
        if result is not None and not _is_held(frame, target, result):
            frame.values[target] = write_persistable(frame, target, result, fresh=fresh)

    def store(frame: Frame, result: object) -> None:
        frame.values[target] = result

    if target in kept:
        return store_kept
    return store if target >= 0 else (lambda frame, result: None)


def _make_storer_of_each(targets: Positions, kept: frozenset[int], fresh: bool) -> Store:
    """Return a function that stores results of slots with one variable each."""
    used = [(index, at) for index, at in enumerate(targets) if isinstance(at, int) and at >= 0]
    temporary = [(index, target) for index, target in used if target not in kept]
    persistable = [(index, target) for index, target in used if target in kept]

    def store(frame: Frame, result: Sequence[object]) -> None:
        values = frame.values
        for index, target in temporary:
            if (value := result[index]) is not None:
                values[target] = value
        for index, target in persistable:
            if (value := result[index]) is not None and not _is_held(frame, target, value):
                values[target] = write_persistable(frame, target, value, fresh=fresh)

    return store


def _make_storer_of_lists(
    targets: Positions, several: Sequence[bool], kept: frozenset[int], copies: bool, fresh: bool
) -> Store:
    """Return a function that stores results of slots with any number of variables."""
    single = len(targets) == 1
    slots = [
        (target if isinstance(target, list) else [target], many)
        for target, many in zip(targets, several, strict=True)
    ]

    def store(frame: Frame, result: Sequence[Any]) -> None:
        results = (result,) if single else result
        for (positions, many), value in zip(slots, results, strict=True):
            if value is None:
                continue
            for position, one in zip(positions, value if many else (value,), strict=False):
                if position < 0 or one is None:
                    continue
                if copies:
                    one = _copy(one)
                if position in kept:
                    one = write_persistable(frame, position, one, fresh=fresh)
                frame.values[position] = one

    return store


def bind_kernel(
    kernel: Callable[..., Any],
    positions: Positions,
    copied: frozenset[int],
    store: Store,
    share: Share | None,
    dead: tuple[int, ...],
    target: int | None,
) -> Run:
    """Return the function that runs a kernel which does not use the context of the run.

    Parameters
    ----------
    positions, copied
        The same as for :func:`make_taker`.
    share
        Copies the LoDs of inputs to outputs.
    dead
        The positions of values that are not used after this step.
    target
        The position of the only result, if it is just a value. With None, ``store`` stores it.
    """
    flat = [position for position in positions if isinstance(position, int)]
    if target is None or copied or len(flat) < len(positions) or len(flat) not in (1, 2):
        take = make_taker(positions, copied)

        def run(frame: Frame) -> None:
            values = frame.values
            result = kernel(*take(values))
            if share is not None and frame.lods:
                share(frame.lods, result)
            store(frame, result)
            for position in dead:
                values[position] = None

    elif len(flat) == 1:
        (a,) = flat

        def run(frame: Frame) -> None:
            values = frame.values
            values[target] = result = kernel(values[a])
            if share is not None and frame.lods:
                share(frame.lods, result)
            for position in dead:
                values[position] = None

    else:
        a, b = flat

        def run(frame: Frame) -> None:
            values = frame.values
            values[target] = result = kernel(values[a], values[b])
            if share is not None and frame.lods:
                share(frame.lods, result)
            for position in dead:
                values[position] = None

    return run


def _is_held(frame: Frame, position: int, value: object) -> bool:
    """Return whether a persistable already is the array in the scope; if so, count a write."""
    tensor = frame.holders[position]._value
    if type(tensor) is LoDTensor and value is tensor._array:
        tensor.version += 1
        return True
    return False


def _copy(value: object) -> object:
    """Return a copy of an array; other values are returned unchanged."""
    return value.copy() if isinstance(value, np.ndarray) else value
