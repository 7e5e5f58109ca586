"""The HDF5 recipe of TensorFlow users: a dataset for each variable, set by name with an assign operator.

It allows more choice than ``save_params``, and every HDF5 tool opens the file. The file has only the chosen
variables: with the parameters alone an optimizer starts from zero; with ``predicate=fluid.io.is_persistable``
training continues exactly.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from paddlelike.core import Array, LoDTensor, global_scope
from paddlelike.errors import FormatError, MissingFileError, NotInitializedError, SaveError
from paddlelike.executor.run import Executor
from paddlelike.formats.hdf5 import Hdf5, read_attributes
from paddlelike.formats.sources import Source
from paddlelike.framework import Program, Variable
from paddlelike.framework.hints import explain_no_value
from paddlelike.io.calls import get_program, is_parameter, is_persistable, select
from paddlelike.io.load.load import load_vars
from paddlelike.io.report import LoadReport, Moved, SaveReport
from paddlelike.storage.local.transaction import write_all
from paddlelike.storage.location import find_near_file, locate_prefix
from paddlelike.storage.manifest import library_version
from paddlelike.storage.problems import raises_own_errors

if TYPE_CHECKING:
    from paddlelike.framework.typing import ProgramLike

Path = str | os.PathLike[str]

_VERSION: Final = "paddlelike_version"
_OUTPUT: Final = ":0"  # TensorFlow's mark of an operator's first output, which its variables' names end with


@raises_own_errors
def save_hdf5(
    executor: Executor,
    path: Path,
    main_program: ProgramLike | None = None,
    vars: Iterable[Variable | str] | None = None,  # noqa: A002  (as save_vars)
    predicate: Callable[[Variable], bool] | None = None,
    *,
    attributes: Mapping[str, Any] | None = None,
) -> SaveReport:
    """Write each variable into a dataset of an HDF5 file; slashes in its name become blanks.

    Parameters
    ----------
    executor
        The executor whose scope is saved.
    path
        The path of the file.
    main_program
        The program; None for the default main program.
    vars, predicate
        Variables or their names, or a function that chooses persistable variables; if both are None, the
        parameters.
    attributes
        Texts, numbers and small arrays kept with the file. The library's version is always added.

    Returns
    -------
    SaveReport
        Which variables were written, and how many bytes.

    Raises
    ------
    SaveError
        A variable cannot be stored in the file, which is unchanged.
    NotInitializedError
        A variable holds no value.
    ExtraMissingError
        h5py is not installed.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> y = fluid.layers.fc(fluid.data("x", [None, 3]), 2)
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> path = f"{tempfile.mkdtemp()}/net.h5"
    >>> report = fluid.save_hdf5(exe, path)
    >>> len(fluid.load_hdf5(exe, path).loaded)
    2
    """
    begin = time.perf_counter()
    chosen = select(get_program(main_program), vars, _default(vars, predicate))
    values = {variable.name: read_value(variable) for variable in chosen}
    extra = {_VERSION: library_version() or "unknown", **(attributes or {})}
    directory, name = os.path.split(os.fspath(path))
    try:
        pieces = Hdf5(tuple(extra.items())).write(values)
        write_all(directory or ".", {name: pieces})
    except FormatError as error:
        raise SaveError(f"nothing was saved: {error.message}", hint=error.hint) from None
    moved = {key: Moved(array.shape, array.dtype.name, array.nbytes) for key, array in values.items()}
    return SaveReport(os.fspath(path), moved, time.perf_counter() - begin)


@raises_own_errors
def load_hdf5(
    executor: Executor,
    path: Path,
    main_program: ProgramLike | None = None,
    vars: Iterable[Variable | str] | None = None,  # noqa: A002  (as load_vars)
    predicate: Callable[[Variable], bool] | None = None,
    *,
    strict: bool = True,
    rename: Mapping[str, str | Sequence[str]] | None = None,
) -> LoadReport:
    """Set variables from an HDF5 file, by name: all requested ones, or none.

    Names may end with TensorFlow's ``:0``. Files of this recipe, files with groups, and files of Keras are
    read.

    Parameters
    ----------
    executor
        The executor whose scope is filled.
    path
        The path of the file.
    main_program
        The program; None for the default main program.
    vars, predicate
        Variables or their names, or a function that chooses persistable variables; if both are None, the
        parameters.
    strict
        Whether every variable must fit. If False, the variables that fit are loaded, and the report names the
        others.
    rename
        ``{name in the file: name in the program}``, for files that were saved under older names; with or
        without the ``:0``.

    Returns
    -------
    LoadReport
        Which variables were loaded; true when all are.

    Raises
    ------
    MissingFileError
        There is no such file.
    LoadError
        Something is missing or does not fit; it lists everything, and nothing changes.
    FormatError
        The file is damaged.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> y = fluid.layers.fc(fluid.data("x", [None, 3]), 2)
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> path = f"{tempfile.mkdtemp()}/net.h5"
    >>> report = fluid.save_hdf5(exe, path)
    >>> len(fluid.load_hdf5(exe, path).loaded)
    2
    """
    where, name = locate_prefix(path)
    if not where.has(name):
        raise MissingFileError(f"no such file: {os.fspath(path)}", hint=find_near_file(path))
    with where.open_file(name) as file:
        found = [entry.name for entry in Hdf5().entries(file)]
        version = _read_version(file)
    report = load_vars(
        executor,
        where.path,
        main_program,
        vars,
        _default(vars, predicate),
        name,
        strict=strict,
        rename=_rename(found, get_program(main_program), rename or {}),
    )
    return report if version is None else _with_note(report, version)


def _rename(
    found: list[str], program: Program, given: Mapping[str, str | Sequence[str]]
) -> dict[str, str | Sequence[str]]:
    """Map names in a file to names in the program: by ``given``, or by removing the ending ``:0``.

    Names without a variable in the program, such as an optimizer's, are not changed.
    """
    here = {f"{variable.name}{_OUTPUT}": variable.name for variable in program.list_vars()}
    automatic = {key: here[key] for key in found if key in here and here[key] not in found}
    keys = {key: key + _OUTPUT for key in given if key not in found and key + _OUTPUT in found}
    return automatic | {keys.get(key, key): new for key, new in given.items()}


class ParamSetter(NamedTuple):
    """The way to set one variable: run ``assign``, feeding ``placeholder``."""

    assign: Program
    placeholder: Variable


class _ParamSetters(dict[str, ParamSetter]):
    """Setters by the names of variables; TensorFlow's name ``w:0`` finds the setter of ``w``."""

    def __missing__(self, name: str) -> ParamSetter:
        if name.endswith(_OUTPUT):
            return self[name.removesuffix(_OUTPUT)]
        raise KeyError(name)


def build_param_setters(
    program: ProgramLike | None = None, predicate: Callable[[Variable], bool] | None = None
) -> dict[str, ParamSetter]:
    """Return a setter for each variable: a program with one assign operator, and the variable to feed.

    The setters are for the persistable variables that ``predicate`` accepts, or for the parameters if it is
    None. Build them once: setting values does not grow a program. The placeholder of ``w`` is called
    ``w_setter``. A look-up by TensorFlow's name, ``w:0``, finds the setter of ``w``.

    Parameters
    ----------
    program
        The program of the variables; None for the default main program.
    predicate
        A function of a persistable variable that returns whether it gets a setter; None for parameters.

    Returns
    -------
    dict
        A pair for each name: the program that assigns, and the variable to feed, in the shape and dtype of
        the parameter.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
    ...     hidden = fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr="w", bias_attr=False)
    ...     setters = build_param_setters()
    >>> exe = fluid.Executor(fluid.CPUPlace())
    >>> assign, placeholder = setters["w"]
    >>> _ = exe.run(assign, feed={placeholder.name: np.ones((2, 1), "float32")})
    >>> np.array(fluid.global_scope().find_var("w").get_tensor()).ravel().tolist()
    [1.0, 1.0]
    """
    chosen = select(get_program(program), None, _default(None, predicate))
    return _ParamSetters({variable.name: build_setter(variable) for variable in chosen})


def build_setter(variable: Variable, placeholder_name: str | None = None) -> ParamSetter:
    """Return the setter of one variable."""
    assign = Program()
    block = assign.global_block()
    target = block.create_var(
        name=variable.name, shape=variable.shape, dtype=variable.dtype, persistable=True
    )
    placeholder = block.create_var(
        name=placeholder_name or f"{variable.name}_setter",
        shape=variable.shape,
        dtype=variable.dtype,
        is_data=True,
        need_check_feed=True,
    )
    block.append_op(type="assign", inputs={"X": [placeholder]}, outputs={"Out": [target]})
    return ParamSetter(assign, placeholder)


def _default(
    variables: object, predicate: Callable[[Variable], bool] | None
) -> Callable[[Variable], bool] | None:
    """Return the predicate of a call, by default one that accepts parameters.

    It accepts only persistable variables: temporaries hold no values between runs.
    """
    if predicate is None:
        return is_parameter if variables is None else None
    return lambda variable: is_persistable(variable) and predicate(variable)


def read_value(variable: Variable) -> Array:
    """Return a variable's array in the scope, without a copy. Raises NotInitializedError without a value."""
    holder = global_scope().find_var(variable.name)
    value = None if holder is None else holder.value
    if not isinstance(value, LoDTensor) or value.held_array is None:
        raise NotInitializedError(
            f"variable {variable.name!r} holds no tensor",
            hint=explain_no_value([variable.name], variable.block.program),
        )
    return value.held_array


def _read_version(file: Source) -> str | None:
    """Return the version that wrote the file, when it differs from this one."""
    version = read_attributes(file).get(_VERSION)
    return None if version is None or str(version) == library_version() else str(version)


def _with_note(report: LoadReport, version: str) -> LoadReport:
    note = f"written by version {version}, this is {library_version()}: if names have changed, pass rename="
    return replace(report, notes=(*report.notes, note))
