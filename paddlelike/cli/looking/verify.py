"""``paddlelike verify``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paddlelike.cli.output import FOUND, Json, end, exits, print_json, print_text
from paddlelike.errors import MissingFileError

__all__ = ["command"]


def command(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="A directory that paddlelike saved.")],
    json: bool = Json,
) -> None:
    """Compare saved files with their manifest.

    Any flipped bit is found.
    The exit status is 1 if a file is missing, cut, changed or extra, or if there is no manifest.
    """
    from paddlelike.io.verify import verify
    from paddlelike.storage.location import locate

    with exits():
        if not locate(directory).exists():
            raise MissingFileError(f"there is no directory {directory}")
        found = verify(directory)
    if json:
        print_json({**asdict(found), "fine": bool(found)})
    else:
        print_text(str(found))
    end(0 if found else FOUND)
