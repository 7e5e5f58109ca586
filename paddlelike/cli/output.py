"""How commands print: data on standard output, talk on standard error."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

import typer

from paddlelike.errors import PaddlelikeError

__all__ = [
    "FOUND",
    "Json",
    "Verify",
    "end",
    "escape",
    "exits",
    "print_columns",
    "print_json",
    "progress",
    "say",
]

#: What hints of the library say to scripts, in the words of the command line.
_OPTIONS: Final = {
    "overwrite=True": "--overwrite",
    "verify=False": "--no-verify",
    "drop_lod=True": "--drop-lod",
    "names=[...], for example [v.name for v in program.list_vars() if v.persistable]": "--names a,b,c",
    "names=": "--names",
    "format=": "--format",
    "model_filename=": "--model-filename ",
    "params_filename=": "--params-filename ",
}
FOUND: Final = 1  # the exit status where a command found something
Json = typer.Option(False, "--json", help="Print JSON.")
Verify = typer.Option(True, "--verify/--no-verify", help="Compare with the manifest first, if there is one.")


def escape(text: object) -> str:
    r"""Return text with control characters as escapes, so that a name in a file cannot control a terminal.

    >>> escape("fc\x1b[31m")
    'fc\\x1b[31m'
    """
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape", "surrogatepass").decode()
        for one in str(text)
    )


def say(text: str = "") -> None:
    """Print a line for a person on standard error."""
    typer.echo(text, err=True)


def print_json(value: object) -> None:
    """Print a value as JSON; numbers that JSON does not have become null."""
    typer.echo(json.dumps(_plain(value), indent=2))


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_columns(rows: Sequence[Sequence[object]], *, right: Sequence[int] = ()) -> None:
    """Print rows in columns that are as wide as their cells; ``right`` are columns set to the right.

    On a terminal, or where the variable COLUMNS says a width, long lines lose their end; what goes elsewhere
    is whole.
    """
    cells = [[escape(one) for one in row] for row in rows]
    line = shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else 0
    widths = [max(len(row[index]) for row in cells) for index in range(len(cells[0]))] if cells else []
    for row in cells:
        padded = (
            one.rjust(width) if index in right else one.ljust(width)
            for index, (one, width) in enumerate(zip(row, widths, strict=True))
        )
        text = "  ".join(padded).rstrip()
        typer.echo(text if not line or len(text) <= line else f"{text[: line - 1]}…")


def end(status: int) -> NoReturn:
    """End the command with an exit status."""
    raise typer.Exit(status)


@contextmanager
def exits() -> Iterator[None]:
    """Turn an error of this package, or of a file, into its text on standard error and the exit status 2."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of standard output has gone: not an error of the command
    except (PaddlelikeError, OSError) as error:
        text = str(error)
        if not isinstance(error, PaddlelikeError) and error.filename is not None:
            text = f"{error.filename}: {error.strerror}"
        for keyword, option in _OPTIONS.items():
            text = text.replace(keyword, option)
        say(f"paddlelike: {'; '.join(escape(line) for line in text.splitlines())}".replace(";   ", "\n  "))
        end(2)


@contextmanager
def progress(text: str) -> Iterator[Callable[[int, int], None]]:
    """Return a function that shows bytes done of all bytes, on a terminal, after a second."""
    from paddlelike.interop.progress import ProgressBar

    with ProgressBar(text) as bar:
        yield bar if sys.stderr.isatty() else lambda done, total: None
