"""``paddlelike doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlelike.cli.output import FOUND, Json, end, escape, exits, print_json, print_text, progress
from paddlelike.foundation.amounts import format_count, format_size

if TYPE_CHECKING:
    from paddlelike.inspection.diagnosis import Diagnosis


def command(
    path: Annotated[
        str, typer.Argument(help="A directory, a file, or a prefix of fluid.save; of any format.")
    ],
    json: bool = Json,
) -> None:
    """Diagnose files, and name what opens them.

    It also says what real Paddle does with each problem. The exit status is 1 if problems beyond notes were
    found, for instance unreadable files.
    """
    from paddlelike.inspection.diagnosis import diagnose

    with exits(), progress(f"reading {path}") as bar:
        found = diagnose(path, progress=bar)
    if json:
        print_json(found.to_dict())
    else:
        _print(found)
    end(0 if found else FOUND)


def _print(found: Diagnosis) -> None:
    print_text(f"{found.path}: {found.title}")
    counts = [format_count(found.files, "file"), format_count(found.variables, "variable")]
    unread = f"; {format_count(found.unread, 'file')} could not be read" if found.unread else ""
    print_text(f"looked at {', '.join(counts)}, {format_size(found.nbytes)} of elements{unread}")
    if not found.findings:
        typer.echo("nothing odd was found")
    for finding in found.findings:
        print_text(f"{finding.level}: {finding.what}")
        if finding.paddle:
            print_text(f"    real Paddle: {finding.paddle}")
        if finding.advice:
            print_text(f"    {finding.advice}")
    if found.calls:
        typer.echo("to open it:")
        width = max(len(who) for who, _ in found.calls)
        for who, call in found.calls:  # whole, to be copied
            typer.echo(f"    {who.ljust(width)}  {escape(call)}")
