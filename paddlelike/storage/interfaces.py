"""Interfaces of storage: a local or remote directory, its files, and a transaction that writes files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from paddlelike.lazy import dataclass
from paddlelike.storage.manifest import Manifest, Record
from paddlelike.storage.verification import Verification

if TYPE_CHECKING:
    from paddlelike.storage.options import SaveOptions

T = TypeVar("T")
Path = str | os.PathLike[str]
Buffer = bytes | bytearray | memoryview
Contents = Callable[[], tuple[Iterable[Buffer], Mapping[str, Any]]]  # returns a file and its facts


@dataclass(frozen=True)
class Committed:
    """The result of a transaction.

    Attributes
    ----------
    files
        A record for each file of the transaction, written or kept.
    written, nbytes
        The number of files that were written, and the bytes in them.
    kept
        The number of files that were not written again.
    stale
        Files that the same program wrote in an earlier save and that this save does not hold.
    removed
        The stale files that were deleted because ``remove_stale`` was set.
    notes
        Sentences for the report, such as how long the transaction waited for another one.
    manifest_bytes
        The bytes of the manifest that was written.
    """

    directory: str
    files: dict[str, Record]
    written: int = 0
    nbytes: int = 0
    kept: int = 0
    stale: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    manifest_bytes: int = 0


class File(Protocol):
    """A file opened for reading, local or remote."""

    path: str

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``offset``; fewer only at the end."""

    def readinto_at(self, offset: int, target: memoryview) -> int:
        """Fill ``target`` from ``offset``; return the number of bytes, smaller only at the end."""

    def read(self, most: int | None = None) -> bytes:
        """Return the whole file. Raises FormatError when it is larger than ``most``."""

    def close(self) -> None:
        """Close the file. A second call does nothing."""

    def __enter__(self) -> File: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Writing(Protocol):
    """A transaction in progress."""

    def reserve(self, *, wait: bool = False) -> bool:
        """Block other saves until the commit. Return whether that was possible."""

    def release(self) -> None:
        """Let other saves begin if this one was not committed."""

    def add(self, name: str, buffers: Iterable[Buffer], facts: Mapping[str, Any] | None = None) -> None:
        """Add the file of variable ``name``. The buffers are read at the commit, not copied now."""

    def keep(
        self, name: str, record: Record, *, base: Path | None = None, otherwise: Contents | None = None
    ) -> bool:
        """Keep the file of ``name`` that was saved as ``record``; return False if it is missing. If another
        save replaces the file before this one commits, the result of ``otherwise`` is written instead.
        """

    def commit(self) -> Committed:
        """Write all files, or none of them and raise SaveError."""


class Location(Protocol):
    """A directory, local or remote."""

    path: str

    @property
    def key(self) -> str:
        """A text that is equal for all spellings of the directory."""

    def recover(self) -> None:
        """Finish a save whose process was killed in the middle of a commit."""

    def exists(self) -> bool:
        """Return whether the directory exists."""

    def has(self, name: str) -> bool:
        """Return whether there is a file of that name."""

    def list_names(self) -> list[str]:
        """Return the names of all files except the manifest, sorted; "/" between parts."""

    def open_file(self, name: str) -> File:
        """Open the file of variable ``name``. Raises StorageError when it cannot be opened."""

    def read_all(self, names: Iterable[str], read: Callable[[str, Any], T]) -> dict[str, T]:
        """Return ``{name: read(name, file)}``, several files at once."""

    def manifest(self) -> Manifest | None:
        """Return the manifest, or None if it is missing or damaged. Raises StorageError."""

    def verify(self) -> Verification:
        """Compare every file with the manifest."""

    def stamp(self) -> object:
        """Return a value that changes when files of the directory are replaced, or None if unknown."""

    def begin(
        self,
        options: SaveOptions = ...,
        *,
        program: str | None = None,
        part: str | None = None,
        state: Any = None,
    ) -> Writing:
        """Begin a transaction; see :class:`paddlelike.storage.local.transaction.Transaction`."""
