"""Printing by commands: data on standard output, messages on standard error."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NoReturn

import typer

from paddlelike.errors import PaddlelikeError
from paddlelike.foundation.progress import report_progress, show_progress

#: What hints of the library say to scripts, as patterns, in the words of the command line.
_OPTIONS: Final = {
    "overwrite=True": "--overwrite",
    "verify=False": "--no-verify",
    "drop_lod=True": "--drop-lod",
    r"names=\[\.\.\.\](, for example \[.*\])?": "--names a,b,c",
    r"\bnames=(?=\w)": "--names ",
    r"\bnames=": "--names",
    r"\bdtype='(\w+)'": r"--dtype \1",
    r"\bformat='(\w+)'": r"--format \1",
    r"\bformat=": "--format",
    r"\bmodel_filename='([^' ]+)'": r"--model-filename \1",
    r"\bmodel_filename=": "--model-filename ",
    r"\bparams_filename='([^' ]+)'": r"--params-filename \1",
    r"\bparams_filename=": "--params-filename ",
}
#: Errors that end a command well: the reader of standard output is gone, an exit status, and wrong use, whose
#: class is click's, or that of typer's copy of click.
_ENDS: Final[tuple[type[Exception], ...]] = (
    BrokenPipeError,
    typer.Exit,
    typer.Abort,
    *(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException"),
)
FOUND: Final = 1  # the exit status where a command found something
FAILED: Final = 2  # wrong use, or none of the inputs could be read: nothing was judged
FAULT: Final = 70  # an unexpected error (EX_SOFTWARE of sysexits.h)
_NUL: Final = "embedded null byte"  # Python's text for a path with a zero byte
UNREAD: Final = 3  # nothing was found, and some files could not be read
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
    """Print rows in columns as wide as their cells; the columns in ``right`` are right-aligned.

    Long lines are truncated on a terminal, and if the variable COLUMNS sets a width.
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
    """Print a table from the library, with cells cut as in :func:`print_columns`."""
    for line in text.splitlines():
        _print_cut(escape(line))


def _print_cut(text: str) -> None:
    width = _find_width()
    typer.echo(text if not width or len(text) <= width else f"{text[: width - 1]}…")


def print_text(text: str, *, indent: int | None = None) -> None:
    """Print sentences, wrapped at the terminal's width with continuation lines indented.

    ``indent`` is the indentation of continuation lines, by default two columns more than the first line.
    """
    width = _find_width()
    for line in text.splitlines():
        shown = escape(line)
        further = " " * (len(shown) - len(shown.lstrip()) + 2 if indent is None else indent)
        if width and len(shown) > width:  # a long path is not broken, but indented less
            lines = textwrap.wrap(shown, width, subsequent_indent=further, break_long_words=False)
            rest = (one if len(one) <= width else f"{further[:2]}{one.lstrip()}" for one in lines[1:])
            shown = "\n".join([*lines[:1], *rest])
        typer.echo(shown)


def _find_width() -> int:
    """Return the width of the terminal, or the variable COLUMNS; 0 for a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else 0


def end(status: int) -> NoReturn:
    """End the command with an exit status."""
    raise typer.Exit(status)


@contextmanager
def exits() -> Iterator[None]:
    """Print an error of this package, or of the system, on standard error, and exit with its status.

    The status is 2 for an error raised on purpose or by the system, 70 for any other.
    """
    try:
        yield
    except _ENDS:
        raise
    except Exception as error:
        if os.environ.get("PADDLELIKE_TRACEBACK") == "full":
            raise
        known = isinstance(error, PaddlelikeError | OSError | MemoryError) or str(error) == _NUL
        fault = not known and "\n  hint: " not in str(error)
        text = _describe_fault(error) if fault else _describe(error)
        for pattern, option in _OPTIONS.items():
            text = re.sub(pattern, option, text)
        lines = [escape(line) for line in text.splitlines() if line.strip()]
        say(f"paddlelike: {'; '.join(lines)}".replace(";   ", "\n  "))
        end(FAULT if fault else FAILED)


def _describe(error: Exception) -> str:
    """Return the text of an error of this package or of the system."""
    if isinstance(error, OSError) and not isinstance(error, PaddlelikeError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return (
        "a path holds a NUL character" if str(error) == _NUL else str(error) or "there is not enough memory"
    )


def _describe_fault(error: Exception) -> str:
    return (
        f"the command failed with {type(error).__name__}: {error}\n  hint: this is not expected; set "
        "PADDLELIKE_TRACEBACK=full to see where it failed, and report it with the file if you can"
    )


@contextmanager
def progress(text: str) -> Iterator[Callable[[int, int], None]]:
    """Return a function that shows progress in bytes, on a terminal, after a second."""
    with show_progress(text):
        yield report_progress
