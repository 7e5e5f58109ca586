"""``paddlelike plan``."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlelike.cli.output import FOUND, Json, end, exits, print_json, print_table


def command(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="What would be loaded.")],
    program: Annotated[str, typer.Option(help="A program, __model__ or .pdmodel, or a directory with one.")],
    filename: Annotated[str | None, typer.Option(help="A combined file in DIR.")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Print only the proposed rules.")] = False,
    json: bool = Json,
) -> None:
    """Show what a load would do, variable by variable.

    Only headers are read, nothing is loaded. The exit status is 1 if the load would be refused.
    """
    from paddlelike.interop.content import open_content
    from paddlelike.io.load.preview import plan_load

    with exits(), open_content(program) as content:
        plan = plan_load(directory, content.get_program(), filename=filename)
    if json:
        rows = [
            {"variable": row.variable, "file": row.file, "what": row.what, "why": row.why, "hint": row.hint}
            for row in plan.rows
        ]
        proposals = {one.file: one.variable for one in plan.proposals}
        print_json({"rows": rows, "proposed": proposals, "hint": plan.hint, "would_load": bool(plan)})
    else:
        print_table(str(plan.rules() if rules else plan))
    end(0 if plan else FOUND)
