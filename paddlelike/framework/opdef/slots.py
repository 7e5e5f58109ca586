"""Slots: the named places for variables in an operator, and how their variables become arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from paddlelike.core.dtypes import VarType

Array = np.ndarray[Any, Any]
LoD = list[list[int]]  # offsets per level, as Paddle stores them
Value = TypeVar("Value")

GRAD: Final = "@GRAD"
RECOMPUTED: Final = ".subprog_"  # in the name of what a forward operator computes again, before a number
NO_LOD: Final = -1  # the LoD level of an output that an operator leaves as it is
EMPTY: Final = "@EMPTY@"  # Paddle's name for a gradient that is not wanted


def grad_name(name: str) -> str:
    """Return the name of the gradient of a variable, or of the gradient slot of a slot."""
    return name + GRAD


class Spec(NamedTuple):
    """Shape, dtype and LoD level of a variable at build time; a dim of -1 is known at run time only."""

    shape: tuple[int, ...]
    dtype: VarType
    lod_level: int | None = None  # None: as the operator's ``lod`` says; NO_LOD: not set
    kind: VarType | None = None  # None: leave the variable's kind as it is


class Slot(NamedTuple):
    """A named place for variables in an operator."""

    name: str
    several: bool = False
    optional: bool = False

    @classmethod
    def parse(cls, text: str) -> Slot:
        """Read ``"X"``, ``"X*"`` (several variables), ``"X?"`` (may be absent) or ``"X*?"`` (both)."""
        name = text.rstrip("*?")
        return cls(name, "*" in text[len(name) :], "?" in text[len(name) :])


def make_arguments(
    slots: Iterable[Slot],
    names: Mapping[str, Sequence[str]],
    value_of: Callable[[str], Value],
    absent: Any = None,
) -> list[Any]:
    """Return one argument per slot, as the functions of an operator take them.

    Parameters
    ----------
    names
        The variables by slot.
    value_of
        Gives the value of a variable: its array, its Spec, or where a plan keeps it.
    absent
        Stands for a variable that is not there: the slot is empty, or its name is ``EMPTY``.
    """
    found: list[Any] = []
    for slot in slots:
        values = [absent if name == EMPTY else value_of(name) for name in names.get(slot.name, ())]
        found.append(values if slot.several else values[0] if values else absent)
    return found


def name_results(
    slots: Sequence[Slot], names: Mapping[str, Sequence[str]], results: Any
) -> Iterator[tuple[Slot, str, Any]]:
    """Yield ``(slot, variable, result)`` for what a function of an operator returned; None is left out.

    A function with one output slot returns its result, with several a tuple; a slot for several variables
    has a list of results, or one Spec for the first of them.
    """
    for slot, result in zip(slots, (results,) if len(slots) == 1 else results, strict=True):
        many = result if slot.several and not isinstance(result, Spec | None) else [result]
        for name, one in zip(names.get(slot.name, ()), many, strict=False):
            if one is not None:
                yield slot, name, one
