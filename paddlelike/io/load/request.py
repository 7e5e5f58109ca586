"""The options that every load takes besides Fluid's own arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from paddlelike.core import VarType
from paddlelike.foundation.keyword_options import KeywordOptions
from paddlelike.framework import Program, Variable
from paddlelike.framework.hints import LAYER, explain_shift
from paddlelike.io.calls import is_parameter, is_persistable
from paddlelike.io.contents.interface import Contents, Held
from paddlelike.io.load.source import Source
from paddlelike.io.partition import get_partition
from paddlelike.io.planning.load_plan import LoadPlan
from paddlelike.io.planning.naming import assign_names
from paddlelike.io.planning.planner import make_plan
from paddlelike.io.rules.rule import Rule
from paddlelike.io.rules.rules import Rules
from paddlelike.lazy import dataclass

Init = str | float | Mapping[str, str | float] | None


@dataclass(frozen=True, kw_only=True)
class LoadOptions(KeywordOptions):
    """The options of :func:`load_vars` and of all other loads.

    Attributes
    ----------
    strict
        If False, load the values that fit; the report lists those that are missing or do not fit.
    rename
        ``{name in the files: name in the program}``; also a list of variables that take the same value.
    rules
        :class:`Rules` for many names at once, with transposed, sliced, concatenated and overlapping values.
    skip
        Patterns of variables to leave unchanged and of files to ignore (``"fc_2.*"``).
    init
        The value of variables that the files do not hold: ``"keep"`` their value, ``"zero"``, a number, or
        ``{pattern: one of these}``. With ``strict=False`` it also applies to variables that do not fit.
    names
        The names of the values in a combined file, if these are not the selected variables; or the program
        that was saved.
    lazy
        Map files instead of reading them, copy-on-write; :mod:`paddlelike.io.contents.lazy` says what it
        costs.
    verify
        Compare the bytes with the manifest while they are read. With None, compare if there is a manifest and
        the load is not ``lazy``; files without a checksum are loaded, too. With True, a directory without a
        manifest or a file without a checksum is an error. With False, compare nothing.
    in_place
        Read into the variables' present arrays if shape and dtype match: no second model in memory, and a
        third of the time. Everything is still checked from the headers first; but if the disk then fails, or
        ``verify`` finds other bytes, the variables hold a mix, and the error says so.
    """

    strict: bool = True
    rename: Mapping[str, str | Sequence[str]] | None = None
    rules: Rules | Iterable[Rule] | None = None
    skip: str | Iterable[str] | None = None
    init: Init = None
    names: Iterable[Variable | str] | Program | None = None
    lazy: bool = False
    verify: bool | None = None
    in_place: bool = False


class LoadKeywords(TypedDict, total=False):
    """The types of the fields of :class:`LoadOptions`, for functions that take them as keywords."""

    strict: bool
    rename: Mapping[str, str | Sequence[str]] | None
    rules: Rules | Iterable[Rule] | None
    skip: str | Iterable[str] | None
    init: Init
    names: Iterable[Variable | str] | Program | None
    lazy: bool
    verify: bool | None
    in_place: bool


@dataclass(frozen=True)
class LoadRequest:
    """The arguments of a load; its plan follows from them and the headers of the source.

    Attributes
    ----------
    rules
        The rules of the options and of this process's share.
    view
        Returns the part of a source that this process reads, or None for all of it.
    notes
        Lines for the report.
    reader
        The name of the process, such as a parameter server, as the prefix of errors.
    done
        Called when the values are in the scope.
    """

    program: Program
    variables: list[Variable]
    source: Source
    options: LoadOptions
    rules: Rules
    view: Callable[[Contents], Contents] | None = None
    notes: tuple[str, ...] = ()
    reader: str = ""
    done: Callable[[], None] | None = None

    def restrict(self, contents: Contents) -> Contents:
        """Return the part of a source that this process reads."""
        return contents if self.view is None else self.view(contents)

    def plan(self, contents: Contents) -> LoadPlan:
        """Return the plan of this load from ``contents``."""
        strict = self.options.strict
        unnamed = contents.unnamed
        if unnamed is not None:
            by_name = not strict or len(self.rules) > 0
            assign_names(unnamed, self.variables, list_names(self.options.names), by_name=by_name)
        everything = {v.name: v for v in self.program.list_vars()} if self.rules else {}
        everything |= {variable.name: variable for variable in self.variables}
        plan = make_plan(contents, self.variables, self.rules, strict=strict, find=everything.get)
        if self.view is not None:  # a server: a pattern may match on another server
            return replace(plan, notes=())
        shift = None if self.rules or not plan else self._explain_shift(plan, contents)
        return plan if shift is None else replace(plan, notes=(*plan.notes, shift))

    def _explain_shift(self, plan: LoadPlan, contents: Contents) -> str | None:
        """Return the warning if layers seem to get the values of their neighbors, else None."""
        unused = [row.file for row in plan.others if row.what == "not requested" and row.file is not None]
        program = plan.steps[0].variable.block.program if plan.steps else self.program
        ours = {v.name: v.shape for v in program.list_vars() if is_parameter(v)}
        theirs = {step.variable.name: step.held[0].header.shape for step in plan.steps}
        if not theirs or not (unused or ours.keys() - theirs.keys()):
            return None
        kinds = {parameter[1] for parameter in map(LAYER.match, theirs) if parameter}
        for name in unused:
            layer = LAYER.match(name)
            if layer is not None and layer[1] in kinds:
                held = contents.look(name, VarType.LOD_TENSOR)
                theirs |= {name: held.header.shape} if isinstance(held, Held) else {}
        return explain_shift(ours, theirs, [step.variable.name for step in plan.steps])


def make_request(
    program: Program, chosen: list[Variable], source: Source, options: LoadOptions
) -> LoadRequest:
    """Return the request of a load; for a distributed program, this process's share of it.

    Raises LoadError when none of the variables is in this process.
    """
    rules = Rules.of(options.rules, options.rename, options.skip, options.init)
    partition = None if source.where is None else get_partition(program, source.path)
    if partition is None:
        return LoadRequest(program, chosen, source, options, rules)
    share = partition.plan_load(chosen, source.path)
    return LoadRequest(
        program,
        share.variables,
        source,
        options,
        rules + share.rules,
        view=share.view,
        notes=share.notes,
        reader=share.reader,
        done=share.done,
    )


def list_names(given: Iterable[Variable | str] | Program | None) -> list[str] | None:
    """Return the names given by the argument ``names`` of a load."""
    if given is None:
        return None
    values = [v for v in given.list_vars() if is_persistable(v)] if isinstance(given, Program) else given
    return [value if isinstance(value, str) else value.name for value in values]
