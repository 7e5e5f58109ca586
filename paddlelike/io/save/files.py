"""The files of a run, which ``save`` and ``load`` operators of a program write and read.

Saved values are collected and written at the end of the run, in one transaction for each directory. The first
load operator reads all files, so that either all are loaded or the run fails before any variable has changed.
A ``load`` after a ``save`` of the same file gets the saved value.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from weakref import ref

import numpy as np

from paddlelike.core import LoDTensor, ScopeVariable, SelectedRows
from paddlelike.errors import SaveError
from paddlelike.formats.base import copy_value
from paddlelike.formats.paddle.lod_tensor import to_fp16
from paddlelike.framework.opdef import Context, OpView
from paddlelike.io import asynchronous
from paddlelike.io.incremental import State, get_array, get_state
from paddlelike.io.load.operators import OperatorReader
from paddlelike.io.save.encoded import Item, check_value, encode_combined, get_item
from paddlelike.io.save.writer import Writer
from paddlelike.storage.location import is_remote, locate, locate_prefix
from paddlelike.storage.options import SaveOptions


def open_files(ops: Sequence[OpView], *, alone: bool) -> RunFiles:
    """Return the files of a run with these operators (the hook ``open_files`` of the executor).

    ``alone`` says that the program has no other operators.
    """
    return RunFiles(ops, unchanging=alone and all(op.type.startswith("save") for op in ops))


class RunFiles:
    """Writes and reads the files of the operators of one run.

    Parameters
    ----------
    ops
        All operators of the program's main block that read or write files, in order.
    unchanging
        Whether no operator of the run changes a variable, so that saved values need no copy.
    writer
        The transaction into one directory that all ``save`` operators belong to; its owner commits it.
    """

    def __init__(
        self, ops: Sequence[OpView] = (), *, unchanging: bool = False, writer: Writer | None = None
    ) -> None:
        self._unchanging = unchanging
        self._writer = writer
        self._begin = "" if writer is None else _get_directory_prefix(writer)
        self._saved: dict[str, tuple[str, list[Item]]] = {}  # operator type and variables, by path
        self._reader = OperatorReader(ops)
        self.in_memory: list[bytes] = []  # the results of save_combine operators without a file

    def save(self, context: Context, ops: Sequence[OpView]) -> None:
        """Collect the variables of ``save`` and ``save_combine`` operators.

        Raises
        ------
        NotInitializedError
            A variable holds no value.
        SaveError
            A variable is not a tensor, or a file exists that must not be overwritten.
        """
        scope = context.scope
        for op in ops:
            attrs = op.attrs
            if self._unchanging and not attrs.get("save_as_fp16"):
                items = [get_item(name, scope) for name in op.input("X")]
            else:
                items = [self._copy_item(context, op, name) for name in op.input("X")]
            path = attrs["file_path"]
            if attrs.get("save_to_memory"):
                self.in_memory.append(b"".join(encode_combined(items)))
                if self._writer is None:
                    context.write(op.output("Y")[0], self.in_memory[-1])
            elif self._writer is None:
                _check_overwrite(path, overwrite=attrs.get("overwrite", True))
                self._saved[path] = op.type, items
            else:
                _add(self._writer, path[len(self._begin) :], op.type, items)

    def load(self, context: Context, ops: Sequence[OpView]) -> None:
        """Set the outputs of ``load`` and ``load_combine`` operators.

        Raises
        ------
        LoadError
            A file cannot be loaded; then no file of the run was loaded.
        """
        for op in ops:
            saved = self._saved.get(op.attrs["file_path"])
            values = self._reader.take(op) if saved is None else [copy_value(item.value) for item in saved[1]]
            for name, value in zip(op.output("Out"), values, strict=True):
                if isinstance(value, SelectedRows):
                    context.write(name, value)
                else:
                    context.write(name, value.held_array, value.lod(), fresh=True)

    def commit(self) -> None:
        """Write the saved values, one transaction for each directory in the order of the operators.

        Raises
        ------
        SaveError
            A file cannot be written; its directory is unchanged.
        """
        if not self._saved:
            return
        begin = time.perf_counter()
        asynchronous.check_pending()
        directories: dict[str, list[str]] = {}
        for path in self._saved:
            directories.setdefault(locate_prefix(path)[0].path, []).append(path)
        for directory, paths in directories.items():
            writer = _make_writer(directory, paths)
            for path in paths:
                _add(writer, locate_prefix(path)[1], *self._saved[path])
            writer.prepare()
            writer.commit(begin)

    def _copy_item(self, context: Context, op: OpView, name: str) -> Item:
        """Return a variable with a copy of its current value, which the run does not change."""
        as_half = bool(op.attrs.get("save_as_fp16"))
        holder = context.scope.find_var(name)
        if as_half or holder is None or not holder.is_initialized():  # it differs from the value in the scope
            holder = None
        version = 0 if holder is None else holder.version  # read before the value, see get_state()
        value = context.read(name)
        if isinstance(value, np.ndarray):
            value = LoDTensor(value, context.read_lod(name))
        value = check_value(name, value)
        array = get_array(value)
        value = to_fp16(value) if as_half and isinstance(value, LoDTensor) else copy_value(value)
        if holder is None:
            holder = ScopeVariable(name)
            holder.set_value(value)
            return Item(name, holder, value, get_state(holder))
        return Item(name, holder, value, State(version, ref(array)))


def _add(writer: Writer, file: str, op_type: str, items: list[Item]) -> None:
    if op_type == "save":
        writer.add(file, items[0])
    else:
        writer.add_combined(file, items)


def _check_overwrite(path: str, *, overwrite: bool) -> None:
    where, file = locate_prefix(path)
    if not overwrite and where.has(file):
        raise SaveError(
            f"{path} exists, and overwrite is False", hint="remove the file or choose another path"
        )


def _make_writer(directory: str, paths: Sequence[str]) -> Writer:
    """Return the transaction for files of a directory.

    A single file in a directory whose parent cannot be written, such as ``/tmp``, is saved alone and without
    a manifest.
    """
    parent = os.path.dirname(os.path.realpath(directory))
    if len(paths) == 1 and not is_remote(directory) and os.path.isdir(directory) and not _is_writable(parent):
        return Writer(locate_prefix(paths[0])[0], SaveOptions(manifest=False))
    return Writer(locate(directory))


def _is_writable(directory: str) -> bool:
    return os.access(directory, os.W_OK | os.X_OK)


def _get_directory_prefix(writer: Writer) -> str:
    """Return the common prefix of the paths of files in the directory of a transaction."""
    path = writer.where.path
    return "" if path == "." else path.rstrip("/") + "/"
