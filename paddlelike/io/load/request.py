"""The request of a load: its variables, rules and source."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.io.contents.directory import DirectoryContents
from paddlelike.io.contents.file import FileContents
from paddlelike.io.contents.interface import Contents
from paddlelike.io.partition import get_partition
from paddlelike.io.planning.load_plan import LoadPlan
from paddlelike.io.planning.naming import assign_names
from paddlelike.io.planning.planner import make_plan
from paddlelike.io.rules.rules import Rules
from paddlelike.io.select import is_persistable
from paddlelike.io.verify import NO_COMPARISON, Comparison, get_record
from paddlelike.storage.location import locate

__all__ = ["LoadRequest", "list_names", "make_request", "open_contents"]

Path = str | os.PathLike[str]


class LoadRequest(NamedTuple):
    """The variables and the rules of a load.

    Attributes
    ----------
    names
        The names of the values in a combined file, if they were given.
    view
        Returns the part of a source that this process reads; None: all of it.
    notes
        Lines for the report.
    reader
        The name of the process, such as a parameter server, as the prefix of errors.
    """

    program: Program
    variables: list[Variable]
    rules: Rules
    strict: bool
    names: list[str] | None
    view: Callable[[Contents], Contents] | None = None
    notes: tuple[str, ...] = ()
    reader: str = ""

    def restrict(self, contents: Contents) -> Contents:
        """Return the part of a source that this process reads."""
        return contents if self.view is None else self.view(contents)

    def plan(self, contents: Contents) -> LoadPlan:
        """Return the plan of this load from ``contents``."""
        unnamed = contents.unnamed
        if unnamed is not None:
            by_name = not self.strict or len(self.rules) > 0
            assign_names(unnamed, self.variables, self.names, by_name=by_name)
        everything = {v.name: v for v in self.program.list_vars()} if self.rules else {}
        everything |= {variable.name: variable for variable in self.variables}
        return make_plan(contents, self.variables, self.rules, strict=self.strict, find=everything.get)


def make_request(
    program: Program,
    chosen: list[Variable],
    rules: Rules,
    strict: bool,
    names: list[str] | None,
    where: object,
) -> LoadRequest:
    """Return the request of a load; of a distributed program, this process's share of it.

    Raises LoadError when none of the variables is in this process.
    """
    partition = None
    if isinstance(where, str | os.PathLike):
        partition = get_partition(program, locate(where).path)
    if partition is None:
        return LoadRequest(program, chosen, rules, strict, names)
    share = partition.plan_load(chosen, str(where))
    return LoadRequest(
        program,
        share.variables,
        rules + share.rules,
        strict,
        names,
        view=share.view,
        notes=share.notes,
        reader=share.reader,
    )


def list_names(given: Iterable[Variable | str] | Program | None) -> list[str] | None:
    """Return the names that the argument ``names`` of a load means."""
    if given is None:
        return None
    values = [v for v in given.list_vars() if is_persistable(v)] if isinstance(given, Program) else given
    return [value if isinstance(value, str) else value.name for value in values]


def open_contents(
    dirname: Path | None, filename: str | bytes | None, comparison: Comparison = NO_COMPARISON
) -> Contents:
    """Return the source that ``dirname`` and ``filename`` of a load mean.

    Raises
    ------
    MissingFileError
        There is no such directory or file.
    LoadError
        The file is damaged, or of no format that can be loaded.
    TypeError
        There is no ``dirname``, and ``filename`` is not bytes.
    """
    if dirname is None:
        if not isinstance(filename, bytes | bytearray | memoryview):
            raise TypeError("without dirname, filename is the bytes that were saved")
        return FileContents(bytes(filename))
    where = locate(dirname)
    if filename is None:
        return DirectoryContents(where, comparison.records, complete=comparison.complete)
    name = os.fsdecode(filename)
    record = get_record(where, name, needed=False)
    return FileContents(
        name,
        where,
        verify=comparison.complete or comparison.covers([name]),
        record=record,
        own_checksums=comparison is not NO_COMPARISON,
    )
