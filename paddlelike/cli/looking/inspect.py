"""``paddlelike inspect``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from paddlelike.cli.output import FOUND, Json, end, escape, exits, print_columns, print_json, progress
from paddlelike.errors import LoadError
from paddlelike.foundation.amounts import format_count, format_size
from paddlelike.foundation.near_names import suggest_names

if TYPE_CHECKING:
    from paddlelike.inspection.inspect import Inspection


def command(
    path: Annotated[
        str, typer.Argument(help="A directory, a file, or a prefix of fluid.save; of any format.")
    ],
    values: Annotated[
        str | None, typer.Option("--values", metavar="NAME", help="Print one variable.")
    ] = None,
    headers: Annotated[bool, typer.Option("--headers", help="Read no values: no statistics.")] = False,
    json: bool = Json,
) -> None:
    """List the contents of files.

    It shows their kind, variables with types, shapes, sizes and statistics, and programs. The exit status is
    1 if a file cannot be read, if no file has a known kind, if a variable holds NaN or infinite elements, or
    if a file holds values that cannot be variables; they are named.
    """
    from paddlelike.inspection.inspect import inspect

    with exits():
        if values is not None:
            _print_values(path, values, json=json)
            return
        with progress(f"reading {path}") as bar:
            found = inspect(path, statistics=not headers, progress=bar)
    if json:
        print_json(found.to_dict())
    else:
        _print(found)
    end(0 if found else FOUND)


def _print(found: Inspection) -> None:
    sizes = f"{format_count(len(found.variables), 'variable')}, {format_size(found.nbytes)} of elements"
    typer.echo(f"{escape(found.path)}: {escape(found.title)}")
    typer.echo(f"{format_count(len(found.files), 'file')}, {sizes}")
    if found.saved:
        typer.echo(f"saved {escape(found.saved)} by paddlelike {escape(found.library)}")
    for program in found.programs:
        count = sum(program.operators.values())
        ports = (
            f", feeds {', '.join(program.feeds)}, fetches {', '.join(program.fetches)}"
            if program.feeds
            else ""
        )
        first = ", ".join(f"{number} {name}" for name, number in list(program.operators.items())[:6])
        typer.echo(escape(f"program {program.file}: {format_count(count, 'operator')} ({first}){ports}"))
    for file in found.files:
        if file.kind == "other":
            hint = f"; {file.hint}" if file.hint else ""
            typer.echo(f"! {escape(file.name)}: {escape(file.problem or file.title)}{escape(hint)}")
    for name in found.unnamed:
        typer.echo(f"! {escape(name)} stores no names: its variables are called by position")
    for name, left_out in found.left_out.items():
        for other in left_out:
            mark, what = (" ", f"= {other.what}") if other.is_plain else (" ", f"({other.what})")
            if other.is_value and not other.is_plain:
                mark, what = "!", f"is {other.what}: no variable can hold it"
            typer.echo(escape(f"{mark} {name}: {other.name} {what}"))
    if not found.variables:
        return
    rows: list[list[object]] = [
        ["variable", "type", "shape", "size", "role", "min", "max", "mean", "std", ""]
    ]
    for one in found.variables:
        numbers = ["", "", "", ""]
        flags = list(one.statistics.flags) if one.statistics else []
        if one.statistics is not None:
            some = (one.statistics.minimum, one.statistics.maximum, one.statistics.mean, one.statistics.std)
            numbers = ["" if number is None else f"{number:.4g}" for number in some]
        if one.problem:
            flags = [one.problem]
        extra = f" of {one.height} rows" if one.height is not None else ""
        extra += f" LoD {one.lod_levels}" if one.lod_levels else ""
        shape = f"{list(one.shape)}{extra}"
        rows.append(
            [one.name, one.dtype, shape, format_size(one.nbytes), one.role, *numbers, ", ".join(flags)]
        )
    typer.echo()
    print_columns(rows, right=(3, 5, 6, 7, 8))


def _print_values(path: str, name: str, *, json: bool) -> None:
    import numpy as np

    from paddlelike.inspection.inspect import numbers_of
    from paddlelike.interop.content import open_content

    with open_content(path) as content:
        held = next((one for one in content.variables if one.name == name), None)
        if held is None:
            near = suggest_names(name, [one.name for one in content.variables])
            raise LoadError(
                f"{path} holds no variable {name!r}", hint=near or "paddlelike inspect lists the variables"
            )
        value: Any = content.read(held)
        array = numbers_of(value, held.entry.dtype)
        if json:
            rows = value.rows() if hasattr(value, "height") else None
            print_json({"name": name, "dtype": held.entry.dtype.name, "values": array.tolist(), "rows": rows})
        else:
            typer.echo(np.array2string(array, threshold=1_000_000, max_line_width=110))
