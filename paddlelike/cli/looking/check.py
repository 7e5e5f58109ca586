"""``paddlelike check``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from paddlelike.cli.looking.serving import LOOPS, Loops
from paddlelike.cli.output import FOUND, Json, end, escape, exits, print_columns, print_json, progress, say
from paddlelike.errors import FeedError


def command(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A model for prediction: a directory, a program, or a prefix."),
    ],
    inputs: Annotated[str, typer.Argument(metavar="INPUTS.npz", help="Arrays by the names of the feeds.")],
    expected: Annotated[
        str | None,
        typer.Option(metavar="FILE.npz", help="Arrays by the names of the fetches, to compare with."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE.npz", help="Write what the model computes.")
    ] = None,
    model_filename: Annotated[str | None, typer.Option(help="The program, if not __model__.")] = None,
    params_filename: Annotated[str | None, typer.Option(help="The combined file of the parameters.")] = None,
    rtol: Annotated[float, typer.Option(help="Relative tolerance.")] = 1e-5,
    atol: Annotated[float, typer.Option(help="Absolute tolerance.")] = 1e-6,
    loops: Loops = LOOPS,
    json: bool = Json,
) -> None:
    """Run a model on given inputs, and check the outputs.

    The exit status is 1 if an output differs from --expected or, without it, holds NaN or infinite elements;
    2 if the model cannot be run on the inputs.
    """
    import numpy as np

    from paddlelike.interop.model_versions import find_model_files

    with exits(), progress(f"running {model}"):
        where = find_model_files(model)
        found = _run(
            where.directory, inputs, model_filename or where.program, params_filename or where.values, loops
        )
        if output is not None:
            with open(output, "wb") as file:
                np.savez(file, **found)
        wanted = None if expected is None else _read(expected)
    if wanted is not None and len(wanted) == len(found) and not set(wanted) & set(found):
        say("no name of --expected is an output of the model: they are compared by their order")
        wanted = dict(zip(found, wanted.values(), strict=True))
    rows = [_compare(name, array, wanted, rtol, atol) for name, array in found.items()]
    fine = all(row["fine"] for row in rows)
    if json:
        print_json({"outputs": rows, "fine": fine})
    else:
        cells: list[list[object]] = [["output", "type", "shape", "largest difference", ""]]
        cells += [
            [
                row["name"],
                row["dtype"],
                row["shape"],
                "" if row["difference"] is None else f"{row['difference']:.3g}",
                row["verdict"],
            ]
            for row in rows
        ]
        print_columns(cells)
    end(0 if fine else FOUND)


def _run(
    model: str, inputs: str, model_filename: str | None, params_filename: str | None, loops: float
) -> dict[str, Any]:
    import numpy as np

    from paddlelike.core import CPUPlace, Scope, scope_guard
    from paddlelike.executor.run import Executor
    from paddlelike.io.export.load import load_inference_model
    from paddlelike.ops.control.blocks import LoopLimit

    exe = Executor(CPUPlace())
    with scope_guard(Scope()):
        program, feeds, fetches = load_inference_model(model, exe, model_filename, params_filename)
        given = _read(inputs)
        missing = [name for name in feeds if name not in given]
        if missing:
            raise FeedError(
                f"{inputs} holds {', '.join(sorted(given)) or 'nothing'}; "
                f"the model also feeds {', '.join(missing)}",
                hint="numpy.savez(file, **{name: array})",
            )
        feed = {name: given[name] for name in feeds}
        limit = LoopLimit(seconds=loops or None)
        values = limit.run(lambda: exe.run(program, feed=feed, fetch_list=fetches))
        return {one.name: np.asarray(value) for one, value in zip(fetches, values, strict=True)}


def _read(path: str) -> dict[str, Any]:
    """Return the arrays of a file, of any known format."""
    from paddlelike.inspection.inspect import array_of
    from paddlelike.interop.content import open_content

    with open_content(path) as content:
        if not content.variables:
            unread = content.explain_unread()
            advice = "write an npz file with numpy.savez(file, name=array)"
            raise FeedError(
                f"{path} holds no arrays",
                hint=f"{unread}; {advice}" if unread else advice,
            )
        return {held.name: array_of(content.read(held)) for held in content.variables}


def _compare(
    name: str, array: Any, wanted: dict[str, Any] | None, rtol: float, atol: float
) -> dict[str, Any]:
    """Return one row of the result."""
    import numpy as np

    row: dict[str, Any] = {
        "name": name,
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "difference": None,
    }
    verdict, fine = "", bool(array.dtype.kind != "f" or np.isfinite(array).all())
    if not fine:
        verdict = "NaN or infinite elements"
    if wanted is not None:
        other = wanted.get(name)
        if other is None:
            verdict, fine = f"not in {', '.join(map(escape, sorted(wanted)))}", False
        elif other.shape != array.shape:
            verdict, fine = f"expected shape {list(other.shape)}", False
        else:
            row["difference"] = (
                float(np.abs(array.astype("f8") - other.astype("f8")).max()) if array.size else 0.0
            )
            fine = bool(np.allclose(array, other, rtol, atol, equal_nan=True))
            verdict = "equal within the tolerances" if fine else "differs"
    return {**row, "verdict": verdict, "fine": fine}
