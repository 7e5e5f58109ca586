"""Programs with variables in other processes: a higher floor says how they are saved and loaded.

A trainer of a distributed program holds some of its variables, servers hold the others, in slices. What a
save must fetch from them, and which rows of which file a load must bring, :mod:`paddlelike.distributed`
knows: its ``find_elsewhere`` is the hook of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.hooks import find_provider
from paddlelike.io.load.contents import Contents
from paddlelike.io.report import Moved
from paddlelike.io.rules.rules import Rule
from paddlelike.storage.local.writing import Buffer
from paddlelike.storage.options import SaveOptions

__all__ = ["Elsewhere", "Extra", "Loading", "Saving", "elsewhere_of"]


@dataclass(frozen=True)
class Extra:
    """A file of a save whose bytes come from other processes, while it is written."""

    name: str
    buffers: Iterable[Buffer]
    facts: Mapping[str, Any]
    moved: Moved


@dataclass(frozen=True)
class Saving:
    """What a save of a distributed program is in this process.

    Attributes
    ----------
    local
        The variables whose values are here.
    extras
        What comes from elsewhere.
    state
        More for the manifest.
    idle
        Why this process saves nothing; None: it does.
    """

    local: list[Variable]
    extras: list[Extra] = field(default_factory=list)
    state: Mapping[str, Any] = field(default_factory=dict)
    idle: str | None = None


@dataclass(frozen=True)
class Loading:
    """What a load of a distributed program is in this process.

    Attributes
    ----------
    variables
        Those that have their values here.
    view
        What a source looks like from here: names and rows as this process has them; None: as it is.
    rules
        What may be missing.
    notes
        For the report.
    """

    variables: list[Variable]
    view: Callable[[Contents], Contents] | None = None
    rules: tuple[Rule, ...] = ()
    notes: tuple[str, ...] = ()


class Elsewhere(Protocol):
    """What a distributed program's saves and loads are."""

    takes_slices: bool  # a load reads some rows of each file, not all

    def saving(
        self, executor: Any, chosen: list[Variable], where: str, part: str | None, options: SaveOptions
    ) -> Saving:
        """Of a save of these variables of the program into ``where``.

        ``part`` is what they are ("params", "persistables").
        """

    def predicting(self, program: Program) -> Program:
        """The program for a process without servers, as far as predicting needs it."""

    def loading(self, chosen: list[Variable], where: str) -> Loading:
        """Of a load of these variables of the program from ``where``. Raises LoadError if there is none."""


def elsewhere_of(program: Program) -> Elsewhere | None:
    """How ``program`` is saved and loaded where it is distributed; None for an ordinary one."""
    find: Callable[[Program], Elsewhere | None] | None = find_provider("find_elsewhere")
    return None if find is None else find(program)
