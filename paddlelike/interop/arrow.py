"""Rows of tables as Arrow or Parquet files, to exchange with other programs (extra ``arrow``).

A file has three columns: ``id`` (int64), ``row`` (a list of fixed size, null where the id was forgotten) and
``forgotten`` (bool). The schema's metadata ``paddlelike`` is JSON: the variable of the rows and their link in
its chain of deltas.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import (
    Array,
    LoDTensor,
    Scope,
    SelectedRows,
    VarType,
    convert_dtype,
    global_scope,
    numpy_dtype,
    scope_guard,
)
from paddlelike.errors import ExtraMissingError, FormatError, LoadError
from paddlelike.executor.run import Executor
from paddlelike.formats.paddle.server_tables import ServerTables
from paddlelike.framework import Program
from paddlelike.io.contents.interface import Held, Unreadable, Want
from paddlelike.io.deltas.chain import Broken, list_chains
from paddlelike.io.deltas.contents import open_directory, read_link, replay
from paddlelike.io.report import SaveReport
from paddlelike.io.save.save import save_vars
from paddlelike.storage.location import locate

_COLUMNS: Final = ("id", "row", "forgotten")
_KEY: Final = b"paddlelike"


class _Rows(NamedTuple):
    """The contents of a file: row ids, and the rows of the first ids; the last ids were removed from the
    table.
    """

    ids: Array
    rows: Array
    facts: dict[str, Any]


def export_rows(
    dirname: str | os.PathLike[str], path: str | os.PathLike[str], variable: str, *, link: int | None = None
) -> int:
    """Write rows of a saved variable as Arrow or, by the suffix ``.parquet``, Parquet; return how many.

    Parameters
    ----------
    dirname
        A directory of ``save_persistables``.
    link
        The link of the variable's chain of deltas, from 1 on: the rows that changed in that save, and the
        ids that were forgotten. None means all rows, with all deltas.

    Raises
    ------
    ExtraMissingError
        pyarrow is not installed.
    LoadError
        The variable or link does not exist, or its file differs from the save.
    """
    arrow = _load_arrow()
    value, facts = _read_value(dirname, variable) if link is None else _read_delta(dirname, variable, link)
    values = np.asarray(value.held_array)
    ids = value.row_array if isinstance(value, SelectedRows) else np.arange(len(values))
    gone = np.arange(len(ids)) >= len(values)
    flat = np.zeros((len(ids), max(math.prod(values.shape[1:]), 1)), values.dtype)
    flat[: len(values)] = values.reshape(len(values), -1)
    rows = arrow.FixedSizeListArray.from_arrays(
        arrow.array(flat.reshape(-1)), flat.shape[1], mask=arrow.array(gone)
    )
    table = arrow.table(dict(zip(_COLUMNS, (arrow.array(ids), rows, arrow.array(gone)), strict=True)))
    facts = {"variable": variable, "shape": list(values.shape[1:]), **facts}
    table = table.replace_schema_metadata({_KEY: json.dumps(facts)})
    if _is_parquet(path):
        import pyarrow.parquet

        # A dictionary would join all NaN, and 0.0 with -0.0.
        pyarrow.parquet.write_table(table, path, use_dictionary=False)
    else:
        import pyarrow.feather

        pyarrow.feather.write_feather(table, path, compression="uncompressed")
    return len(ids)


def import_rows(
    path: str | os.PathLike[str], dirname: str | os.PathLike[str], variable: str | None = None
) -> SaveReport:
    """Overwrite rows of a saved variable with the rows of an Arrow or Parquet file, as a delta.

    Other files of the directory stay. The rows of the file replace existing rows or, for new ids, are added
    at the end; ids whose ``forgotten`` is true are removed.

    Parameters
    ----------
    variable
        The name of the variable. None means the name in the file.

    Raises
    ------
    ExtraMissingError
        pyarrow is not installed.
    FormatError
        The file has other columns, repeats an id, or has rows of another type or width.
    LoadError
        The directory does not have the variable, or the variable does not have these ids.
    """
    found = _read_file(_load_arrow(), path)
    variable = variable or found.facts.get("variable")
    if variable is None:
        raise FormatError(f"{path} does not name the variable of its rows", hint="pass variable=")
    value, _ = _read_value(dirname, variable)
    values = np.asarray(value.held_array)
    if found.rows.dtype != values.dtype or found.rows.shape[1] != math.prod(values.shape[1:]):
        raise FormatError(
            f"{path} has rows of {found.rows.shape[1]} {found.rows.dtype}; {variable!r} in {dirname} "
            f"has rows of {math.prod(values.shape[1:])} {values.dtype}"
        )
    rows = found.rows.reshape(-1, *values.shape[1:])
    if isinstance(value, SelectedRows):
        value = replay(value, [SelectedRows(found.ids, value.height(), rows)])
    else:
        wrong = len(found.ids) > len(rows) or ((found.ids < 0) | (found.ids >= len(values))).any()
        if wrong:
            raise LoadError(
                f"{path} has ids outside of 0 to {len(values) - 1}, or forgotten ones, but {variable!r} "
                f"in {dirname} has a fixed size",
                hint="use a growing table (sparse_embedding), which takes any ids",
            )
        values = values.copy()
        values[found.ids] = rows
        value = LoDTensor(values)
    kind = VarType.SELECTED_ROWS if isinstance(value, SelectedRows) else VarType.LOD_TENSOR
    with scope_guard(Scope()):
        global_scope().var(variable).set_value(value)
        program = Program()
        one = program.global_block().create_var(
            name=variable, persistable=True, type=kind, shape=values.shape, dtype=convert_dtype(values.dtype)
        )
        report = save_vars(Executor(), os.fspath(dirname), program, vars=[one], delta=True)
        assert report is not None
        return report


def _read_value(
    dirname: str | os.PathLike[str], variable: str
) -> tuple[LoDTensor | SelectedRows, dict[str, Any]]:
    """Return a saved value with its deltas applied."""
    where = locate(os.fspath(dirname))
    if where.exists() and ServerTables().sniff(where):
        tables = ServerTables().read_all(where)
        if variable not in tables:
            raise LoadError(f"{variable!r} of {where.path}: it holds {', '.join(tables)}")
        return tables[variable], {}
    manifest = where.manifest()
    contents = open_directory(where, None if manifest is None else manifest.files, complete=False)
    looks = [contents.look(variable, kind) for kind in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)]
    held = next((one for one in looks if isinstance(one, Held)), None)
    if held is None:
        why = next((one.what for one in looks if isinstance(one, Unreadable)), "there is no such variable")
        raise LoadError(f"{variable!r} of {where.path}: {why}")
    reading = contents.read([Want(held)])
    if reading.bad:
        raise LoadError(f"{variable!r} of {where.path}: {reading.bad[0]}")
    return reading.values[0], {}


def _read_delta(
    dirname: str | os.PathLike[str], variable: str, link: int
) -> tuple[SelectedRows, dict[str, Any]]:
    """Return the rows of a link of the chain, and the number of that link."""
    where = locate(os.fspath(dirname))
    chain = list_chains(where).get(variable)
    if chain is None or isinstance(chain, Broken):
        why = "it is not in a chain of deltas" if chain is None else f"its chain is broken: {chain.what}"
        raise LoadError(f"{variable!r} of {where.path}: {why}")
    if not 0 < link < len(chain.records):
        count = len(chain.records) - 1
        raise LoadError(
            f"{variable!r} of {where.path} has no link {link}: {count} links follow its whole value",
            hint="link=None exports all rows; a chain starts again when it would cost more than it saves",
        )
    return read_link(where, chain, link), {"link": chain.records[link].facts["link"]}


def _read_file(arrow: Any, path: str | os.PathLike[str]) -> _Rows:
    try:
        if _is_parquet(path):
            import pyarrow.parquet

            table = pyarrow.parquet.read_table(path)
        else:
            import pyarrow.feather

            table = pyarrow.feather.read_table(path, memory_map=False)
    except arrow.ArrowException as error:
        raise FormatError(f"{path} is not an Arrow or Parquet file: {error}") from error
    if not {"id", "row"} <= set(table.column_names):
        raise FormatError(
            f"{path} has the columns {', '.join(table.column_names)}",
            hint="expected id (int64), row (a list of fixed size) and, for removed ids, forgotten (bool)",
        )
    row, ids = table.schema.field("row").type, table["id"]
    if not arrow.types.is_fixed_size_list(row) or ids.type != arrow.int64() or ids.null_count:
        raise FormatError(
            f"{path} has id of {ids.type} and row of {row}; expected int64 and a list of fixed size"
        )
    gone = np.zeros(len(table), np.bool_)
    if "forgotten" in table.column_names:
        gone = table["forgotten"].to_numpy().astype(np.bool_)
    values = table["row"].filter(arrow.array(~gone)).combine_chunks()
    if values.null_count or values.flatten().null_count:
        raise FormatError(f"{path} has a null row whose column 'forgotten' is not true")
    numbers = ids.to_numpy()
    if len(np.unique(numbers)) < len(numbers):
        raise FormatError(f"{path} repeats an id, so its row is ambiguous")
    try:
        dtype = numpy_dtype(convert_dtype(row.value_type.to_pandas_dtype()))
        facts = json.loads((table.schema.metadata or {}).get(_KEY, b"{}"))
    except (TypeError, ValueError, NotImplementedError) as error:
        raise FormatError(f"{path}: {error}") from error
    rows = np.array(values.flatten().to_numpy(zero_copy_only=False), dtype).reshape(-1, row.list_size)
    return _Rows(
        np.concatenate([numbers[~gone], numbers[gone]]), rows, facts if isinstance(facts, dict) else {}
    )


def _is_parquet(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path).endswith(".parquet")


def _load_arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ExtraMissingError("Arrow and Parquet files need pyarrow", extra="arrow") from error
    return pyarrow
