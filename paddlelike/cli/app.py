"""The commands, and the program ``paddlelike`` that they make up."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import typer

__all__ = ["app", "main"]

#: The module of each command, in the order of the help.
COMMANDS: Final = {
    "inspect": "looking.inspect",
    "doctor": "looking.doctor",
    "verify": "looking.verify",
    "diff": "looking.diff",
    "plan": "looking.plan",
    "convert": "changing.convert",
    "merge": "changing.merge",
    "split": "changing.split",
    "prune": "changing.prune",
    "graph": "looking.graph",
    "view": "looking.view",
    "serve": "looking.serve",
    "check": "looking.check",
    "quirks": "quirks",
    "env": "env",
    "demo": "demo",
}

app = typer.Typer(
    name="paddlelike",
    help="Look into, compare, check and convert models of Paddle Fluid and its kin; run their scripts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the help as plain text: square brackets are meant
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _name, _module in COMMANDS.items():
    app.command(_name)(import_module(f"paddlelike.cli.{_module}").command)

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
