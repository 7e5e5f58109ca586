"""Saving variables: a program of save operators, run as one transaction."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from paddlelike import unique_name
from paddlelike.core.dtypes import VarType
from paddlelike.core.scope import global_scope
from paddlelike.errors import OperatorError
from paddlelike.executor.run import Executor
from paddlelike.formats.sources import Buffer
from paddlelike.framework.program import Program
from paddlelike.framework.variable import Variable
from paddlelike.io.report import Moved, SaveReport
from paddlelike.io.select import is_parameter, is_persistable, program_of, select
from paddlelike.storage.transaction import Transaction

__all__ = ["save_params", "save_persistables", "save_vars"]


def save_vars(
    executor: Executor,
    dirname: str | os.PathLike[str] | None,
    main_program: Any = None,
    vars: Iterable[Variable | str] | None = None,  # noqa: A002  (Fluid's name)
    predicate: Callable[[Variable], bool] | None = None,
    filename: str | None = None,
) -> SaveReport | bytes | None:
    """Save the current values of variables, all of them or none.

    Parameters
    ----------
    dirname
        The directory; made when missing. None (with ``filename=None``): the bytes of the combined form are
        returned.
    vars
        Variables or their names; None: those that ``predicate`` accepts.
    filename
        One file for all variables, in the order of their names; None: a file each, named as the variable.

    Returns
    -------
    A report; None when there was nothing to save.

    Raises
    ------
    SaveError
        Something could not be written; the directory is as it was.
    NotInitializedError
        A variable holds no value.
    """
    _check_executor(executor, "save_vars")
    if dirname is None and filename is not None:
        raise TypeError("filename needs a dirname; pass neither to get the bytes")
    chosen = select(program_of(main_program), vars, predicate)
    if not chosen:
        warnings.warn("there is no variable to save", UserWarning, stacklevel=_outside())
        return None
    begin = time.perf_counter()
    if dirname is None:
        return _to_memory(executor, chosen)
    directory = os.path.normpath(os.fspath(dirname)) if os.fspath(dirname) else "."
    transaction = Transaction(directory)
    _run_saves(executor, directory, chosen, filename, _Files(directory, transaction))
    transaction.commit()
    saved = {v.name: _moved(v) for v in chosen}
    target = directory if filename is None else os.path.join(directory, filename)
    return SaveReport(target, saved, time.perf_counter() - begin)


def save_params(
    executor: Executor,
    dirname: str | os.PathLike[str] | None,
    main_program: Any = None,
    filename: str | None = None,
) -> SaveReport | bytes | None:
    """Save the parameters of a program: what prediction needs. See :func:`save_vars`."""
    return save_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def save_persistables(
    executor: Executor,
    dirname: str | os.PathLike[str] | None,
    main_program: Any = None,
    filename: str | None = None,
) -> SaveReport | bytes | None:
    """Save every persistable of a program: what going on with training needs. See :func:`save_vars`."""
    return save_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


class _Files:
    """Lends a transaction to the save operators of one run."""

    def __init__(self, directory: str, transaction: Transaction) -> None:
        self._directory = directory
        self._transaction = transaction

    def write(self, path: str, buffers: Sequence[Buffer]) -> None:
        """Add a file to the transaction."""
        prefix = os.path.join(self._directory, "")
        self._transaction.add(path.removeprefix(prefix), buffers)


def add_to(
    executor: Executor,
    transaction: Transaction,
    directory: str,
    variables: list[Variable],
    filename: str | None,
) -> None:
    """Add variables to a transaction that somebody else commits."""
    if variables:
        _run_saves(executor, directory, variables, filename, _Files(directory, transaction))


def _run_saves(
    executor: Executor, directory: str, variables: list[Variable], filename: str | None, files: _Files
) -> None:
    program = Program()
    block = program.global_block()
    twins = [block._clone_variable(v) for v in variables]
    if filename is None:
        for twin in twins:
            path = os.path.join(directory, twin.name)
            block.append_op(type="save", inputs={"X": [twin]}, outputs={}, attrs={"file_path": path})
    else:
        unique_name.generate("saved_params")  # Fluid takes one of these names here
        twins.sort(key=lambda twin: twin.name)
        path = os.path.join(directory, filename)
        block.append_op(type="save_combine", inputs={"X": twins}, outputs={}, attrs={"file_path": path})
    _drive(executor, program, {"files": files})


def _to_memory(executor: Executor, variables: list[Variable]) -> bytes:
    program = Program()
    block = program.global_block()
    twins = sorted((block._clone_variable(v) for v in variables), key=lambda twin: twin.name)
    out = block.create_var(type=VarType.RAW, name=unique_name.generate("saved_params"))
    block.append_op(
        type="save_combine",
        inputs={"X": twins},
        outputs={"Y": [out]},
        attrs={"file_path": "", "save_to_memory": True},
    )
    return bytes(_drive(executor, program, {}, [out.name])[0])


def _drive(
    executor: Executor, program: Program, services: dict[str, Any], fetches: list[str] | None = None
) -> list[Any]:
    """Run a program of operators on files; their own errors come out as they are."""
    try:
        return executor._run(program, {}, fetches or [], global_scope(), False, services=services)
    except OperatorError as error:
        if isinstance(error.__cause__, Exception) and hasattr(error.__cause__, "hint"):
            raise error.__cause__ from None
        raise


def _moved(variable: Variable) -> Moved:
    holder = global_scope().find_var(variable.name)
    assert holder is not None
    array = holder.value.array
    return Moved(tuple(array.shape), array.dtype.name, array.nbytes)


def _check_executor(executor: Any, what: str) -> None:
    if not isinstance(executor, Executor):
        raise TypeError(f"{what}: executor is a fluid.Executor, not {executor!r}")


def _outside() -> int:
    """The stack level of the first frame outside this package, for warnings."""
    import sys

    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and "paddlelike" in frame.f_globals.get("__name__", "").split("."):
        level, frame = level + 1, frame.f_back
    return level
