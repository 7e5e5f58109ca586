"""Read saved values into ``{name: array}``, without a program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, NamedTuple

from paddlelike.core import Array, LoDTensor, SelectedRows, VarType
from paddlelike.errors import FormatError, LoadError, MissingFileError, PaddlelikeError
from paddlelike.formats.entry import list_left_out, note_left_out
from paddlelike.formats.explain import explain_names
from paddlelike.formats.paddle.directory import NO_VARIABLES
from paddlelike.formats.state.fluid_save import PARAMETER_FILE, FluidSave, PrefixedFolder
from paddlelike.formats.state.sharded import PaddleDistributed
from paddlelike.foundation.progress import advance_progress, show_progress
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Variable
from paddlelike.framework.codec.decode import decode_program
from paddlelike.io import asynchronous
from paddlelike.io.calls import get_program_persistable_vars
from paddlelike.io.contents.compare import ComparedFolder
from paddlelike.io.contents.file import FileContents
from paddlelike.io.contents.interface import Held, Unreadable, Want
from paddlelike.io.deltas.contents import open_directory
from paddlelike.io.load.misplaced import suggest_prefix
from paddlelike.io.load.model_files import VALUES, find_model
from paddlelike.io.load.source import read_stable
from paddlelike.io.verify import check_problems, choose_comparison
from paddlelike.storage.location import Location, locate, locate_prefix

PROGRAM_FILE: Final = ".pdmodel"


def load_program_state(
    model_path: str | os.PathLike[str],
    var_list: Iterable[Variable | str] | None = None,
    *,
    verify: bool = True,
) -> dict[str, Array]:
    """Read a directory, a ``.pdparams`` or a file of any registered format into ``{name: array}``.

    No program is needed.

    Parameters
    ----------
    model_path
        The directory or file. For the files of :func:`save`, the path with or without their suffix.
    var_list
        The variables to read from a directory, or their names; None for every file in it. A file that stores
        no names needs them: a file of one variable, or a combined one.
    verify
        Whether to compare the files with their manifest, if there is one.

    Values in the dicts and lists of a pickle are named by their paths, ``model/linear_0.w_0``. Values that
    are not arrays of numbers, such as the state of a schedule, are left out, and a warning names them.

    Returns
    -------
    dict
        The arrays by name, in the shapes and dtypes of the files.

    Raises
    ------
    LoadError
        There is no such file or directory, ``var_list`` has another number of variables, or a file differs
        from its manifest.
    FormatError
        A file is damaged.
    ValueError
        ``var_list`` is needed and was not given.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     saved = fluid.io.save_persistables(exe, home, main)
    []
    >>> {name: array.shape for name, array in fluid.io.load_program_state(home).items()}
    {'fc_0.b_0': (3,), 'fc_0.w_0': (4, 3)}
    """
    prefix = strip_suffix(model_path)
    asynchronous.wait_for_pending()
    pickled = read_pickles(prefix, verify=verify)
    if pickled is not None:
        _warn_of(pickled.left_out)
        return pickled.values
    path = os.fspath(model_path)
    model = find_model(path)
    if model is not None and model.values is not None and (model.program or var_list):
        folder = locate(model.directory)
        named = (
            var_list if model.program is None or var_list is not None else _list_values(folder, model.program)
        )
        return _read_file(folder, model.values, named, verify=verify)
    directory, (where, name) = locate(path), locate_prefix(path)
    if directory.exists():
        return read_stable(directory, partial(_read_directory, directory, var_list, verify=verify))
    if name and where.has(name):
        return _read_file(where, name, var_list, verify=verify)
    raise MissingFileError(
        f"there is neither {prefix}.pdparams, nor a directory or file {path}", hint=suggest_prefix(prefix)
    )


def strip_suffix(model_path: str | os.PathLike[str]) -> str:
    """Return the prefix of the files of a ``fluid.save``, also for the path of one of them."""
    path = os.fspath(model_path)
    for suffix in (*FluidSave.suffixes, PROGRAM_FILE):
        path = path.removesuffix(suffix)
    return path


class PickledState(NamedTuple):
    """The values of a ``fluid.save``, and whether the files were compared with their manifest."""

    values: dict[str, Array]
    verified: bool
    notes: tuple[str, ...] = ()  # for the report
    left_out: tuple[str, ...] = ()  # for warnings, on entries that are not in ``values``


def read_pickles(prefix: str, *, verify: bool) -> PickledState | None:
    """Return the values in the ``.pdparams`` and ``.pdopt`` of one save, or None without ``.pdparams``.

    Raises
    ------
    FormatError
        A file is damaged.
    LoadError
        A file differs from its record, or the files were replaced each time they were read.
    """
    where, base = locate_prefix(prefix)
    if not base:  # a directory: its path ends in a separator
        return None
    with show_progress(f"loading {prefix}"):
        return read_stable(where, partial(_read_prefixed, where, base, prefix, verify=verify))


def _read_prefixed(where: Location, base: str, prefix: str, *, verify: bool) -> PickledState | None:
    """Read the files of a ``fluid.save`` once, and compare them with their manifest."""
    folder = PrefixedFolder(where, base)
    if not folder.has(PARAMETER_FILE):
        return None
    names = [base + suffix for suffix in FluidSave.suffixes if folder.has(suffix)]
    comparison = choose_comparison(where, None, verify=None if verify else False, lazy=False)
    compared = ComparedFolder(where, comparison.records or {})
    try:
        pickled = PrefixedFolder(compared, base)
        entries = FluidSave().entries(pickled)
        values = {}
        for entry in entries:
            values[entry.name] = FluidSave().read(pickled, entry)
            advance_progress(entry.nbytes)
    except FormatError as error:  # other bytes than the saved ones are reported as damage
        check_problems(where, comparison, compared.bad, shown=prefix, count=len(names))
        raise FormatError(f"{prefix}: {error.message}", hint=error.hint) from error.__cause__
    notes = (
        *comparison.notes,
        *check_problems(where, comparison, compared.bad, shown=prefix, count=len(names)),
    )
    verified = comparison.covers(names) and not notes
    arrays = {name: _get_elements(value) for name, value in values.items()}
    return PickledState(arrays, verified, notes, note_left_out(list_left_out(entries), prefix))


def _list_values(where: Location, program: str) -> list[Variable]:
    """Return the variables whose values a model has."""
    with where.open_file(program) as file:
        decoded = decode_program(file.read(file.size))
    return list(get_program_persistable_vars(decoded))


def _read_directory(
    directory: Location, var_list: Iterable[Variable | str] | None, *, verify: bool
) -> dict[str, Array]:
    """Return the values in the files of a directory, compared with the manifest while they are read."""
    if PaddleDistributed().sniff(directory):
        return _read_pieces(directory, var_list, verify=verify)
    comparison = choose_comparison(directory, None, verify=None if verify else False, lazy=False)
    only = None if var_list is None else _list_names(var_list)
    contents = open_directory(directory, comparison.records, complete=False, only=only)
    names = contents.names() if only is None else only
    names = [name for name in names if os.path.basename(name) not in NO_VARIABLES]
    combined = _find_combined(directory)
    if combined is not None:
        return _read_file(locate_prefix(f"{directory.path}/{combined}")[0], combined, var_list, verify=verify)
    found = [contents.look(name, VarType.LOD_TENSOR) for name in names]
    wants = [Want(held) for held in found if isinstance(held, Held)]
    reading = contents.read(wants)
    check_problems(directory, comparison, reading.bad, shown=directory.path, count=len(names))
    if len(wants) < len(names):
        raise _explain_unread(directory, names, found)
    return {name: _get_elements(value) for name, value in zip(names, reading.values, strict=True)}


def _read_pieces(
    directory: Location, var_list: Iterable[Variable | str] | None, *, verify: bool
) -> dict[str, Array]:
    """Return the values of a checkpoint of paddle.distributed."""
    pieces = PaddleDistributed()
    comparison = choose_comparison(directory, None, verify=None if verify else False, lazy=False)
    compared = ComparedFolder(directory, comparison.records or {})
    check = partial(check_problems, directory, comparison, shown=directory.path)
    try:
        entries = pieces.entries(compared if comparison.records else directory)
    except FormatError as error:  # other bytes than the saved ones are reported as damage
        check(compared.bad, count=len(comparison.records or ()))
        if directory.path in error.message:
            raise
        raise FormatError(f"{directory.path}: {error.message}", hint=error.hint) from error
    check(compared.bad, count=len(comparison.records or ()))
    _warn_of(note_left_out(list_left_out(entries), directory.path))
    found = {entry.name: entry for entry in entries}
    names = list(found) if var_list is None else _list_names(var_list)
    if missing := [name for name in names if name not in found]:
        raise MissingFileError(
            f"nothing was loaded from {directory.path}: it holds no {', '.join(missing[:8])}",
            hint="pass variables that were saved there",
        )
    return {name: _get_elements(pieces.read(directory, found[name])) for name in names}


def _find_combined(directory: Location) -> str | None:
    """Return the only file of a directory if it holds several variables, else None."""
    names = [name for name in directory.list_names() if os.path.basename(name) not in NO_VARIABLES]
    if len(names) != 1:
        return None
    try:
        contents = FileContents(names[0], directory, verify=False)
    except (FormatError, LoadError):  # its reader raises the error
        return None
    return names[0] if contents.unnamed is not None and len(contents.headers) > 1 else None


def _explain_unread(
    directory: Location, names: Sequence[str], found: Sequence[Held | Unreadable | None]
) -> PaddlelikeError:
    """Return the error for the first file that is missing or holds no variable."""
    name, problem = next(
        (name, one) for name, one in zip(names, found, strict=True) if not isinstance(one, Held)
    )
    if problem is None:
        return MissingFileError(
            f"nothing was loaded from {directory.path}, which has no file {name}",
            hint="pass variables that were saved there",
        )
    return FormatError(problem.what, hint=explain_names(directory.list_names()) or problem.hint)


def _read_file(
    where: Location, name: str, var_list: Iterable[Variable | str] | None, *, verify: bool
) -> dict[str, Array]:
    """Return the values in one file, under the names it stores or the names in ``var_list``."""
    directory = locate(where.path)
    comparison = choose_comparison(directory, name, verify=None if verify else False, lazy=False)
    record = None if comparison.records is None else comparison.records[name]
    contents = FileContents(name, where, verify=comparison.covers([name]), record=record)
    if contents.unnamed is not None:
        if var_list is None and (len(contents.headers) > 1 or name.endswith(VALUES)):
            raise ValueError(
                f"{contents.where} is a combined file, which stores no names: pass var_list, the variables "
                "it holds"
            )
        names = [os.path.basename(name)] if var_list is None else sorted(_list_names(var_list))
        if len(names) != len(contents.headers):
            raise LoadError(
                f"{contents.where} holds {len(contents.headers)} variables, var_list names {len(names)}",
                hint="pass the variables of one save, all of them",
            )
        contents.assign_names(names)
    wants = [
        Want(Held(name, header)) for name, header in zip(contents.names(), contents.headers, strict=True)
    ]
    reading = contents.read(wants)
    check_problems(directory, comparison, reading.bad, shown=contents.where, count=1)
    _warn_of(reading.notes)
    return {want.held.name: _get_elements(value) for want, value in zip(wants, reading.values, strict=True)}


def _list_names(var_list: Iterable[Variable | str]) -> list[str]:
    return [one if isinstance(one, str) else one.name for one in var_list]


def _warn_of(left_out: Iterable[str]) -> None:
    for note in left_out:
        warn_user(note)


def _get_elements(value: LoDTensor | SelectedRows) -> Array:
    array = value.held_array
    assert array is not None
    return array
