"""``paddlelike compact``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from paddlelike.cli.output import Json, exits, print_json, say
from paddlelike.errors import MissingFileError
from paddlelike.foundation.amounts import format_count


def command(
    directory: Annotated[str, typer.Argument(help="A directory saved with delta=True.")], json: bool = Json
) -> None:
    """Merge chains of deltas into whole tables.

    Afterwards real Paddle reads the directory. Nothing changes where there is no chain.
    """
    from paddlelike.io import compact
    from paddlelike.storage.location import locate

    with exits():
        if not locate(directory).exists():
            is_file = os.path.isfile(directory)
            text = f"{directory} is a file" if is_file else f"there is no directory {directory}"
            raise MissingFileError(text, hint="name a directory that was saved with delta=True")
        done = compact(directory)
    if json:
        print_json({"directory": done.directory, "files": sorted(done.files)})
        return
    if not done.written:
        say(f"{done.directory} holds no chains of deltas: nothing was changed")
        return
    say(f"wrote {format_count(done.written, 'file')} to {done.directory}")
