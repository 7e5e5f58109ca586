"""``paddlelike convert``."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Annotated, Final

import typer

from paddlelike.cli.output import FOUND, Json, Verify, end, escape, exits, print_json, progress, say
from paddlelike.errors import SaveError
from paddlelike.storage.options import Durability, SaveOptions

_ROWS: Final = (".arrow", ".feather", ".parquet")


def _list_formats(incomplete: str) -> list[str]:
    from paddlelike.formats.registry import all_formats

    return [name for name in sorted(all_formats()) if name.startswith(incomplete)]


def _list_recipes(incomplete: str) -> list[str]:
    from paddlelike.interop.recipes import RECIPES

    return [name for name in RECIPES if name.startswith(incomplete)]


def _check_dtype(name: str | None) -> str | None:
    if name is not None:
        from paddlelike.core import numpy_dtype

        try:
            numpy_dtype(name)
        except TypeError as error:
            raise typer.BadParameter(str(error)) from None
    return name


def _convert_rows(
    source: str, target: str, name: str | None, link: int | None, *, overwrite: bool, json: bool
) -> None:
    """Write rows of a saved table as an Arrow or Parquet file, or overwrite rows from such a file."""
    from paddlelike.interop.arrow import export_rows, import_rows

    if name is None and target.endswith(_ROWS):
        raise typer.BadParameter(f"{target} holds the rows of one variable: which one?", param_hint="--names")
    with exits():
        if os.path.lexists(target) and not overwrite:
            raise SaveError(f"{target} exists", hint="choose another path, or pass --overwrite")
        if name is not None and target.endswith(_ROWS):
            count = export_rows(source, target, name, link=link)
            print_json({"rows": count}) if json else say(f"{target}: {count} rows of {name}")
        else:
            report = import_rows(source, target, name)
            print_json(asdict(report)) if json else say(str(report))


def command(
    source: Annotated[
        str, typer.Argument(metavar="SRC", help="A file, a directory, or a prefix of fluid.save.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="DST", help="The output; written completely or not at all.")
    ],
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            autocompletion=_list_formats,
            help="Format of the target: directory, combined, state, npz, safetensors, hdf5, torch, dynet, "
            "cntk, ... (by the suffix of DST if left out).",
        ),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(callback=_check_dtype, help="Convert floating-point elements to this type.")
    ] = None,
    rules: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=_list_recipes,
            help="New names: a file of fluid.io.Rules, or a recipe into PyTorch's (bert, crnn, db, ernie, "
            "resnet, yolov3, pytorch). Several are carried out in order.",
        ),
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="The variables of a combined file, which stores no names: a,b,c.")
    ] = None,
    link: Annotated[
        int | None, typer.Option(help="The index of a link in a chain of deltas, from 1 on.")
    ] = None,
    opset: Annotated[int, typer.Option(help="The opset of an ONNX file to write.")] = 18,
    model_filename: Annotated[
        str | None, typer.Option(help="File of the program in a model's directory; __model__ if left out.")
    ] = None,
    params_filename: Annotated[
        str | None, typer.Option(help="The one file of all parameters in a model's directory.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Allow DST to exist.")] = False,
    drop_lod: Annotated[
        bool, typer.Option("--drop-lod", help="Leave out the LoD of sequences where the format has none.")
    ] = False,
    durability: Annotated[
        Durability,
        typer.Option(
            help="Files after a power cut: old or new ones (atomic), a mix (process), or new ones (power)."
        ),
    ] = SaveOptions.durability,
    verify: bool = Verify,
    json: bool = Json,
) -> None:
    """Copy values from one format to another.

    Values are copied bit for bit, in the memory of the largest variable. A model for prediction becomes an
    ONNX file when DST ends in .onnx, the two files of Paddle 2.x when it ends in .pdmodel, or of Paddle 3
    when it ends in .json. An ONNX file, a .pdmodel or a .json, or a directory with one of the last two,
    becomes a directory of Fluid 1.8 when DST has no suffix; operators that the other side lacks are refused
    by name. The rows of one table (--names) become an Arrow or Parquet file when DST ends in .arrow, .feather
    or .parquet; with --overwrite, such a file as SRC updates the saved table in the directory DST, as a
    delta. The exit status is 1 if some values of SRC are not in DST; they are named.
    """
    from paddlelike.interop.convert import ConvertReport, convert
    from paddlelike.interop.model_versions import convert_onnx
    from paddlelike.interop.onnx.models import ModelReport, is_model_conversion
    from paddlelike.interop.recipes import find_rules

    if source.endswith(_ROWS) or target.endswith(_ROWS):
        _convert_rows(source, target, names, link, overwrite=overwrite, json=json)
        return
    with exits(), progress(f"{source} -> {target}"):
        report: ConvertReport | ModelReport
        is_of_values = format or rules or dtype or names
        if not is_of_values and is_model_conversion(source, target):
            report = convert_onnx(
                source,
                target,
                model_filename,
                params_filename,
                opset=opset,
                overwrite=overwrite,
                verify=verify,
                durability=durability,
            )
        else:
            listed = None if names is None else [name.strip() for name in names.split(",")]
            report = convert(
                source,
                target,
                format,
                dtype=dtype,
                rules=[find_rules(one) for one in rules or ()],
                names=listed,
                overwrite=overwrite,
                verify=verify,
                drop_lod=drop_lod,
                durability=durability,
            )
    if json:
        print_json(asdict(report))
    else:
        for line in str(report).splitlines():
            say(escape(line))
    if not report:
        end(FOUND)
