"""The contract of a store, which keeps files under paths, for example in a bucket or a cluster.

A store is any object with the methods of :class:`Store`. Its paths are text with "/" between the parts; a
"folder" is a path that files begin with, whether the store has folders or not. Every method may raise any
exception; :func:`translate_errors` turns it into a StorageError that names the address.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from paddlelike.errors import ExtraMissingError, PaddlelikeError, StorageError
from paddlelike.storage.interfaces import Buffer

PIECE: Final = 8 << 20  # bytes of one request


class Info(NamedTuple):
    """The entry of a file in a listing."""

    size: int
    tag: str  # changes when the file does

    @property
    def stamp(self) -> tuple[int, int]:
        """The tag, in the form that a manifest uses."""
        return int.from_bytes(hashlib.sha256(self.tag.encode()).digest()[:6], "big"), self.size


class Store(Protocol):
    """A set of files under paths."""

    def is_same(self, other: Store) -> bool:
        """Return whether two stores hold the same files under the same paths."""

    def find(self, folder: str) -> dict[str, Info]:
        """Return all files below a folder, by their relative paths; none if the folder is missing."""

    def read(self, path: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return bytes of a file. Raises FileNotFoundError if it is missing."""

    def fetch(self, folder: str, names: Iterable[str]) -> dict[str, bytes]:
        """Prefetch the first bytes of files that will be read, several at once."""

    def write(self, folder: str, files: Mapping[str, Iterable[Buffer]]) -> None:
        """Write files below a folder. Each is written whole or not at all."""

    def put(self, path: str, data: bytes) -> None:
        """Write one file, over an existing one."""

    def create(self, path: str, data: bytes) -> bool:
        """Create a file; return False if it exists. Of several concurrent callers, only one succeeds."""

    def list_prefix(self, front: str) -> dict[str, Info | None]:
        """Return the entries whose paths begin with ``front``, by name; None for a folder."""

    def move(self, source: str, target: str, names: Iterable[str]) -> None:
        """Move files from a folder, which is removed afterwards, to another one, over existing files.

        Other processes may move the same files at the same time; files that they have moved are skipped.
        """

    def copy(self, source: str, target: str, names: Iterable[str]) -> None:
        """Copy files from one folder to another, over existing files."""

    def remove(self, folder: str, names: Iterable[str]) -> None:
        """Remove files; missing files are ignored."""


@contextlib.contextmanager
def translate_errors(what: str) -> Iterator[None]:
    """Turn every error of a store into a StorageError that names the target.

    Raises
    ------
    StorageError
        The store raised an error.
    ExtraMissingError
        A package that the store needs is not installed.
    """
    try:
        yield
    except PaddlelikeError:
        raise
    except ImportError as error:
        raise missing_extra(what, error) from error
    except Exception as error:
        reason = str(error) or type(error).__name__
        # Not about the files, whatever the class of the store's error.
        refused = error if isinstance(error, OSError) else ConnectionError(reason)
        hint = "check the address and the credentials"
        raise StorageError(f"{what} cannot be reached: {reason}", hint=hint) from refused


def missing_extra(url: str, error: ImportError) -> ExtraMissingError:
    """Return the error for an address whose package is not installed."""
    return ExtraMissingError(
        f"{url} cannot be reached: {error}",
        extra="remote",
        instead=", and the package of that protocol, such as s3fs or gcsfs",
    )
