"""``paddlelike plan``."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlelike.cli.output import FOUND, Json, end, exits, print_json, print_table, print_text
from paddlelike.foundation.amounts import format_count


def command(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="What would be loaded.")],
    program: Annotated[str, typer.Option(help="A program, __model__ or .pdmodel, or a directory with one.")],
    filename: Annotated[str | None, typer.Option(help="A combined file in DIR.")] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Print only the proposed rules.")] = False,
    json: bool = Json,
) -> None:
    """Show what a load would do, variable by variable.

    Only headers are read, nothing is loaded. The exit status is 1 if the load would be refused, 2 if no value
    could be read.
    """
    from paddlelike.errors import LoadError
    from paddlelike.interop.content import open_content
    from paddlelike.io.load.preview import plan_load

    with exits(), open_content(program) as content:
        plan = plan_load(directory, content.get_program(), filename=filename)
        held = sum(row.has is not None for row in plan.rows)
        if not held:
            with open_content(directory) as found:
                if not found.variables:
                    raise LoadError(f"{directory} holds no values to load", hint=found.explain_unread())
    if json:
        rows = [
            {"variable": row.variable, "file": row.file, "what": row.what, "why": row.why, "hint": row.hint}
            for row in plan.rows
        ]
        proposals = {one.file: one.variable for one in plan.proposals}
        print_json(
            {"rows": rows, "proposed": proposals, "hint": plan.hint, "would_load": bool(plan), "values": held}
        )
    else:
        if not rules:
            print_text(f"looked at the headers of {format_count(held, 'value')} in {directory}")
        print_table(str(plan.rules() if rules else plan))
    end(0 if plan else FOUND)
