"""``paddlelike graph``."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Annotated

import typer

from paddlelike.cli.output import exits, say
from paddlelike.cli.plan import find_program
from paddlelike.errors import ExtraMissingError, UnsupportedError
from paddlelike.inspection.drawing import format_dot

__all__ = ["command"]


def command(
    model: Annotated[str, typer.Argument(help="A program, __model__ or .pdmodel, or a directory with one.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help=".dot, .svg, .png or .pdf.")
    ] = None,
    block: Annotated[int, typer.Option(help="Which block; 0 is the outermost one.")] = 0,
    operators: Annotated[bool, typer.Option("--operators", help="Leave out the variables.")] = False,
) -> None:
    """Draw a program as a graph.

    Operators are boxes, variables are coloured by kind. Without --output, DOT goes to standard output.
    Pictures need Graphviz (the program dot).
    """
    with exits():
        text = format_dot(find_program(model), block, only_operators=operators)
        kind = "" if output is None else os.path.splitext(output)[1][1:].lower()
        if output is None:
            typer.echo(text)
            return
        if kind == "dot":
            with open(output, "w", encoding="utf-8") as file:
                file.write(text + "\n")
        elif kind in ("svg", "png", "pdf"):
            _draw(text, output, kind)
        else:
            raise UnsupportedError(f"{output}: a picture is .dot, .svg, .png or .pdf")
        say(f"wrote {output}")


def _draw(text: str, output: str, kind: str) -> None:
    dot = shutil.which("dot")
    if dot is None:
        raise ExtraMissingError(
            f"{output} needs Graphviz, and there is no program dot",
            hint="apt-get install graphviz; or write a .dot",
        )
    subprocess.run([dot, f"-T{kind}", "-o", output], input=text.encode(), check=True)  # noqa: S603
