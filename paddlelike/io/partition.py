"""Programs with variables in several processes, and this process's share of a save or load of them.

A trainer of a distributed program holds some of its variables; parameter servers hold the others, in slices.
The hook ``find_partition`` of :mod:`paddlelike.distributed` returns the values that a save must gather from
servers, and the rows of each file that a load must read. An ordinary program does not import that package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, Protocol

from paddlelike.framework import Program, Variable
from paddlelike.hooks import Hook
from paddlelike.io.contents.interface import Contents
from paddlelike.io.deltas.chain import FOLDER
from paddlelike.io.report import Moved
from paddlelike.io.rules.rule import Rule
from paddlelike.lazy import dataclass
from paddlelike.storage.interfaces import Buffer
from paddlelike.storage.location import is_remote, locate
from paddlelike.storage.problems import is_directory

if TYPE_CHECKING:
    from paddlelike.executor.run import Executor
    from paddlelike.storage.options import SaveOptions

_find_partition: Final[Hook[[Program], Partition | None]] = Hook("find_partition")

#: The folder of a saved directory in which servers save the shards of tables, as in Fluid.
TABLE_FOLDER: Final = "__lookup_table__"


@dataclass(frozen=True)
class GatheredFile:
    """A file of a save whose bytes come from other processes while it is written.

    Attributes
    ----------
    pull
        Returns the bytes in memory, to be compared with the saved ones, or None if the file is always written
        whole.
    """

    name: str
    buffers: Iterable[Buffer]
    facts: Mapping[str, Any]
    moved: Moved
    pull: Callable[[], bytes] | None = None


@dataclass(frozen=True)
class SaveShare:
    """This process's share of the save of a distributed program.

    Attributes
    ----------
    local
        The variables whose values are in this process.
    gathered
        The files whose values are in other processes.
    state
        Additional state for the manifest.
    idle
        The reason why this process saves nothing, or None if it saves.
    """

    local: list[Variable]
    gathered: list[GatheredFile] = field(default_factory=list)
    state: Mapping[str, Any] = field(default_factory=dict)
    idle: str | None = None


@dataclass(frozen=True)
class LoadShare:
    """This process's share of the load of a distributed program.

    Attributes
    ----------
    variables
        The variables whose values are in this process.
    view
        Returns a source with the names and rows of this process, or None to read the source unchanged.
    rules
        Rules for variables that may be missing.
    notes
        Lines for the report.
    reader
        The name of this process, the prefix of every error of the load, such as ``the server at a:6174``.
    done
        A function that is called when the values are in the scope.
    """

    variables: list[Variable]
    view: Callable[[Contents], Contents] | None = None
    rules: tuple[Rule, ...] = ()
    notes: tuple[str, ...] = ()
    reader: str = ""
    done: Callable[[], None] | None = None


class Partition(Protocol):
    """How the variables of a program are distributed over processes."""

    takes_slices: bool  # a load reads some rows of each file, not all

    def plan_save(
        self, executor: Executor, chosen: list[Variable], where: str, part: str | None, options: SaveOptions
    ) -> SaveShare:
        """Return this process's share of a save of ``chosen`` into ``where``.

        ``part`` names their kind ("params", "persistables"). Raises SaveError when this process cannot
        save them.
        """

    def plan_load(self, chosen: list[Variable], where: str) -> LoadShare:
        """Return this process's share of a load of ``chosen`` from ``where``.

        Raises LoadError when this process holds none of them.
        """

    def localize(self, program: Program) -> Program:
        """Return the part of the program that inference without servers needs."""


class WholePartition:
    """A partition whose process holds all variables itself during saves and after loads."""

    takes_slices = False

    def __init__(self, program: Program) -> None:
        self._program = program

    def plan_save(
        self, executor: Executor, chosen: list[Variable], where: str, part: str | None, options: SaveOptions
    ) -> SaveShare:
        """Return all variables."""
        return SaveShare(chosen)

    def plan_load(self, chosen: list[Variable], where: str) -> LoadShare:
        """Return all variables."""
        return LoadShare(chosen)

    def localize(self, program: Program) -> Program:
        """Return the program."""
        return program


def get_partition(program: Program, directory: str | None = None) -> Partition | None:
    """Return the partition of a program, or None for an ordinary one.

    An ordinary program that loads from a ``directory`` with shards of tables also has a partition, which
    reads the shards as whole variables.
    """
    if not (directory is not None and _has_shards(directory)) and not _is_distributed(program):
        return None
    return _find_partition.function(program)


def _is_distributed(program: Program) -> bool:
    is_marked = program._is_distributed or program._sharding is not None
    return is_marked or any(op.type == "listen_and_serv" for op in program.blocks[0].ops)


def _has_shards(directory: str) -> bool:
    """Return whether a directory may hold shards of tables, or chains of shards."""
    folders = (f"{TABLE_FOLDER}/", f"{FOLDER}/{TABLE_FOLDER}/")
    if is_remote(directory):
        return any(name.startswith(folders) for name in locate(directory).list_names())
    return any(is_directory(os.path.join(directory, one)) for one in folders)
