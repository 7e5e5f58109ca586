"""The plan of a load: the outcome for every variable, found from the headers alone.

Making a plan changes nothing. Every header is compared with the program, the rules are applied, and all
problems are reported at once, with similar names and proposed rules. A hint explains names that all differ in
their counters, because a network was built twice in one process.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Final, Literal, NamedTuple

from paddlelike.core import VarType
from paddlelike.errors import LoadError, MissingFileError
from paddlelike.foundation.display import Displayed
from paddlelike.foundation.near_names import suggest_names
from paddlelike.framework import Parameter, Variable
from paddlelike.io.contents.interface import Held
from paddlelike.io.planning.proposals import Proposal
from paddlelike.io.planning.recipe import Recipe
from paddlelike.io.rules.encoding import describe_changes
from paddlelike.io.rules.rules import Rules
from paddlelike.lazy import dataclass

_FINE: Final = 40  # rows without a problem that are printed
_WIDEST: Final = 48
_HEAD: Final = ("variable", "file", "program", "file has", "what")

What = Literal[
    "load", "rename", "skip", "keep", "init", "missing", "does not fit", "bad rule", "not requested"
]
PROBLEMS: Final = ("bad rule", "does not fit", "missing")


@dataclass(frozen=True)
class Row:
    """The outcome for one variable, or for a file that no variable uses.

    Attributes
    ----------
    what
        ``load``, ``rename`` (from a file of another name), ``skip``, ``keep`` (it keeps its value, by
        ``init``), ``init``, ``missing``, ``does not fit``, ``bad rule``, or ``not requested``.
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
    recipe: Recipe | None = None  # None means the file of the variable's name, unchanged
    base: str | float = "keep"  # the value outside of an overlap

    @property
    def row(self) -> Row:
        """The row of this value in the table."""
        header = self.held[0].header
        wants, has = get_facts(self.variable), (header.dtype, header.shape)
        if self.recipe is None:
            return Row(self.variable.name, self.held[0].name, "load", wants, has)
        what: What = "load" if self.recipe.files == (self.variable.name,) else "rename"
        assert self.recipe.rule is not None
        changes = ", ".join(describe_changes(self.recipe.rule))
        return Row(self.variable.name, " + ".join(self.recipe.files), what, wants, has, changes)


class Fill(NamedTuple):
    """A value that will be a constant."""

    variable: Variable
    value: float


@dataclass(frozen=True, repr=False)
class LoadPlan(Displayed):
    """The outcome that a load would have. It is true if the load would succeed, and prints as a table.

    Attributes
    ----------
    source
        The directory, file or dict that would be loaded.
    others
        A :class:`Row` for every variable that is not loaded, and for every file that the program does not
        use.
    strict
        Whether the load fails where a variable is missing or does not fit.
    proposals
        Files that are probably meant for variables without a file: pairs of names, with the reason.
    hint
        The most likely cause of the problems, and the next step.
    steps, fills
        The values that would be loaded, and the values that would be set to constants.
    notes
        Lines about patterns (``skip``, ``init``, wildcards of ``rules``) that match no name.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> hidden = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(), tempfile.mkdtemp()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> saved = fluid.io.save_persistables(exe, home)
    >>> plan = fluid.io.plan_load(home)
    >>> bool(plan), [(row.variable, row.what) for row in plan.rows]
    (True, [('fc_0.w_0', 'load'), ('fc_0.b_0', 'load')])
    """

    source: str
    others: tuple[Row, ...]
    strict: bool = True
    proposals: tuple[Proposal, ...] = ()
    hint: str | None = None
    steps: tuple[Step, ...] = field(default=(), repr=False)
    fills: tuple[Fill, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def rows(self) -> tuple[Row, ...]:
        """A :class:`Row` for every variable, then one for every file that the program does not use."""
        return (*(step.row for step in self.steps), *self.others)

    def chosen(self, *what: str) -> list[Row]:
        """Return the rows that have one of these outcomes."""
        return [row for row in self.rows if row.what in what]

    @property
    def problems(self) -> list[Row]:
        """The rows of variables that cannot be loaded."""
        return [row for row in self.others if row.what in PROBLEMS]

    def rules(self) -> Rules:
        """Return the proposals as rules, to review and pass to a load as ``rules=``."""
        return Rules.of(rename={proposal.file: proposal.variable for proposal in self.proposals})

    def __bool__(self) -> bool:
        if any(row.what == "bad rule" for row in self.others):
            return False
        return bool(self.steps) and not (self.strict and self.problems)

    def __repr__(self) -> str:
        verdict = "fits" if self else "does not fit"
        counts = Counter(row.what for row in self.rows)
        return (
            f"<LoadPlan: {self.source} {verdict}; {', '.join(f'{n} {what}' for what, n in counts.items())}>"
        )

    def __str__(self) -> str:
        return _format_table(self)

    def refusal(self) -> LoadError | None:
        """Return the error that the load would raise, with all problems, or None if it would succeed."""
        if self:
            return None
        problems = self.problems
        if not problems:
            return LoadError(
                f"nothing to load from {self.source}: every variable is skipped, kept or initialised"
            )
        unused = [row.file for row in self.others if row.what == "not requested" and row.file is not None]
        proposed = {proposal.variable: f" (perhaps {proposal.file})" for proposal in self.proposals}
        lines = []
        for row in problems[:20]:
            near = ""
            if row.what == "missing":
                wanted = row.variable or ""
                near = proposed.get(wanted) or suggest_names(wanted, unused, lead="; ")
            name = row.variable if row.what != "missing" or row.file is None else row.file
            lines.append(f"\n  {name}: {row.why}{near}")
        if len(problems) > 20:
            lines.append(f"\n  and {len(problems) - 20} more")
        count = len(self.steps) + sum(row.variable is not None for row in self.others)
        kind = MissingFileError if all(row.what == "missing" for row in problems) else LoadError
        lines += [f"\n  {note}" for note in self.notes]
        return kind(
            f"nothing was loaded from {self.source}: {len(problems)} of {count} variables do not fit"
            + "".join(lines),
            hint=self.hint,
        )


_INTEGERS: Final = {VarType.INT32, VarType.INT64}


def explain_misfit(variable: Variable, dtype: VarType, shape: tuple[int, ...]) -> str | None:
    """Return why a stored tensor does not fit a variable, or None if it fits.

    In two cases Fluid's own files differ from its declarations, and the file is right: the seed of
    ``shuffle_batch`` is declared with the shape [0], and integers from numpy may be int32 instead of int64,
    or vice versa.
    """
    want = variable.shape
    if dtype != variable.dtype and not {dtype, variable.dtype} <= _INTEGERS:
        return (
            f"the file holds {dtype.name}{list(shape)}, the program wants {variable.dtype.name}{list(want)}"
        )
    if not want or want == shape or 0 in want:
        return None  # declared without a shape: any shape fits
    same = len(want) == len(shape) and all(w in (-1, s) for w, s in zip(want, shape, strict=True))
    one = math.prod(shape) == math.prod(want) == 1  # Paddle 2 writes [1] without dims
    rows = variable.type == VarType.SELECTED_ROWS and want[1:] == tuple(shape)[1:]
    computed = -1 in want and not isinstance(variable, Parameter)  # made persistable in order to be fetched
    if same or one or rows or computed:
        return None
    return f"the file has shape {list(shape)}, the program wants {list(want)}"


def get_facts(variable: Variable) -> tuple[VarType, tuple[int, ...]]:
    """Return the declared element type and shape of a variable."""
    return variable.dtype, variable.shape


def _format_table(plan: LoadPlan) -> str:
    """Return the rows of a plan as text: the problems first, then the first ones of the others."""
    problems = plan.problems
    others = [row for row in plan.rows if row not in problems] if len(problems) < 2000 else []
    rows = [*problems, *others[:_FINE]]
    cells = [_HEAD, *(_format_cells(row) for row in rows)]
    widths = [min(max(len(line[i]) for line in cells), _WIDEST) for i in range(len(_HEAD) - 1)]
    lines = [f"{'would load' if plan else 'would refuse'} {plan.source}: {_count_outcomes(plan.rows)}"]
    lines += ["  ".join(_pad(line, widths)).rstrip() for line in cells]
    if len(others) > _FINE:
        lines.append(f"... and {len(others) - _FINE} more (see rows)")
    lines += [f"proposed: {p.file} -> {p.variable} ({p.why})" for p in plan.proposals[:_FINE]]
    if len(plan.proposals) > _FINE:
        lines.append(f"... and {len(plan.proposals) - _FINE} more (see rules())")
    lines += plan.notes
    if plan.hint:
        lines.append(f"hint: {plan.hint}")
    return "\n".join(lines)


def _format_cells(row: Row) -> tuple[str, str, str, str, str]:
    what = f"{row.what}: {row.why}" if row.why else row.what
    return row.variable or "", row.file or "", _format_facts(row.wants), _format_facts(row.has), what


def _format_facts(facts: tuple[VarType, tuple[int, ...]] | None) -> str:
    return "" if facts is None else f"{facts[0].name}{list(facts[1])}"


def _pad(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]


def _count_outcomes(rows: Sequence[Row]) -> str:
    counts = Counter(row.what for row in rows)
    return ", ".join(f"{count} {what}" for what, count in counts.most_common())
