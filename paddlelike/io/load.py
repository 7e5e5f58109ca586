"""Loading variables: planned from the headers first, read aside, then put into the scope at once."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from paddlelike.core.dtypes import VarType
from paddlelike.core.scope import global_scope
from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.errors import LoadError, MissingFileError
from paddlelike.executor.run import Executor
from paddlelike.formats import combined, lod_tensor, selected_rows
from paddlelike.framework.operator import OpRole
from paddlelike.framework.program import Program
from paddlelike.framework.variable import Variable
from paddlelike.io.plan import Found, plan_combined, plan_directory
from paddlelike.io.report import LoadReport, Moved
from paddlelike.io.save import _check_executor, _drive, _outside
from paddlelike.io.select import (
    is_belong_to_optimizer,
    is_parameter,
    is_persistable,
    program_of,
    select,
)
from paddlelike.storage.local import File, read_all, recover

__all__ = ["load_params", "load_persistables", "load_vars"]

Values = dict[str, LoDTensor | SelectedRows]


def load_vars(
    executor: Executor,
    dirname: str | os.PathLike[str] | None,
    main_program: Any = None,
    vars: Iterable[Variable | str] | None = None,  # noqa: A002  (Fluid's name)
    predicate: Callable[[Variable], bool] | None = None,
    filename: str | bytes | None = None,
) -> LoadReport:
    """Load variables that :func:`save_vars` saved, here or in Paddle; all of them or none.

    Parameters
    ----------
    dirname
        The directory. None: ``filename`` is the bytes of the combined form.
    vars
        Variables or their names; None: those that ``predicate`` accepts.
    filename
        The one file that holds all of them; None: a file each.

    Returns
    -------
    A report, true when all is well.

    Raises
    ------
    LoadError
        Something is missing or does not fit; the message lists everything, and the scope is as it was.
    """
    _check_executor(executor, "load_vars")
    chosen = select(program_of(main_program), vars, predicate)
    if not chosen:
        raise LoadError(
            f"nothing to load from {dirname}: the program has no such variable",
            hint="pass the program that was built (main_program=), or vars=",
        )
    begin = time.perf_counter()
    unexpected: list[str] = []
    if dirname is not None:
        recover(dirname)
    if dirname is None or filename is not None:
        where, found, values = _read_combined(dirname, filename, chosen)
    else:
        where = os.path.normpath(os.fspath(dirname)) if os.fspath(dirname) else "."
        found, unexpected = plan_directory(where, chosen)
        values = _read_directory(where, found)
    moved = _put(executor, found, values, where)
    notes = [
        f"{f.variable.name}: {f.header.surplus} bytes after the tensor were passed over"
        for f in found
        if f.header.surplus and filename is None and dirname is not None
    ]
    return LoadReport(
        source=where,
        loaded=moved,
        unexpected=tuple(unexpected),
        notes=tuple(notes),
        seconds=time.perf_counter() - begin,
    )


def load_params(
    executor: Executor,
    dirname: str | os.PathLike[str] | None,
    main_program: Any = None,
    filename: str | bytes | None = None,
) -> LoadReport:
    """Load the parameters of a program. See :func:`load_vars`.

    For prediction, into a program without update operators (``clone(for_test=True)``); to go on with
    training use :func:`load_persistables`, which brings the optimizer's state as well.
    """
    _warn_of_updates(program_of(main_program))
    return load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def load_persistables(
    executor: Executor,
    dirname: str | os.PathLike[str] | None,
    main_program: Any = None,
    filename: str | bytes | None = None,
) -> LoadReport:
    """Load every persistable variable of a program, main or startup. See :func:`load_vars`."""
    return load_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


def _warn_of_updates(program: Program) -> None:
    updates = [op for op in program.global_block().ops if op.attrs.get("op_role", 0) & OpRole.Optimize]
    if not updates:
        return
    state = [v.name for v in program.list_vars() if is_belong_to_optimizer(v)]
    warnings.warn(
        f"load_params: this program updates its parameters when it runs ({len(updates)} update operators), "
        f"and its {len(state)} other persistables (optimizer state) are not loaded; use "
        "program.clone(for_test=True) to predict, load_persistables to go on with training",
        UserWarning,
        stacklevel=_outside(),
    )


def _read_directory(directory: str, found: list[Found]) -> Values:
    headers = {f.variable.name: f for f in found}

    def read(name: str, file: File) -> LoDTensor | SelectedRows:
        if headers[name].variable.type == VarType.SELECTED_ROWS:
            return selected_rows.read(file)
        return lod_tensor.read(file)

    return read_all(directory, headers, read)


def _read_combined(
    dirname: str | os.PathLike[str] | None, filename: str | bytes | None, variables: list[Variable]
) -> tuple[str, list[Found], Values]:
    if dirname is None:
        if not isinstance(filename, bytes | bytearray | memoryview):
            raise TypeError("without dirname, filename is the bytes that were saved")
        data = bytes(filename)
        found = plan_combined(data, f"{len(data)} bytes in memory", variables)
        tensors = combined.read(data)
        where = "memory"
    else:
        where = os.path.join(os.path.normpath(os.fspath(dirname) or "."), os.fsdecode(filename or ""))
        if not os.path.isfile(where):
            raise MissingFileError(
                f"nothing can be loaded: there is no file {where}",
                hint="leave filename out for a directory with one file per variable",
            )
        with File(where) as file:
            found = plan_combined(file, where, variables)
            tensors = combined.read(file)
    return where, found, {f.variable.name: t for f, t in zip(found, tensors, strict=True)}


class _Staged:
    """Lends what was read to the load operators of one run."""

    def __init__(self, values: Values) -> None:
        self._values = values

    def read(self, path: str, kind: VarType) -> LoDTensor | SelectedRows:
        """The value that was read for a variable."""
        return self._values[path]


def _put(executor: Executor, found: list[Found], values: Values, where: str) -> dict[str, Moved]:
    """Put the values into the scope through a program of load operators."""
    scope = global_scope()
    program = Program()
    block = program.global_block()
    moved = {}
    for variable, _ in found:
        holder = scope.find_var(variable.name)
        had_value = holder is not None and holder.is_initialized()
        array = _fit(variable, values[variable.name])
        moved[variable.name] = Moved(array.shape, array.dtype.name, array.nbytes, had_value)
        twin = block._clone_variable(variable)
        block.append_op(type="load", inputs={}, outputs={"Out": [twin]}, attrs={"file_path": variable.name})
    _drive(executor, program, {"files": _Staged(values)})
    for name in moved:
        holder = scope.find_var(name)
        assert holder is not None
        holder.origin = where
    return moved


def _fit(variable: Variable, value: LoDTensor | SelectedRows) -> Any:
    """The value's array, in the shape the program declares where the file has another form of it."""
    array = value.array
    assert array is not None
    if isinstance(value, LoDTensor) and variable.shape and array.ndim != len(variable.shape):
        array = array.reshape(variable.shape)
        value.adopt(array, value.lod())
    return array
