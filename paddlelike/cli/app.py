"""The commands, and the program ``paddlelike`` that they make up."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import typer

__all__ = ["app", "main"]

COMMANDS: Final = (
    "inspect",
    "doctor",
    "verify",
    "diff",
    "plan",
    "convert",
    "merge",
    "split",
    "prune",
    "graph",
    "view",
    "serve",
    "check",
    "quirks",
    "env",
    "demo",
)

app = typer.Typer(
    name="paddlelike",
    help="Look into, compare, check and convert models of Paddle Fluid and its kin; run their scripts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the help as plain text: square brackets are meant
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _name in COMMANDS:
    app.command(_name)(import_module(f"paddlelike.cli.{_name}").command)

for _name, _help in (
    ("run", "Run an unmodified script that imports Paddle."),
    ("launch", "Run a job of trainers and parameter servers."),
):  # __main__ carries them out before this module is imported; here they have their lines in the help

    @app.command(_name, help=_help, add_help_option=False)
    def _() -> None:
        raise AssertionError


def main() -> None:
    """Run the command line of this process."""
    app()
