"""Read saved values into ``{name: array}``, without a program."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.errors import LoadError, MissingFileError, PaddlelikeError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.formats.paddle.directory import NO_VARIABLES
from paddlelike.formats.state.fluid_save import PARAMETER_FILE, FluidSave, PrefixedFolder
from paddlelike.framework.graph.variable import Variable
from paddlelike.io import asynchronous
from paddlelike.io.contents.file import FileContents
from paddlelike.io.contents.interface import Held, Want
from paddlelike.io.verify import check_files
from paddlelike.storage.location import Location, locate, locate_prefix

__all__ = ["PROGRAM_FILE", "load_program_state", "read_pickles", "strip_suffix"]

Array = np.ndarray[Any, Any]

PROGRAM_FILE: Final = ".pdmodel"
_TRIES: Final = 5  # when another process saves the same files at the same time


def load_program_state(
    model_path: str | os.PathLike[str],
    var_list: Iterable[Variable] | None = None,
    *,
    verify: bool = True,
) -> dict[str, Array]:
    """Read a directory, a ``.pdparams`` or a file of any registered format into ``{name: array}``.

    No program is needed. A combined file stores no names: it needs ``var_list``, the variables in it.
    Unless ``verify`` is false, the files are compared with their manifest, if there is one.

    Raises
    ------
    LoadError
        There is no such file or directory, ``var_list`` has another count of variables, or a file is not
        what was saved.
    FormatError
        A file is damaged.
    ValueError
        ``var_list`` is needed and was not given.
    """
    prefix = strip_suffix(model_path)
    asynchronous.wait_for_pending()
    pickled = read_pickles(prefix, verify=verify)
    if pickled is not None:
        return pickled.values
    path = os.fspath(model_path)
    directory, (where, name) = locate(path), locate_prefix(path)
    if directory.exists():
        return _read_directory(directory, var_list, verify=verify)
    if where.has(name):
        if verify:
            check_files(locate(where.path), path, [name])
        return _read_file(where, name, var_list)
    raise MissingFileError(
        f"there is neither {prefix}.pdparams, nor a directory or file {path}", hint="check the path"
    )


def strip_suffix(model_path: str | os.PathLike[str]) -> str:
    """Return the prefix of the files of a ``fluid.save``, also where one of them is given."""
    path = os.fspath(model_path)
    for suffix in (*FluidSave.suffixes, PROGRAM_FILE):
        path = path.removesuffix(suffix)
    return path


class PickledState(NamedTuple):
    """The values of a ``fluid.save``, and whether the files were compared with their manifest."""

    values: dict[str, Array]
    verified: bool


def read_pickles(prefix: str, *, verify: bool) -> PickledState | None:
    """Return the values in the ``.pdparams`` and ``.pdopt``, both of one save; None: no ``.pdparams``.

    Raises
    ------
    FormatError
        A file is damaged.
    LoadError
        A file is not what was saved, or the files were replaced each time they were read.
    """
    where, base = locate_prefix(prefix)
    folder = PrefixedFolder(where, base)
    for _ in range(_TRIES):
        where.recover()
        stamp = where.stamp()
        if not base or not folder.has(PARAMETER_FILE):
            return None
        try:
            names = [base + suffix for suffix in FluidSave.suffixes if folder.has(suffix)]
            verified = verify and check_files(where, prefix, names)
            values = FluidSave().read_all(folder)
        except PaddlelikeError:
            if where.stamp() == stamp:
                raise
        else:
            if where.stamp() == stamp:
                return PickledState({name: _get_elements(value) for name, value in values.items()}, verified)
    raise LoadError(f"{prefix}.pdparams was saved anew, {_TRIES} times, while it was being read")


def _read_directory(
    directory: Location, var_list: Iterable[Variable] | None, *, verify: bool
) -> dict[str, Array]:
    names = directory.list_names() if var_list is None else [v.name for v in var_list]
    wanted = [name for name in names if os.path.basename(name) not in NO_VARIABLES]
    if verify:
        check_files(directory, directory.path, wanted)
    return directory.read_all(wanted, lambda _, file: np.array(lod_tensor.read(file)))


def _read_file(where: Location, name: str, var_list: Iterable[Variable] | None) -> dict[str, Array]:
    """Return the values in one file, under the names it stores or those of ``var_list``."""
    contents = FileContents(name, where)
    if contents.unnamed is not None:
        if var_list is None:
            raise ValueError(
                f"{contents.where} is a combined file, which stores no names: pass var_list, the variables "
                "it holds"
            )
        names = sorted(v.name for v in var_list)
        if len(names) != len(contents.headers):
            raise LoadError(
                f"{contents.where} holds {len(contents.headers)} variables, var_list names {len(names)}"
            )
        contents.assign_names(names)
    wants = [
        Want(Held(name, header)) for name, header in zip(contents.names(), contents.headers, strict=True)
    ]
    values = contents.read(wants).values
    return {want.held.name: _get_elements(value) for want, value in zip(wants, values, strict=True)}


def _get_elements(value: LoDTensor | SelectedRows) -> Array:
    array = value.array
    assert array is not None
    return array
