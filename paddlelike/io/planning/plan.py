"""The plan of a load: what would become of every variable, known from the headers alone.

A plan changes nothing. It compares every header with the program, follows the rules, and tells at once what
does not fit, with near names, with a guess where all names have drifted because a network was built twice in
one process, and with rules that would make the rest fit.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from paddlelike.core.dtypes import VarType
from paddlelike.errors import LoadError, MissingFileError
from paddlelike.framework.graph.variable import Variable
from paddlelike.io.contents.interface import Held
from paddlelike.io.planning.match import Proposal, near_names
from paddlelike.io.planning.recipe import Recipe
from paddlelike.io.planning.table import table
from paddlelike.io.rules.rules import Rules, said_changes

__all__ = ["PROBLEMS", "Fill", "LoadPlan", "Row", "Step", "What", "check", "facts_of"]

What = Literal[
    "load", "rename", "skip", "keep", "init", "missing", "does not fit", "bad rule", "not asked for"
]
PROBLEMS: Final = ("bad rule", "does not fit", "missing")


@dataclass(frozen=True, slots=True)
class Row:
    """What becomes of one variable, or of a file that no variable takes.

    Attributes
    ----------
    what
        ``load``, ``rename`` (from a file of another name), ``skip``, ``keep`` (its value, as ``init`` says),
        ``init``, ``missing``, ``does not fit``, ``bad rule``, or ``not asked for``.
    wants, has
        Element type and shape that the program declares, and that the file has.
    """

    variable: str | None
    file: str | None
    what: What
    wants: tuple[VarType, tuple[int, ...]] | None = None
    has: tuple[VarType, tuple[int, ...]] | None = None
    why: str = ""
    hint: str | None = None


class Step(NamedTuple):
    """A value that will be loaded."""

    variable: Variable
    held: tuple[Held, ...]
    recipe: Recipe | None = None  # None: the file of the variable's name, as it is
    base: str | float = "keep"  # what stays where an overlap does not reach

    @property
    def row(self) -> Row:
        """The line of the table."""
        header = self.held[0].header
        wants, has = facts_of(self.variable), (header.dtype, header.shape)
        if self.recipe is None:
            return Row(self.variable.name, self.held[0].name, "load", wants, has)
        what: What = "load" if self.recipe.files == (self.variable.name,) else "rename"
        assert self.recipe.rule is not None
        said = ", ".join(said_changes(self.recipe.rule))
        return Row(self.variable.name, " + ".join(self.recipe.files), what, wants, has, said)


class Fill(NamedTuple):
    """A value that will be a constant."""

    variable: Variable
    value: float


@dataclass(frozen=True)
class LoadPlan:
    """What a load would do. True when it would be carried out; prints as a table.

    Attributes
    ----------
    source
        What would be loaded.
    others
        A :class:`Row` for every variable that is not loaded, and for every file that nobody asks for.
    proposals
        Files that may be meant for variables that have none: pairs of names, and why.
    hint
        What is most likely wrong, if anything is.
    """

    source: str
    others: tuple[Row, ...]
    strict: bool = True
    proposals: tuple[Proposal, ...] = ()
    hint: str | None = None
    steps: tuple[Step, ...] = field(default=(), repr=False)
    fills: tuple[Fill, ...] = field(default=(), repr=False)

    @functools.cached_property
    def rows(self) -> tuple[Row, ...]:
        """A :class:`Row` for every variable, then one for every file that nobody asks for."""
        return (*(step.row for step in self.steps), *self.others)

    def chosen(self, *what: str) -> list[Row]:
        """The rows of these kinds."""
        return [row for row in self.rows if row.what in what]

    @property
    def problems(self) -> list[Row]:
        """The rows of variables that cannot be loaded."""
        return [row for row in self.others if row.what in PROBLEMS]

    def rules(self) -> Rules:
        """The proposals as rules, to be looked at and given to a load as ``rules=``."""
        return Rules.of(rename={proposal.file: proposal.variable for proposal in self.proposals})

    def __bool__(self) -> bool:
        if any(row.what == "bad rule" for row in self.others):
            return False
        return bool(self.steps) and not (self.strict and self.problems)

    def __str__(self) -> str:
        return table(self)

    def refusal(self) -> LoadError | None:
        """The error of a load that would not be carried out, which tells everything; None: it would be."""
        if self:
            return None
        problems = self.problems
        if not problems:
            return LoadError(
                f"nothing to load from {self.source}: every variable is skipped, kept or initialised"
            )
        unused = [row.file for row in self.others if row.what == "not asked for" and row.file is not None]
        proposed = {proposal.variable: f" (perhaps {proposal.file})" for proposal in self.proposals}
        lines = []
        for row in problems[:20]:
            near = ""
            if row.what == "missing":
                near = proposed.get(row.variable or "") or near_names(row.variable or "", unused)
            name = row.variable if row.what != "missing" or row.file is None else row.file
            lines.append(f"\n  {name}: {row.why}{near}")
        if len(problems) > 20:
            lines.append(f"\n  and {len(problems) - 20} more")
        count = len(self.steps) + sum(row.variable is not None for row in self.others)
        kind = MissingFileError if all(row.what == "missing" for row in problems) else LoadError
        return kind(
            f"nothing was loaded from {self.source}: {len(problems)} of {count} variables do not fit"
            + "".join(lines),
            hint=self.hint,
        )


def check(variable: Variable, dtype: VarType, shape: tuple[int, ...]) -> str | None:
    """Why a stored tensor does not fit a variable, or None."""
    want = variable.shape
    if dtype != variable.dtype:
        return (
            f"the file holds {dtype.name}{list(shape)}, the program wants {variable.dtype.name}{list(want)}"
        )
    if not want or want == shape:
        return None  # declared without a shape: the file tells
    same = len(want) == len(shape) and all(w in (-1, s) for w, s in zip(want, shape, strict=True))
    one = math.prod(shape) == math.prod(want) == 1  # Paddle 2 writes [1] without dims
    rows = variable.type == VarType.SELECTED_ROWS and want[1:] == tuple(shape)[1:]
    if same or one or rows:
        return None
    return f"the file has shape {list(shape)}, the program wants {list(want)}"


def facts_of(variable: Variable) -> tuple[VarType, tuple[int, ...]]:
    """Element type and shape that a variable is declared with."""
    return variable.dtype, variable.shape
