"""``paddlelike merge``."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlelike.cli.output import Verify, exits, say
from paddlelike.interop.repack import merge

__all__ = ["command"]


def command(
    source: Annotated[str, typer.Argument(metavar="SRC", help="A directory with one file per variable.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="A new directory.")],
    filename: Annotated[str, typer.Option(help="The name of the combined file.")] = "__params__",
    verify: bool = Verify,
) -> None:
    """Write all variables into one combined file.

    Programs are copied beside it. Values are copied bit for bit.
    """
    with exits():
        done = merge(source, target, filename, verify=verify)
    say(f"wrote {len(done.files)} files to {done.directory}")
