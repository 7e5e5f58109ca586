"""Operators between variables and files: save, load, their combined forms, and the holders feed and fetch.

A run may lend a ``files`` service (see :class:`Files`), by which many operators become one transaction;
without it each operator reads or writes its file at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from paddlelike.core.dtypes import VarType
from paddlelike.core.tensor import LoDTensor, SelectedRows
from paddlelike.errors import NotInitializedError, SaveError
from paddlelike.formats import combined, lod_tensor, selected_rows
from paddlelike.formats.sources import Buffer
from paddlelike.framework.opdef import Array, Attrs, Bool, Context, Int, Long, Longs, OpDef, String, register
from paddlelike.storage.local.files import File
from paddlelike.storage.local.transaction import write_all

__all__ = ["DirectFiles", "Files"]


class Files(Protocol):
    """Where the operators of a run put and find files."""

    def write(self, path: str, buffers: Sequence[Buffer]) -> None:
        """Take the bytes of a file; they are read when the files are written, not copied."""

    def read(self, path: str, kind: VarType) -> LoDTensor | SelectedRows:
        """The variable in a file."""

    def read_combined(self, path: str) -> list[LoDTensor]:
        """The variables in a combined file."""


class DirectFiles:
    """Each file at once, by itself."""

    def write(self, path: str, buffers: Sequence[Buffer]) -> None:
        """Write the file; its directory is made when missing."""
        directory, name = os.path.split(path)
        write_all(directory or ".", {name: buffers})

    def read(self, path: str, kind: VarType) -> LoDTensor | SelectedRows:
        """Read the variable in a file."""
        with File(path) as file:
            return selected_rows.read(file) if kind == VarType.SELECTED_ROWS else lod_tensor.read(file)

    def read_combined(self, path: str) -> list[LoDTensor]:
        """Read the variables in a combined file."""
        with File(path) as file:
            return combined.read(file)


def _files(ctx: Context) -> Files:
    files: Files | None = ctx.service("files")
    return DirectFiles() if files is None else files


def _value(ctx: Context, value: Any, index: int = 0) -> LoDTensor | SelectedRows:
    """What a save operator writes: the variable with its LoD."""
    name = ctx.op.input("X")[index]
    if isinstance(value, SelectedRows):
        return value
    if not isinstance(value, np.ndarray):
        if value is None:
            raise NotInitializedError(
                f"variable {name!r} cannot be saved: it holds no value",
                hint="run the startup program, or load the values, in this scope first",
            )
        raise SaveError(f"variable {name!r} cannot be saved: it holds a {type(value).__name__}, not a tensor")
    return LoDTensor(value, ctx.lod("X", index))


def _check_overwrite(path: str, overwrite: bool) -> None:
    if not overwrite and os.path.exists(path):
        raise SaveError(
            f"{path} exists, and overwrite is False", hint="remove the file or choose another path"
        )


@register
class Save(OpDef):
    """One variable into one file, in Paddle's stream of its kind."""

    type = "save"
    outputs = ("kLookupTablePath?",)
    attrs = {"file_path": String(), "overwrite": Bool(True), "save_as_fp16": Bool(False)}
    context = True
    external = True

    @staticmethod
    def forward(ctx: Context, x: Any, *, file_path: str, overwrite: bool, save_as_fp16: bool) -> None:
        value = _value(ctx, x)
        _check_overwrite(file_path, overwrite)
        if isinstance(value, SelectedRows):
            buffers = selected_rows.encode(value)
        else:
            buffers = lod_tensor.encode(lod_tensor.as_fp16(value) if save_as_fp16 else value)
        _files(ctx).write(file_path, buffers)


class LoadAttrs(Attrs):
    """Attributes of load."""

    file_path: str = String()
    load_as_fp16: bool = Bool(False)
    seek: int = Long(-1)
    shape: list[int] = Longs(())


@register
class Load(OpDef):
    """One variable out of one file; with ``seek`` only ``shape`` from element ``seek`` on."""

    type = "load"
    inputs = ()
    attrs = LoadAttrs.table()
    context = True
    fresh = True
    external = True

    @staticmethod
    def forward(ctx: Context, *, attrs: LoadAttrs) -> Array | SelectedRows:
        if attrs.seek >= 0:
            return _slice(attrs.file_path, attrs.seek, attrs.shape)
        kind = ctx.op.block._var_recursive(ctx.op.output("Out")[0]).type  # type: ignore[attr-defined]
        value = _files(ctx).read(attrs.file_path, kind)
        if isinstance(value, SelectedRows):
            return value
        if attrs.load_as_fp16:
            value = lod_tensor.as_fp16(value)
        ctx.set_lod("Out", value.lod())
        assert value.array is not None
        return value.array


def _slice(path: str, seek: int, shape: list[int]) -> Array:
    with File(path) as file:
        return lod_tensor.read_slice(file, lod_tensor.read_header(file), start=seek, shape=shape)


class SaveCombineAttrs(Attrs):
    """Attributes of save_combine."""

    file_path: str = String()
    overwrite: bool = Bool(True)
    save_as_fp16: bool = Bool(False)
    save_to_memory: bool = Bool(False)


@register
class SaveCombine(OpDef):
    """Several variables into one file, end to end in the order of ``X``; or as bytes into ``Y``."""

    type = "save_combine"
    inputs = ("X*",)
    outputs = ("Y?",)
    attrs = SaveCombineAttrs.table()
    context = True
    external = True

    @staticmethod
    def forward(ctx: Context, xs: list[Any], *, attrs: SaveCombineAttrs) -> bytes | None:
        values = [_value(ctx, x, i) for i, x in enumerate(xs)]
        rows = [n for n, v in zip(ctx.op.input("X"), values, strict=True) if isinstance(v, SelectedRows)]
        if rows:
            raise SaveError(
                f"{rows} hold SelectedRows, which a combined file cannot hold",
                hint="save without filename=, one file for each variable",
            )
        tensors = [v for v in values if isinstance(v, LoDTensor)]
        if attrs.save_as_fp16:
            tensors = [lod_tensor.as_fp16(tensor) for tensor in tensors]
        buffers = list(combined.encode(tensors))
        if attrs.save_to_memory:
            return b"".join(buffers)
        _check_overwrite(attrs.file_path, attrs.overwrite)
        _files(ctx).write(attrs.file_path, buffers)
        return None


@register
class LoadCombine(OpDef):
    """Several variables out of one file, or out of the bytes in ``file_path``, by their order."""

    type = "load_combine"
    inputs = ()
    outputs = ("Out*",)
    attrs = {"file_path": String(), "load_as_fp16": Bool(False), "model_from_memory": Bool(False)}
    context = True
    fresh = True
    external = True

    @staticmethod
    def forward(ctx: Context, *, file_path: str, load_as_fp16: bool, model_from_memory: bool) -> list[Array]:
        if model_from_memory:
            values = combined.read(file_path.encode("utf-8", "surrogateescape"))
        else:
            values = _files(ctx).read_combined(file_path)
        if load_as_fp16:
            values = [lod_tensor.as_fp16(value) for value in values]
        for index, value in enumerate(values):
            ctx.set_lod("Out", value.lod(), index)
        return [value.array for value in values if value.array is not None]


@register
class Feed(OpDef):
    """A fed value from column ``col`` of the feed holder. An executor fills its output without running it."""

    type = "feed"
    attrs = {"col": Int()}


@register
class Fetch(OpDef):
    """A value into column ``col`` of the fetch holder. An executor reads its input without running it."""

    type = "fetch"
    attrs = {"col": Int()}
