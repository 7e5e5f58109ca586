"""``paddlelike verify``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paddlelike.cli.output import (
    FAILED,
    FOUND,
    UNREAD,
    Json,
    end,
    escape,
    exits,
    print_json,
    print_text,
    progress,
    say,
)


def command(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="What paddlelike saved: a directory, a file, a prefix of fluid.save."
        ),
    ],
    json: bool = Json,
) -> None:
    """Compare saved files with their manifest.

    Any flipped bit is found. The exit status is 1 if a file is missing, cut, changed or extra, 2 without a
    manifest to compare with, 3 if the manifest lacks the checksum of some files and all others match.
    """
    from paddlelike.interop.damage import verify_path

    with exits(), progress(f"comparing {path} with its manifest"):
        found = verify_path(path)
    if json:
        print_json({**asdict(found), "fine": bool(found)})
    elif not found.problem:
        print_text(str(found))
    if found.problem:
        say(f"paddlelike: {escape(found)}")
        end(FAILED)
    damaged = found.missing or found.cut or found.changed or found.extra
    end(FOUND if damaged else UNREAD if found.unchecked else 0)
