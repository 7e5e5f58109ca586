"""How commands print: data on standard output, talk on standard error."""

from __future__ import annotations

import json
import math
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
    "format_size",
    "print_columns",
    "print_json",
    "progress",
    "say",
]

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
    """Print rows in columns that are as wide as their cells; ``right`` are columns set to the right."""
    cells = [[escape(one) for one in row] for row in rows]
    widths = [max(len(row[index]) for row in cells) for index in range(len(cells[0]))] if cells else []
    for row in cells:
        padded = (
            one.rjust(width) if index in right else one.ljust(width)
            for index, (one, width) in enumerate(zip(row, widths, strict=True))
        )
        typer.echo("  ".join(padded).rstrip())


def format_size(count: int) -> str:
    """Return a number of bytes as people read it.

    >>> [format_size(one) for one in (0, 999, 1024, 3 << 20)]
    ['0 B', '999 B', '1.0 KiB', '3.0 MiB']
    """
    size, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{count} B" if units[0] == "B" else f"{size:.1f} {units[0]}"


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
        say(f"paddlelike: {'; '.join(escape(line) for line in text.splitlines())}".replace(";   ", "\n  "))
        end(2)


@contextmanager
def progress(text: str) -> Iterator[Callable[[int, int], None]]:
    """Return a function that shows bytes done of all bytes, on a terminal, after a second."""
    from paddlelike.interop.progress import ProgressBar

    with ProgressBar(text) as bar:
        yield bar if sys.stderr.isatty() else lambda done, total: None
