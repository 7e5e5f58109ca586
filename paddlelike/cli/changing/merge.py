"""``paddlelike merge``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paddlelike.cli.output import FOUND, UNREAD, Json, Verify, end, escape, exits, print_json, progress, say
from paddlelike.foundation.amounts import format_count

if TYPE_CHECKING:
    from paddlelike.interop.repack import Repacked


def command(
    source: Annotated[str, typer.Argument(metavar="SRC", help="A directory with one file per variable.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="A new directory.")],
    filename: Annotated[str, typer.Option(help="The name of the combined file.")] = "__params__",
    verify: bool = Verify,
    json: bool = Json,
) -> None:
    """Write all variables into one combined file.

    Other files are copied beside it. Values are copied bit for bit. The exit status is 3 if a file of unknown
    kind was copied, and 1 if a file holds values that variables cannot hold; they are named.
    """
    from paddlelike.interop.repack import merge

    with exits(), progress(f"{source} -> {target}"):
        done = merge(source, target, filename, verify=verify)
    report(done, json=json)


def report(done: Repacked, remark: str = "", *, json: bool) -> None:
    """Say what was written, and end the command."""
    if json:
        print_json(done._asdict() | {"left_out": [one._asdict() for one in done.left_out]})
    else:
        say(f"wrote {format_count(len(done.files), 'file')} to {done.directory}{remark}")
    for one in done.left_out:
        say(f"paddlelike: left out: {escape(one)}")
    for name, why in done.unread.items():
        say(f"paddlelike: {escape(name)} was copied, but not understood: {escape(why)}")
    end(FOUND if any(one.is_value for one in done.left_out) else UNREAD if done.unread else 0)
