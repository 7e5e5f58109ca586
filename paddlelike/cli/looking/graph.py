"""``paddlelike graph``."""

from __future__ import annotations

from typing import Annotated

import typer

from paddlelike.cli.output import Json, exits, print_json, say


def command(
    model: Annotated[str, typer.Argument(help="A program, __model__ or .pdmodel, or a directory with one.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help=".dot, .svg, .png or .pdf.")
    ] = None,
    block: Annotated[int, typer.Option(help="The index of the block; 0 is the outermost.")] = 0,
    operators: Annotated[bool, typer.Option("--operators", help="Leave out the variables.")] = False,
    level: Annotated[
        str | None,
        typer.Option(help="variables, operators, layers, chains or blocks; default: chosen by size."),
    ] = None,
    json: bool = Json,
) -> None:
    """Draw a program as a graph.

    Operators are boxes, variables are coloured by kind. A large program is drawn as its layers. Without
    --output, DOT goes to standard output.
    A .png or .pdf needs Graphviz (the program dot); it also places the nodes of small programs.
    """
    from paddlelike.inspection.drawing import draw
    from paddlelike.interop.content import open_content

    with exits(), open_content(model) as content:
        drawing = draw(content.get_program(), output, block, only_operators=operators, level=level)
        if json:
            print_json({"output": output, "dot": drawing.dot})
        elif output is None:
            typer.echo(drawing.dot)
        else:
            say(f"wrote {output}")
