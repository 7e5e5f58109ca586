"""A load plan as a table of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from paddlelike.core.dtypes import VarType
    from paddlelike.io.planning.load_plan import LoadPlan, Row

__all__ = ["format_table"]

_FINE: Final = 40  # rows without a problem that are printed
_WIDEST: Final = 48
_HEAD: Final = ("variable", "file", "program", "file has", "what")


def format_table(plan: LoadPlan) -> str:
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
