"""Explain which operators of a program are compiled together, which ones numpy runs, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from paddlelike.compiled.run import find_engine
from paddlelike.core import Place
from paddlelike.framework import Program

if TYPE_CHECKING:
    from paddlelike.compiled.pieces.piece import Piece


def explain(program: Program, feeds: Iterable[str], fetches: list[str], place: Place) -> str:
    """Return one line for each compiled piece and for each operator between them.

    Before the first run with these feeds and fetches, some operators count as compiled although their inputs
    may turn out to lack a lowering.
    """
    engine = find_engine(program, dict.fromkeys(feeds), fetches, None, place)
    lines = []
    index, number = 0, 0
    steps = engine.plan.steps
    starts = {piece.start: piece for piece in engine.pieces}
    while index < len(steps):
        piece = starts.get(index)
        if piece is None:
            reason = engine.refused.get(index, "it computes constants only")
            lines.append(f"numpy: {steps[index].op.type}: {reason}")
            index += 1
            continue
        number += 1
        index = piece.stop
        types = [step.op.type for step in steps[piece.start : piece.stop]]
        line = f"piece {number}: {_count(types)}, {_describe_compilations(piece)}"
        passed_over = piece.compiled.passed_over
        lines.append(f"{line}; numpy ran it {passed_over} times, for new shapes" if passed_over else line)
    return "\n".join(lines)


def explain_copies(
    program: Program, feeds: Iterable[str], fetches: list[str], places: Sequence[Place]
) -> str:
    """Return one line that says where a program's copies run and, if numpy ran them last time, why."""
    what = f"{len(places)} copies, each on a device of its own"
    names = frozenset(feeds)
    for key, copies in program.plans.items():
        if key[0] == "copies" and key[1] == names and key[2] == tuple(fetches) and key[3] == tuple(places):
            if copies.refused is not None:
                return f"numpy: {len(places)} copies, one after the other: {copies.refused}"
            what += (
                f", {_count([step.op.type for step in copies.plan.steps])}, {_describe_compilations(copies)}"
            )
            return what
    return f"{what}, not compiled yet"


def _count(types: list[str]) -> str:
    if len(types) == 1:
        return f"1 operator ({types[0]})"
    return f"{len(types)} operators ({types[0]} to {types[-1]})"


def _describe_compilations(piece: Piece) -> str:
    if not piece.compilations:
        return "not compiled yet"
    times = "once" if piece.compilations == 1 else f"{piece.compilations} times"
    return f"compiled {times} in {piece.seconds:.1f} s"
