"""``paddlelike diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlelike.cli.output import FOUND, UNREAD, Json, end, escape, exits, print_columns, print_json, progress
from paddlelike.foundation.amounts import format_count

if TYPE_CHECKING:
    from paddlelike.inspection.difference import Difference


def command(
    left: Annotated[
        str, typer.Argument(help="A directory, a file, or a prefix of fluid.save; of any format.")
    ],
    right: Annotated[str, typer.Argument(help="The other path; its format may differ.")],
    json: bool = Json,
) -> None:
    """Compare two sets of values, and their programs.

    Values are compared bit for bit, programs operator by operator. The exit status is 1 if they differ, 2 if
    a side cannot be read or holds neither values nor programs, 3 if what could be read is the same.
    """
    from paddlelike.inspection.difference import compare

    with exits(), progress(f"comparing {left} and {right}") as bar:
        found = compare(left, right, progress=bar)
    if json:
        print_json(found.to_dict())
    else:
        _print(found)
    end(FOUND if found else UNREAD if found.unread else 0)


def _print(found: Difference) -> None:
    for name in found.removed:
        typer.echo(f"- {escape(name)}")
    for name in found.added:
        typer.echo(f"+ {escape(name)}")
    for old, new in found.renamed:
        typer.echo(f"= {escape(old)} -> {escape(new)} (the same type, shape and bytes)")
    rows: list[list[object]] = []
    for one in found.changed:
        text = f"{one.left} -> {one.right}" if one.left != one.right else one.left
        how = f"the {one.what} differs" if one.what == "sequences" else ""
        if one.what == "values":
            how = format_count(one.elements, "element")
            if one.norm is not None and one.largest is not None:
                part = "" if one.relative is None else f" ({one.relative:.3g} of the left one's)"
                how += f", norm of the difference {one.norm:.4g}{part}, largest {one.largest:.4g}"
        rows.append([f"~ {one.name}", text, how])
    print_columns(rows)
    for line in found.operators:
        typer.echo(escape(line))
    changed = f"{len(found.changed)} changed, {len(found.added)} added, {len(found.removed)} removed"
    typer.echo(f"{format_count(found.same, 'variable')} the same, {changed}, {len(found.renamed)} renamed")
    if all(found.programs):
        how = "differ" if found.operators else "are the same"
        typer.echo(f"the programs {how}{'' if found.programs == (1, 1) else ' (the first of each side)'}")
    elif any(found.programs):
        side = escape(found.left if found.programs[0] else found.right)
        typer.echo(f"only {side} holds a program: programs were not compared")
    for file, text in found.unread:
        typer.echo(f"not compared: {escape(file)}: {escape(text)}")
