"""``paddlelike view``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from paddlelike.cli.looking.serving import Port, Token, serve_until_interrupted
from paddlelike.cli.output import UNREAD, Json, end, escape, exits, print_json, progress, say
from paddlelike.errors import MissingFileError, UnsupportedError
from paddlelike.foundation.garbage import pause_collection


def command(
    path: Annotated[
        str, typer.Argument(help="A directory, a file, or a prefix of fluid.save; of any format.")
    ],
    other: Annotated[
        str | None, typer.Argument(help="A second path, to show what changed from PATH to it.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where the page is written; -: standard output."),
    ] = None,
    program: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Plan a load into this program, or directory with one."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="PATH", help="Show what changed since this other directory or file.")
    ] = None,
    headers: Annotated[
        bool, typer.Option("--headers", help="Read no values: no statistics, no histograms.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite a file that is not a page of this command.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Follow a training in a directory: losses, and saves as they land.")
    ] = False,
    log: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="With --live: also a log that is not below the directory."),
    ] = None,
    port: Port = 0,
    token: Token = None,
    json: bool = Json,
) -> None:
    """Write an HTML page that shows the contents of files.

    The page works without a network. It shows the program as a graph, the variables with histograms, their
    sizes, and with --program and --against the plan of a load and a difference. It is written to the current
    directory as NAME.html; an earlier page is replaced, another file is not. Press ? on the page for its
    keys.

    With two paths the page shows the second, and begins with the changes since the first.

    With --live the page is served to this machine until Ctrl-C, and shows the losses of logs of
    fluid.io.TrainingLog (*.jsonl below the directory) and every save.

    The exit status is 2 if the path cannot be read, 3 if it cannot be compared with the other. The page lists
    problems with the files.
    """
    if live:
        with exits():
            _follow(path, log or [], port, token, json=json)
        end(0)
    if other is not None:
        path, against = other, path
    options = {"program": program, "against": against, "statistics": not headers}
    with exits():
        _show(path, options, output, force=force, json=json, opens=None if other is None else "difference")
    end(0)


@pause_collection
def _show(
    path: str, options: dict[str, Any], output: str | None, *, force: bool, json: bool, opens: str | None
) -> None:
    from paddlelike.view.page import collect_contents, format_contents

    with progress(f"reading {path}") as bar:
        contents = collect_contents(path, progress=bar, **options)
    if opens is not None:
        contents["opens"] = opens
    if json:
        print_json(contents)
    elif output == "-":
        typer.echo(format_contents(contents), nl=False)
    else:
        _write(contents, output, force=force)
    if error := (contents["difference"] or {}).get("error"):
        say(f"paddlelike: the page shows no difference: {escape(error)}")
        end(UNREAD)


def _follow(path: str, logs: list[str], port: int, token: str | None, *, json: bool) -> None:
    from paddlelike.view.server import Follower, make_live_routes

    if not os.path.isdir(path):
        raise MissingFileError(f"there is no directory {path}", hint="make it first, or name its parent")
    serve_until_interrupted(make_live_routes(Follower(path, logs)), port, token, json=json)


def _write(contents: dict[str, Any], output: str | None, *, force: bool) -> None:
    from paddlelike.view.page import format_contents, is_page

    name = os.path.basename(os.path.abspath(contents["path"])) or "view"
    target = Path(output or f"{name}.html")
    if target.exists() and not force and not is_page(target):
        raise UnsupportedError(
            f"{target} exists, and is not a page of this command",
            hint="name another file with -o, or --force",
        )
    target.write_text(format_contents(contents), "utf-8")
    typer.echo(str(target))
    say(f"open {escape(target.absolute().as_uri())} in a browser")
