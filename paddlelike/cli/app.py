"""The commands, and the program ``paddlelike`` that they make up."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from paddlelike.cli.output import exits
from paddlelike.foundation.locks import opened

#: The module of each command, and its line in the help, in the order of the help.
COMMANDS: Final = {
    "inspect": ("looking.inspect", "List the contents of files."),
    "doctor": ("looking.doctor", "Diagnose files, and name what opens them."),
    "scan": ("looking.scan", "List what will not work in scripts and models, without running them."),
    "verify": ("looking.verify", "Compare saved files with their manifest."),
    "diff": ("looking.diff", "Compare two sets of values, and their programs."),
    "plan": ("looking.plan", "Show what a load would do, variable by variable."),
    "convert": ("changing.convert", "Copy values from one format to another."),
    "merge": ("changing.merge", "Write all variables into one combined file."),
    "split": ("changing.split", "Write every variable into a separate file."),
    "prune": ("changing.prune", "Write the part of a model that computes some variables."),
    "compact": ("changing.compact", "Merge chains of deltas into whole tables."),
    "graph": ("looking.graph", "Draw a program as a graph."),
    "view": ("looking.view", "Write an HTML page that shows the contents of files."),
    "serve": ("looking.serve", "Try a model for prediction in a browser, or by HTTP."),
    "check": ("looking.check", "Run a model on given inputs, and check the outputs."),
    "quirks": ("quirks", "List the oddities of Fluid, and the layers that have them."),
    "env": ("env", "Show which versions and extras are installed."),
    "demo": ("demo", "Train, save and continue; leave files to look into."),
    "run": (None, "Run an unmodified script that imports Paddle."),
    "launch": (None, "Run a job of trainers and parameter servers."),
}


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"paddlelike {sys.modules['paddlelike'].__version__}")
        raise typer.Exit


class _Commands(dict[str, Any]):
    """The commands by name, each imported on first use."""

    def __getitem__(self, name: str) -> Any:
        module, text = COMMANDS[name]
        one = typer.Typer(**_STYLE)
        if module is None:  # __main__ carries it out before this module is imported

            @one.command(name, help=text, add_help_option=False)
            def _() -> None:
                raise AssertionError
        else:
            one.command(name)(import_module(f"paddlelike.cli.{module}").command)
        return typer.main.get_command(one)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in COMMANDS else default


@contextmanager
def _readers_may_leave() -> Iterator[None]:
    """Exit quietly when the reader of standard output closes it, as ``head`` does."""
    try:
        yield
    except BrokenPipeError:
        with opened(os.devnull, os.O_WRONLY) as (fd, _):
            os.dup2(fd, sys.stdout.fileno())
        raise typer.Exit from None


class LazyCommands(TyperGroup):
    """Lists the commands without importing them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = _Commands((name, None) for name in COMMANDS)

    def make_context(self, *arguments: Any, **options: Any) -> Any:  # which prints --help and --version
        with _readers_may_leave(), exits():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _readers_may_leave(), exits():
            return super().invoke(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


_STYLE: Final[dict[str, Any]] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,  # plain text: square brackets are not markup
    "add_completion": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
app = typer.Typer(
    cls=LazyCommands,
    name="paddlelike",
    help="Inspect, compare, check and convert models of Paddle Fluid and related systems; run their scripts.",
    no_args_is_help=True,
    **_STYLE | {"add_completion": True},
)


@app.callback()
def _start(
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Process the options before the command."""


def main() -> None:
    """Run the command line of this process."""
    warnings.showwarning = _show_warning
    app()


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **options: Any) -> None:
    """Print a warning of this package as a sentence; others as Python does."""
    if issubclass(category, UserWarning) and not issubclass(category, DeprecationWarning):
        typer.echo(f"paddlelike: warning: {message}", err=True)
    else:
        _show(message, category, *where, **options)


_show = warnings.showwarning
