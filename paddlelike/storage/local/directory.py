"""A saved directory on this machine's file systems."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage.interfaces import Path
from paddlelike.storage.local import files, manifest_file
from paddlelike.storage.local.layout import Layout, resolve
from paddlelike.storage.manifest import Manifest
from paddlelike.storage.names import relative_path
from paddlelike.storage.problems import is_directory, is_file, is_system_error
from paddlelike.storage.verification import Verification

if TYPE_CHECKING:
    from paddlelike.storage.local.transaction import Transaction
    from paddlelike.storage.options import SaveOptions

T = TypeVar("T")


class LocalDirectory:
    """A directory of this machine's file systems.

    Parameters
    ----------
    prefix
        The common beginning of the files' paths, if they are only some of the directory's files.
    """

    def __init__(self, directory: Path, prefix: str | None = None) -> None:
        path = os.fspath(directory) or "."
        # As in Fluid: directories lose "link/..", prefixes of fluid.save go to the system as they are.
        self.path = os.path.normpath(path) if prefix is None else path
        self._prefix = prefix

    @property
    def key(self) -> str:
        return resolve(self.path)

    def recover(self) -> None:
        """Finish a save whose process was killed in the middle of a commit.

        Raises
        ------
        StorageError
            It cannot be finished by this process.
        """
        files.finish_save(self._layout())

    def exists(self) -> bool:
        self.recover()
        return is_directory(self.path)

    def has(self, name: str) -> bool:
        return is_file(os.path.join(self.path, relative_path(name)))

    def list_names(self) -> list[str]:
        """Return the names of all files except the manifest, sorted.

        Raises
        ------
        StorageError
            There is no such directory.
        """
        return files.list_names(self.path)

    def open_file(self, name: str) -> files.File:
        """Open the file of variable ``name``.

        Raises
        ------
        StorageError
            It cannot be opened.
        """
        return files.open_file(self.path, name)

    def read_all(self, names: Iterable[str], read: Callable[[str, Any], T]) -> dict[str, T]:
        """Return ``{name: read(name, file)}``, several files at once.

        Raises
        ------
        StorageError
            A file cannot be read.
        """
        return files.read_all(self.path, names, read)

    @property
    def base(self) -> str:
        """The path of the directory, or the beginning of the paths of its files."""
        return self.path if self._prefix is None else self._prefix

    def manifest(self) -> Manifest | None:
        try:
            return self.read_manifest()
        except (FormatError, StorageError) as error:
            if is_system_error(error):
                raise
            return None

    def read_manifest(self) -> Manifest | None:
        """Return the manifest, or None if there is none.

        Raises
        ------
        FormatError
            It is damaged.
        StorageError
            It cannot be read.
        """
        return manifest_file.read_manifest(self.base, is_prefix=self._prefix is not None or None)

    def verify(self) -> Verification:
        """Compare every file with the manifest.

        Raises
        ------
        StorageError
            There is no such directory, or a file cannot be read.
        """
        return manifest_file.verify(self.base, is_prefix=self._prefix is not None or None)

    def stamp(self) -> object:
        return files.stamp(self._layout())

    def begin(
        self,
        options: SaveOptions | None = None,
        *,
        program: str | None = None,
        part: str | None = None,
        state: Any = None,
    ) -> Transaction:
        """Begin a transaction; see :class:`~.transaction.Transaction` for the parameters."""
        from paddlelike.storage.local.transaction import Transaction  # late: most processes only read
        from paddlelike.storage.options import DEFAULT_OPTIONS

        options = DEFAULT_OPTIONS if options is None else options
        return Transaction(
            self.path,
            prefix=self._prefix,
            durability=options.durability,
            checksum=options.checksum,
            manifest=options.manifest,
            program=program,
            part=part,
            state=state,
            wait=options.wait,
            keep_generation=options.keep_generation,
            remove_stale=options.remove_stale,
        )

    def _layout(self) -> Layout:
        return Layout.of(self.base, is_prefix=self._prefix is not None)
