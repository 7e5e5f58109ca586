"""``paddlelike merge``."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlelike.cli.output import Json, Verify, exits, print_json, progress, say
from paddlelike.foundation.amounts import format_count


def command(
    source: Annotated[str, typer.Argument(metavar="SRC", help="A directory with one file per variable.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="A new directory.")],
    filename: Annotated[str, typer.Option(help="The name of the combined file.")] = "__params__",
    verify: bool = Verify,
    json: bool = Json,
) -> None:
    """Write all variables into one combined file.

    Programs are copied beside it. Values are copied bit for bit.
    """
    from paddlelike.interop.repack import merge

    with exits(), progress(f"{source} -> {target}"):
        done = merge(source, target, filename, verify=verify)
    if json:
        print_json({"directory": done.directory, "files": sorted(done.files)})
        return
    say(f"wrote {format_count(len(done.files), 'file')} to {done.directory}")
