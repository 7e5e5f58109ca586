"""``paddlelike plan``."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from paddlelike.cli.output import FOUND, Json, end, escape, exits, print_json
from paddlelike.errors import LoadError
from paddlelike.framework.graph.program import Program
from paddlelike.interop.content import open_content
from paddlelike.io.load.preview import plan_load

__all__ = ["command", "find_program"]


def command(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="What would be loaded.")],
    program: Annotated[str, typer.Option(help="A program, __model__ or .pdmodel, or a directory with one.")],
    filename: Annotated[str | None, typer.Option(help="A combined file in DIR.")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Print only the proposed rules.")] = False,
    json: bool = Json,
) -> None:
    """Say what a load would do, variable by variable.

    Only headers are read, nothing is loaded. The exit status is 1 if the load would be refused.
    """
    with exits():
        plan = plan_load(directory, find_program(program), filename=filename)
    if json:
        rows = [
            {"variable": row.variable, "file": row.file, "what": row.what, "why": row.why, "hint": row.hint}
            for row in plan.rows
        ]
        proposals = {one.file: one.variable for one in plan.proposals}
        print_json({"rows": rows, "proposed": proposals, "hint": plan.hint, "would_load": bool(plan)})
    else:
        for line in str(plan.rules() if rules else plan).splitlines():
            typer.echo(escape(line))
    end(0 if plan else FOUND)


def find_program(path: str) -> Program:
    """Return the program in a file or a directory."""
    with open_content(path) as content:
        if not content.programs:
            raise LoadError(f"{path} holds no program", hint="name a __model__ or .pdmodel file")
        if len(content.programs) > 1:
            names = ", ".join(os.path.join(path, name) for name in content.programs)
            raise LoadError(f"{path} holds {len(content.programs)} programs", hint=f"name one of {names}")
        return next(iter(content.programs.values()))
