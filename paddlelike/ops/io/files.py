"""Operators that save and load variables, and the feed and fetch operators.

The classes declare slots and attributes. The ``files`` service of the run (:class:`Files`) reads and writes
the files, all of them in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from paddlelike.errors import UnsupportedError
from paddlelike.framework.opdef import Bool, Context, Int, Long, Longs, OpDef, OpView, String, register


class Files(Protocol):
    """The files of one run."""

    def save(self, context: Context, ops: Sequence[OpView]) -> None:
        """Save the inputs of ``save`` or ``save_combine`` operators at the end of the run.

        Raises SaveError or NotInitializedError when a variable cannot be saved.
        """

    def load(self, context: Context, ops: Sequence[OpView]) -> None:
        """Set the outputs of ``load`` or ``load_combine`` operators.

        Raises LoadError when a file cannot be loaded; no file of the run is loaded then.
        """

    def commit(self) -> None:
        """Write what the operators of the run saved, all of it or nothing.

        Raises SaveError when a file cannot be written.
        """


def _files(context: Context) -> Files:
    files: Files | None = context.service("files")
    if files is None:
        raise UnsupportedError(f"operator {context.op.type!r}: this run has no files")
    return files


class _Saving(OpDef):
    """Base class of operators that save."""

    external = own_variables = True

    @staticmethod
    def forward_many(context: Context, ops: Sequence[OpView]) -> None:
        _files(context).save(context, ops)


class _Loading(OpDef):
    """Base class of operators that load."""

    inputs = ()
    external = own_variables = True

    @staticmethod
    def forward_many(context: Context, ops: Sequence[OpView]) -> None:
        _files(context).load(context, ops)


@register
class Save(_Saving):
    """Save one variable into one file, in Paddle's stream of its kind."""

    type = "save"
    outputs = ("kLookupTablePath?",)
    attrs = {"overwrite": Bool(True), "save_as_fp16": Bool(False), "file_path": String()}


@register
class SaveCombine(_Saving):
    """Save several variables into one file, end to end in the order of ``X``; or as bytes into ``Y``."""

    type = "save_combine"
    inputs = ("X*",)
    outputs = ("Y?",)
    attrs = {
        "overwrite": Bool(True),
        "save_as_fp16": Bool(False),
        "file_path": String(),
        "save_to_memory": Bool(False),
    }


@register
class Load(_Loading):
    """Load one variable from one file; with ``seek`` only an array of ``shape`` from element ``seek`` on."""

    type = "load"
    attrs = {"load_as_fp16": Bool(False), "file_path": String(), "seek": Long(-1), "shape": Longs(())}


@register
class LoadCombine(_Loading):
    """Load several variables, in order, from one file or from the bytes in ``file_path``."""

    type = "load_combine"
    outputs = ("Out*",)
    attrs = {"load_as_fp16": Bool(False), "file_path": String(), "model_from_memory": Bool(False)}


@register
class Feed(OpDef):
    """A fed value from column ``col`` of the feed holder. An executor fills its output without running it."""

    type = "feed"
    attrs = {"col": Int()}


@register
class Fetch(OpDef):
    """Write a value into column ``col`` of the fetch holder. An executor does not run it: it reads X."""

    type = "fetch"
    attrs = {"col": Int()}
