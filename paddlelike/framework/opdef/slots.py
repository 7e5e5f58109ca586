"""Slots, the named places for variables of an operator; and the context through which a kernel accesses the
run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from paddlelike.core import Scope, VarType

Array = np.ndarray[Any, Any]
LoD = list[list[int]]  # offsets per level, as Paddle stores them
Value = TypeVar("Value")

GRAD: Final = "@GRAD"
RECOMPUTED: Final = ".subprog_"  # in names of values that the backward pass computes again, before a number
NO_LOD: Final = -1  # LoD level of an output whose level the operator leaves unchanged
EMPTY: Final = "@EMPTY@"  # Paddle's name for an unwanted gradient


def grad_name(name: str) -> str:
    """Return the name of the gradient of a variable, or of the gradient slot of a slot.

    Parameters
    ----------
    name
        The name of a variable, or of an operator's slot.

    Returns
    -------
    str
        The name, followed by ``@GRAD``.

    See Also
    --------
    fluid.framework.variable_kind, fluid.framework.Parameter

    >>> grad_name("fc_0.w_0")
    'fc_0.w_0@GRAD'
    """
    return name + GRAD


def grad_names(names: Iterable[str]) -> list[str]:
    """Return the names of the gradients of variables."""
    return [name + GRAD for name in names]


class Spec(NamedTuple):
    """Shape, dtype and LoD level of a variable at build time; a dim of -1 is known only at run time."""

    shape: tuple[int, ...]
    dtype: VarType
    lod_level: int | None = None  # None follows the operator's ``lod``; NO_LOD sets nothing
    kind: VarType | None = None  # None leaves the variable's kind unchanged


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
        Returns the value of a variable: its array, its Spec, or its position in a plan.
    absent
        The argument for a missing variable: the slot is empty, or the name is ``EMPTY``.
    """
    found: list[Any] = []
    for slot in slots:
        values = [absent if name == EMPTY else value_of(name) for name in names.get(slot.name, ())]
        found.append(values if slot.several else values[0] if values else absent)
    return found


def name_results(
    slots: Sequence[Slot], names: Mapping[str, Sequence[str]], results: Any
) -> Iterator[tuple[Slot, str, Any]]:
    """Yield ``(slot, variable, result)`` for the results of an operator's function, except None.

    A function with one output slot returns its result, with several a tuple; a slot for several variables
    has a list of results, or one Spec for the first of them.
    """
    for slot, result in zip(slots, (results,) if len(slots) == 1 else results, strict=True):
        many = result if slot.several and not isinstance(result, Spec | None) else [result]
        for name, one in zip(names.get(slot.name, ()), many, strict=False):
            if one is not None:
                yield slot, name, one


class OpView(Protocol):
    """The part of a program's operator that kernels and shape rules of gradients may read."""

    type: str

    @property
    def attrs(self) -> Mapping[str, Any]: ...
    def input(self, slot: str) -> list[str]: ...
    def output(self, slot: str) -> list[str]: ...


class Context(Protocol):
    """The first argument of a kernel whose first parameter is ``ctx``, before its arrays."""

    @property
    def op(self) -> OpView:
        """The operator that runs."""

    @property
    def scope(self) -> Scope:
        """The scope of the run: holds the persistables, or has a parent that does."""

    def lod(self, slot: str, index: int = 0) -> LoD:
        """Return the LoD (offsets) of a variable of an input slot; [] when it has none."""

    def set_lod(self, slot: str, lod: LoD, index: int = 0) -> None:
        """Set the LoD of a variable of an output slot."""

    def read(self, name: str) -> Any:
        """Return the value of any variable this operator can see, or None if it has no value."""

    def read_lod(self, name: str) -> LoD:
        """Return the LoD of any variable this operator can see."""

    def write(self, name: str, value: Any, lod: LoD | None = None, *, fresh: bool = False) -> None:
        """Set any variable this operator can see; a ``fresh`` array has no other reference."""

    def run_block(self, index: int) -> None:
        """Run a sub-block of the program on the same values."""

    def clear(self, index: int) -> None:
        """Delete the values of a sub-block's own variables, since every step begins without them."""

    def inside(self, index: int) -> Context:
        """Return the context of a sub-block, whose variables hide outer variables of the same name."""

    def owns(self, name: str) -> bool:
        """Return whether the block of this context has a variable of that name; outer blocks do not count."""

    def is_read(self, slot: str) -> bool:
        """Return whether any operator of the run reads the variable in an output slot."""

    def snapshot(self, index: int) -> Any:
        """Return the values of a sub-block's own variables."""

    def snapshot_overwritten(self) -> Any:
        """Return a snapshot of the outer variables that the sub-block reads and then overwrites. Counters are
        left out: the gradient of the block reverts them.
        """

    def reveal(self, snapshot: Any) -> None:
        """Give gradients of earlier operators the values from before a block overwrote them."""

    def restore(self, snapshot: Any) -> None:
        """Put the values of a snapshot back."""

    def exchange(self, snapshot: Any) -> Any:
        """Put the values of a snapshot back; return a snapshot of the values that they replace."""

    def random(self, seed: int) -> Any:
        """Return a generator that starts at ``seed``; for 0 the scope's own generator, which then
        advances.
        """

    def service(self, name: str) -> Any:
        """Return a service that the executor provides to operators (files, remote), or None without it."""
