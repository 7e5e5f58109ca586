"""``paddlelike doctor``."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlelike.cli.output import FOUND, Json, end, escape, exits, print_json, progress
from paddlelike.inspection.diagnosis import Diagnosis, diagnose

__all__ = ["command"]


def command(
    path: Annotated[
        str, typer.Argument(help="A directory, a file, or a prefix of fluid.save; of any format.")
    ],
    json: bool = Json,
) -> None:
    """Say what is odd about files, and what opens them.

    Also what real Paddle does with each oddity. The exit status is 1 if anything but notes was found.
    """
    with exits(), progress(f"reading {path}") as bar:
        found = diagnose(path, progress=bar)
    if json:
        print_json(found.to_dict())
    else:
        _print(found)
    end(0 if found else FOUND)


def _print(found: Diagnosis) -> None:
    typer.echo(f"{escape(found.path)}: {escape(found.title)}")
    if not found.findings:
        typer.echo("nothing odd was found")
    for finding in found.findings:
        typer.echo(f"{finding.level}: {escape(finding.what)}")
        if finding.paddle:
            typer.echo(f"    real Paddle: {escape(finding.paddle)}")
        if finding.advice:
            typer.echo(f"    {escape(finding.advice)}")
    if found.calls:
        typer.echo("to open it:")
        width = max(len(who) for who, _ in found.calls)
        for who, call in found.calls:
            typer.echo(f"    {who.ljust(width)}  {escape(call)}")
