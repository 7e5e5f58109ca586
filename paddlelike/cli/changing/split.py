"""``paddlelike split``."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlelike.cli.changing.merge import report
from paddlelike.cli.output import Json, Verify, exits, progress


def command(
    source: Annotated[
        str, typer.Argument(metavar="SRC", help="A directory with a combined file, or the file.")
    ],
    target: Annotated[str, typer.Argument(metavar="DST", help="A new directory.")],
    names: Annotated[
        str | None, typer.Option(help="The names of the variables, if no other file has them: a,b,c.")
    ] = None,
    verify: bool = Verify,
    json: bool = Json,
) -> None:
    """Write every variable into a separate file.

    The names come from the manifest, or from the program beside the file. Other files are copied. Values are
    copied bit for bit. The exit status is 3 if a file of unknown kind was copied, and 1 if a file holds
    values that variables cannot hold; they are named.
    """
    from paddlelike.interop.repack import split

    with exits(), progress(f"{source} -> {target}"):
        listed = None if names is None else [name.strip() for name in names.split(",")]
        done = split(source, target, listed, verify=verify)
    report(done, json=json)
