"""Reading for the ``load`` and ``load_combine`` operators of a user's own program.

The first operator reads the files of all operators of the run: every header, then all values. So a missing or
damaged file fails the run before any variable has changed. As in Fluid, a variable takes the dtype and shape
of its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from paddlelike.core import LoDTensor, SelectedRows, VarType
from paddlelike.errors import LoadError, MissingFileError
from paddlelike.formats.paddle import lod_tensor
from paddlelike.framework.opdef import OpView
from paddlelike.io import asynchronous
from paddlelike.io.contents.file import FileContents
from paddlelike.io.contents.interface import Held, Value, Want
from paddlelike.io.deltas.contents import has_chains, open_directory
from paddlelike.io.load.source import read_stable
from paddlelike.storage.location import Location, locate, locate_prefix

if TYPE_CHECKING:
    pass


class OperatorReader:
    """Reads the values for the load operators of a run.

    Parameters
    ----------
    ops
        The operators of the run that read or write files, in order; save operators are ignored.
    """

    def __init__(self, ops: Sequence[OpView]) -> None:
        self._pending: list[OpView] = []
        saved: set[str] = set()
        for op in ops:
            path = op.attrs["file_path"]
            if op.type.startswith("save"):
                saved.add(path)
            elif path not in saved:  # otherwise this run saves the file itself
                self._pending.append(op)
        self._values: dict[int, list[Value]] = {}  # by the id of the operator

    def take(self, op: OpView) -> list[Value]:
        """Return the values of an operator, in the order of its outputs.

        Raises
        ------
        LoadError
            A file of the run cannot be loaded.
        """
        if id(op) not in self._values:
            pending, self._pending = self._pending, []
            asynchronous.wait_for_pending()
            self._read_all(pending if any(one is op for one in pending) else [op])
        return self._values.pop(id(op))

    def _read_all(self, ops: Sequence[OpView]) -> None:
        """Read the files of several operators; the files of one directory are read together."""
        directories: dict[str, list[tuple[OpView, str]]] = {}
        found: dict[int, list[Value]] = {}
        for op in ops:
            if op.type == "load_combine" or op.attrs.get("seek", -1) >= 0:
                found[id(op)] = _read_by_itself(op)
            else:
                where, file = locate_prefix(op.attrs["file_path"])
                directories.setdefault(where.path, []).append((op, file))
        for directory, wanted in directories.items():
            location = locate(directory)
            values = read_stable(location, partial(_read_files, wanted, location))
            found |= {id(op): [value] for (op, _), value in zip(wanted, values, strict=True)}
        for op in ops:
            as_half = op.attrs.get("load_as_fp16")
            values = found[id(op)]
            self._values[id(op)] = [_convert_to_fp16(value) for value in values] if as_half else values


def _read_files(wanted: Sequence[tuple[OpView, str]], where: Location) -> list[Value]:
    """Return the values in files of one directory, each for the output of its operator."""
    names = [file for _, file in wanted]
    manifest = where.manifest() if has_chains(where, names) else None
    contents = open_directory(where, manifest.files if manifest else None, complete=False, only=names)
    wants, problems, missing, hint = [], [], 0, None
    for op, file in wanted:
        found = contents.look(file, _find_kind(op))
        if isinstance(found, Held):
            wants.append(Want(found))
            continue
        why, advice = ("there is no such file", None) if found is None else (found.what, found.hint)
        hint = hint or advice
        missing += found is None
        problems.append(f"\n  {op.output('Out')[0]}: {op.attrs['file_path']}: {why}")
    if problems:
        kind = MissingFileError if missing == len(problems) else LoadError
        raise kind(
            f"nothing was loaded from {where.path}: {len(problems)} of {len(wanted)} files cannot be loaded"
            + "".join(problems[:20]),
            hint=hint or "check the attribute file_path of the load operators",
        )
    return contents.read(wants).values


def _read_by_itself(op: OpView) -> list[Value]:
    """Return the values of a combined file, or the slice of a file that one operator reads."""
    path = op.attrs["file_path"]
    if op.attrs.get("model_from_memory"):
        return _read_contents(FileContents(path.encode("utf-8", "surrogateescape")), op)
    where, file = locate_prefix(path)
    directory = locate(where.path)
    read = _read_combined if op.type == "load_combine" else _read_slice
    return read_stable(directory, partial(read, op, file, directory))


def _read_combined(op: OpView, file: str, where: Location) -> list[Value]:
    return _read_contents(FileContents(file, where), op)


def _read_contents(contents: FileContents, op: OpView) -> list[Value]:
    names = op.output("Out")
    if contents.unnamed is not None:
        if len(names) != len(contents.headers):
            raise LoadError(
                f"{contents.where} holds {len(contents.headers)} variables, the operator load_combine has "
                f"{len(names)} outputs",
                hint="load a combined file with the variables that were saved into it",
            )
        contents.assign_names(names)
    found = [contents.look(name, VarType.LOD_TENSOR) for name in names]
    wants = [Want(held) for held in found if isinstance(held, Held)]
    if len(wants) < len(names):
        absent = [name for name, held in zip(names, found, strict=True) if not isinstance(held, Held)]
        raise LoadError(
            f"{contents.where} does not hold {absent[:20]}, which load_combine is to load",
            hint="its outputs are the variables in the file, in the order of their saving",
        )
    return contents.read(wants).values


def _read_slice(op: OpView, file: str, where: Location) -> list[Value]:
    with where.open_file(file) as opened:
        header = lod_tensor.read_header(opened)
        array = lod_tensor.read_slice(opened, header, start=op.attrs["seek"], shape=op.attrs["shape"])
    return [LoDTensor(array)]


def _find_kind(op: OpView) -> VarType:
    """Return the kind of the variable that a load operator writes."""
    variable = op.block._find_var_recursive(op.output("Out")[0])  # type: ignore[attr-defined]
    return VarType.LOD_TENSOR if variable is None else variable.type


def _convert_to_fp16(value: Value) -> Value:
    return value if isinstance(value, SelectedRows) else lod_tensor.to_fp16(value)
