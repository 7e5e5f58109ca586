"""How commands print: data on standard output, talk on standard error."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

import typer

from paddlelike.errors import PaddlelikeError
from paddlelike.foundation.progress import report_progress, show_progress

__all__ = [
    "FOUND",
    "Json",
    "Verify",
    "end",
    "escape",
    "exits",
    "print_columns",
    "print_json",
    "print_table",
    "print_text",
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
    widths = [max(len(row[index]) for row in cells) for index in range(len(cells[0]))] if cells else []
    for row in cells:
        padded = (
            one.rjust(width) if index in right else one.ljust(width)
            for index, (one, width) in enumerate(zip(row, widths, strict=True))
        )
        _print_cut("  ".join(padded).rstrip())


def print_table(text: str) -> None:
    """Print a table that the library made, cut as :func:`print_columns` does."""
    for line in text.splitlines():
        _print_cut(escape(line))


def _print_cut(text: str) -> None:
    width = _find_width()
    typer.echo(text if not width or len(text) <= width else f"{text[: width - 1]}…")


def print_text(text: str) -> None:
    """Print sentences: lines that are longer than the terminal go on below themselves, further in."""
    width = _find_width()
    for line in text.splitlines():
        shown = escape(line)
        further = " " * (len(shown) - len(shown.lstrip()) + 2)
        if width and len(shown) > width:  # a long path stays whole
            shown = "\n".join(textwrap.wrap(shown, width, subsequent_indent=further, break_long_words=False))
        typer.echo(shown)


def _find_width() -> int:
    """Return the columns of the terminal, or what the variable COLUMNS says; 0 for a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else 0


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
    with show_progress(text):
        yield report_progress
