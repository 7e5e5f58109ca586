"""``paddlelike convert``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paddlelike.cli.output import Json, exits, print_json, say
from paddlelike.interop.convert import convert

__all__ = ["command"]


def command(
    source: Annotated[
        str, typer.Argument(metavar="SRC", help="A file, a directory, or a prefix of fluid.save.")
    ],
    target: Annotated[str, typer.Argument(metavar="DST", help="What is written, as a whole or not at all.")],
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            help="Of the target: directory, combined, state, npz, safetensors, hdf5, torch, dynet, cntk, ... "
            "(by the suffix of DST if left out)."
        ),
    ] = None,
    dtype: Annotated[str | None, typer.Option(help="Convert floating-point elements to this type.")] = None,
    names: Annotated[
        str | None, typer.Option(help="The variables of a combined file, which stores no names: a,b,c.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Allow DST to exist.")] = False,
    json: bool = Json,
) -> None:
    """Copy values from one format to another.

    Bit for bit, in the memory of the largest variable.
    """
    with exits():
        listed = None if names is None else [name.strip() for name in names.split(",")]
        report = convert(source, target, format, dtype=dtype, names=listed, overwrite=overwrite)
    if json:
        print_json(asdict(report))
    else:
        say(str(report))
