"""``paddlelike verify``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paddlelike.cli.output import FOUND, Json, end, escape, exits, print_json
from paddlelike.errors import MissingFileError
from paddlelike.io.verify import verify
from paddlelike.storage.location import locate

__all__ = ["command"]


def command(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="A directory that paddlelike saved.")],
    json: bool = Json,
) -> None:
    """Compare saved files with their manifest.

    Any flipped bit is found.
    The exit status is 1 if a file is missing, cut, changed or extra, or if there is no manifest.
    """
    with exits():
        if not locate(directory).exists():
            raise MissingFileError(f"there is no directory {directory}")
        found = verify(directory)
    if json:
        print_json({**asdict(found), "fine": bool(found)})
    else:
        for line in str(found).splitlines():
            typer.echo(escape(line))
    end(0 if found else FOUND)
