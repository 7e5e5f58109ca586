"""``paddlelike prune``."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlelike.cli.changing.merge import report
from paddlelike.cli.output import Json, Verify, exits, progress


def command(
    model: Annotated[str, typer.Argument(help="A directory with a program and its parameters.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="A new directory.")],
    fetch: Annotated[list[str], typer.Option(help="A variable to compute; may be repeated.")],
    feed: Annotated[
        list[str] | None,
        typer.Option(help="A variable to feed; may be repeated. Default: all that are needed."),
    ] = None,
    verify: bool = Verify,
    json: bool = Json,
) -> None:
    """Write the part of a model that computes some variables.

    Training programs become models for prediction. The exit status is 3 if a file of unknown kind was copied,
    and 1 if a file holds values that variables cannot hold; they are named.
    """
    from paddlelike.interop.repack import prune

    with exits(), progress(f"{model} -> {target}"):
        done = prune(model, target, feed, fetch, verify=verify)
    alone = "" if len(done.files) > 1 else ", only the program: its parameters are not beside it"
    report(done, alone, json=json)
