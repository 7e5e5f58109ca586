"""From a kernel to a step: one function of the frame, made for the form of its inputs and outputs.

Most operators take a few arrays and give one; for these the step is little more than the call itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from paddlelike.core.tensor import LoD
from paddlelike.executor.frame import Frame, keep

__all__ = ["Run", "Share", "Store", "Take", "bound", "storer", "taker"]

Numbers = Sequence[int | list[int]]  # of values; a list for a slot that holds several
Run = Callable[[Frame], None]
Take = Callable[[list[Any]], Any]  # a sequence, one item per slot
Store = Callable[[Frame, Any], None]
Share = Callable[[dict[int, LoD], Any], None]


def taker(numbers: Numbers, copied: frozenset[int] = frozenset()) -> Take:
    """A function that takes the inputs out of the values, one item per slot.

    ``copied``: positions of inputs that the kernel may write into, but that must stay.
    """
    take = _taker(numbers)
    if not copied:
        return take
    return lambda values: [copy(v) if i in copied else v for i, v in enumerate(take(values))]


def _taker(numbers: Numbers) -> Take:
    flat = [number for number in numbers if isinstance(number, int)]
    if len(flat) < len(numbers):
        return lambda values: [
            [values[n] for n in number] if isinstance(number, list) else values[number] for number in numbers
        ]
    if len(flat) > 1:
        return operator.itemgetter(*flat)
    return lambda values: [values[number] for number in flat]


def storer(
    targets: Numbers, *, several: Sequence[bool], kept: frozenset[int], copies: bool, fresh: bool
) -> Store:
    """A function that puts the results of a kernel where they belong.

    Parameters
    ----------
    targets
        Numbers by slot; -1: nobody wants the result.
    several
        Which slots hold several values.
    kept
        The persistables among the targets: they go into the scope.
    copies
        The results may share memory with something that is overwritten later.
    fresh
        The results belong to nobody else.
    """
    single = len(targets) == 1
    if single and isinstance(targets[0], int) and not copies:
        target = targets[0]
        if target in kept:

            def store_kept(frame: Frame, result: Any) -> None:
                if result is not None:
                    frame.values[target] = keep(frame, target, result, fresh=fresh)

            return store_kept

        def store_one(frame: Frame, result: Any) -> None:
            frame.values[target] = result

        return store_one if target >= 0 else (lambda frame, result: None)

    def store(frame: Frame, result: Any) -> None:
        results = (result,) if single else result
        for target, value, many in zip(targets, results, several, strict=True):
            if value is None:
                continue
            pairs: Any = zip(target, value, strict=False) if many else ((target, value),)  # type: ignore[arg-type]
            for number, one in pairs:
                if number < 0 or one is None:
                    continue
                if copies:
                    one = copy(one)
                frame.values[number] = keep(frame, number, one, fresh=fresh) if number in kept else one

    return store


def bound(
    kernel: Callable[..., Any],
    numbers: Numbers,
    copied: frozenset[int],
    store: Store,
    share: Share | None,
    dead: tuple[int, ...],
    target: int | None,
) -> Run:
    """The step of a kernel that needs nothing of its run.

    Parameters
    ----------
    numbers, copied
        See :func:`taker`.
    share
        Hands the LoDs of inputs on to outputs.
    dead
        The values that nothing needs after this step.
    target
        The number of the only result, where it just goes into the values; None: ``store`` it.
    """
    flat = [number for number in numbers if isinstance(number, int)]
    if target is None or copied or len(flat) < len(numbers) or len(flat) not in (1, 2):
        take = taker(numbers, copied)

        def run(frame: Frame) -> None:
            values = frame.values
            result = kernel(*take(values))
            if share is not None and frame.lods:
                share(frame.lods, result)
            store(frame, result)
            for number in dead:
                values[number] = None

    elif len(flat) == 1:
        (a,) = flat

        def run(frame: Frame) -> None:
            values = frame.values
            values[target] = result = kernel(values[a])
            if share is not None and frame.lods:
                share(frame.lods, result)
            for number in dead:
                values[number] = None

    else:
        a, b = flat

        def run(frame: Frame) -> None:
            values = frame.values
            values[target] = result = kernel(values[a], values[b])
            if share is not None and frame.lods:
                share(frame.lods, result)
            for number in dead:
                values[number] = None

    return run


def copy(value: Any) -> Any:
    """An array that shares no memory with ``value``; what is no array is taken as it is."""
    return value.copy() if isinstance(value, np.ndarray) else value
