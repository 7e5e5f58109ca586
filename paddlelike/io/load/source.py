"""The source of a load. Values of two saves are never mixed, even if another process saves there
meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, TypeVar

from paddlelike.errors import LoadError, PaddlelikeError
from paddlelike.foundation.warn import hold_warnings, warn_user
from paddlelike.io.contents.file import FileContents
from paddlelike.io.contents.interface import Contents
from paddlelike.io.deltas.contents import open_directory
from paddlelike.io.load.model_files import find_model
from paddlelike.io.verify import NO_COMPARISON, Comparison, get_record
from paddlelike.lazy import dataclass
from paddlelike.storage.location import Location, locate

T = TypeVar("T")

TRIES: Final = 5  # attempts while another process saves into the directory


@dataclass(frozen=True)
class Source:
    """The source of a load: its ``dirname`` and ``filename``, resolved once.

    A directory with a file for each variable, one file of it, or the bytes of such a file.

    Attributes
    ----------
    where
        The directory, or None if ``data`` is the source.
    filename
        The file that holds all variables, or None for a file each.
    data
        The bytes of such a file.
    """

    where: Location | None
    filename: str | None = None
    data: bytes = b""

    @classmethod
    def find(cls, dirname: str | os.PathLike[str] | None, filename: str | bytes | None) -> Source:
        """Return the source for the arguments of a load; ``dirname`` may also name a model of Paddle 2.

        Raises
        ------
        TypeError
            There is no ``dirname``, and ``filename`` is not bytes.
        StorageError
            A URL has no store, or names no directory.
        """
        if dirname is not None:
            model = find_model(dirname) if filename is None else None
            if model is not None and model.values is not None:
                return cls(locate(model.directory), model.values)
            return cls(locate(dirname), None if filename is None else os.fsdecode(filename))
        if not isinstance(filename, bytes | bytearray | memoryview):
            raise TypeError(
                "without dirname, filename is the bytes that were saved\n"
                "  hint: dirname is the directory: load_persistables(exe, 'saved')"
            )
        return cls(None, data=bytes(filename))

    @property
    def path(self) -> str:
        """The directory, as errors and reports name it."""
        return "memory" if self.where is None else self.where.path

    @property
    def has_file_each(self) -> bool:
        """Whether every variable has a file of its own."""
        return self.where is not None and self.filename is None

    def recover(self) -> None:
        """Complete a save that was interrupted in the directory."""
        if self.where is not None:
            self.where.recover()

    def stamp(self) -> object:
        """Return a value that changes when another save replaces the files; always None for bytes."""
        return None if self.where is None else self.where.stamp()

    def open(self, comparison: Comparison = NO_COMPARISON) -> Contents:
        """Return the contents of the source.

        Raises
        ------
        MissingFileError
            There is no such directory or file.
        LoadError
            The file is damaged, or of no format that can be loaded.
        """
        if self.where is None:
            return FileContents(self.data)
        if self.filename is None:
            return open_directory(self.where, comparison.records, complete=comparison.complete)
        return FileContents(
            self.filename,
            self.where,
            verify=comparison.complete or comparison.covers([self.filename]),
            record=get_record(self.where, self.filename, needed=False),
            own_checksums=comparison is not NO_COMPARISON,
        )


def read_stable(where: Location, read: Callable[[], T]) -> T:
    """Return ``read()`` of the files in a directory; see :func:`read_stamped`."""
    return read_stamped(where, read)[0]


def read_stamped(where: Location | Source, read: Callable[[], T]) -> tuple[T, object]:
    """Return ``read()`` of the files in a directory, and the directory's stamp while it was read.

    It is called again if the files were replaced meanwhile.

    A save that was interrupted in the directory is finished first.

    Raises
    ------
    LoadError
        The files were replaced each time.
    PaddlelikeError
        An error of ``read`` while the files did not change.
    """
    for _ in range(TRIES):
        where.recover()
        stamp = where.stamp()
        try:
            held: list[tuple[str, type[Warning]]] = []
            with hold_warnings(held):
                value = read()
        except PaddlelikeError:
            if where.stamp() == stamp:
                raise
        else:
            if where.stamp() == stamp:
                for warning in held:
                    warn_user(*warning)
                return value, stamp
    raise LoadError(
        f"nothing was loaded from {where.path}: it was saved again, {TRIES} times, while it was being loaded",
        hint="load when no other process saves there",
    )
