"""Files of a local directory, opened for reading, one or many at once."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Final, TypeVar

from paddlelike.errors import FormatError, OutOfMemoryError, StorageError
from paddlelike.storage.interfaces import Path
from paddlelike.storage.local import journal
from paddlelike.storage.local.filesystem.opening import READING, open_regular, unreadable
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.names import MANIFEST, relative_path
from paddlelike.storage.threads import run_in_threads

__all__ = ["LARGE", "File", "list_names", "open_file", "read_all", "read_front", "recover"]

T = TypeVar("T")

LARGE: Final = 1 << 20  # bytes; handing less to a thread costs more than it brings
_TRIES: Final = 5  # to read a directory that others save at the same time


class File:
    """A file opened for reading: its size, and bytes at positions, from several threads if wanted.

    Used as a context manager, it closes itself and puts its path in front of a FormatError.
    """

    __slots__ = ("_fd", "path", "size")

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        self._fd = -1  # until it is open
        self._fd, facts = open_regular(self.path)
        self.size = facts.st_size

    def read_at(self, offset: int, size: int) -> bytes:
        """Return up to ``size`` bytes from ``offset``; fewer only at the end."""
        wanted = max(min(size, self.size - offset), 0)
        data = self._pread(wanted, offset)
        if len(data) < wanted:
            rest = bytearray(wanted - len(data))
            count = self.readinto_at(offset + len(data), memoryview(rest))
            data += bytes(rest[:count])
        return data

    def readinto_at(self, offset: int, target: memoryview) -> int:
        """Fill ``target`` from ``offset``; return the number of bytes, smaller only at the end."""
        done = 0
        while done < len(target):
            count = self._preadv(target[done:], offset + done)
            if count == 0:
                break
            done += count
        return done

    def read(self, most: int | None = None) -> bytes:
        """Return the whole file.

        Raises
        ------
        FormatError
            It is larger than ``most``.
        StorageError
            It cannot be read.
        """
        if most is not None and self.size > most:
            raise FormatError(f"{self.size} bytes; such a file has {most} at most")
        return self.read_at(0, self.size)

    def close(self) -> None:
        """Close the file; twice is no error."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with contextlib.suppress(OSError):  # nothing was written through it
                os.close(fd)

    def __enter__(self) -> File:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if isinstance(error, FormatError):
            raise FormatError(f"{self.path}: {error.message}", hint=error.hint) from error

    def __del__(self) -> None:
        self.close()

    def _pread(self, size: int, offset: int) -> bytes:
        try:
            if hasattr(os, "pread"):
                return os.pread(self._fd, size, offset)
            os.lseek(self._fd, offset, os.SEEK_SET)
            return os.read(self._fd, size)
        except OSError as error:
            raise unreadable(self.path, error) from error
        except MemoryError as error:
            raise OutOfMemoryError(
                f"{self.path}: {size} bytes are to be read at once, more than there is memory"
            ) from error

    def _preadv(self, target: memoryview, offset: int) -> int:
        if not hasattr(os, "preadv"):
            data = self._pread(len(target), offset)
            target[: len(data)] = data
            return len(data)
        try:
            return os.preadv(self._fd, [target], offset)
        except OSError as error:
            raise unreadable(self.path, error) from error


def recover(directory: Path) -> None:
    """Finish a save into ``directory`` whose process was killed in the middle of a commit.

    Raises
    ------
    StorageError
        It cannot be finished by this process; the message says why.
    """
    journal.recover(Layout.of(directory, is_prefix=False))


def open_file(directory: Path, name: str) -> File:
    """Open the file of variable ``name`` in ``directory``.

    Raises
    ------
    StorageError
        The name is refused (see ``storage.names``), or the file cannot be opened.
    """
    return File(os.path.join(directory, relative_path(name)))


def read_front(path: str, size: int) -> bytes:
    """Return the first ``size`` bytes of a file, or all it has, in the fewest calls.

    Raises
    ------
    StorageError
        It cannot be read, or is no regular file.
    """
    try:
        fd = os.open(path, READING)
        try:
            data = os.pread(fd, size, 0)
            # devices give as much as is asked for, or nothing; pipes and sockets have no positions
            if 0 < len(data) < size or stat.S_ISREG(os.fstat(fd).st_mode):
                return data
        finally:
            os.close(fd)
    except (OSError, ValueError, AttributeError):  # the last: no pread here
        pass
    with File(path) as file:  # which knows the reason
        return file.read_at(0, size)


def read_all(directory: Path, names: Iterable[str], read: Callable[[str, File], T]) -> dict[str, T]:
    """Return ``{name: read(name, file)}`` for the files of ``names``; large files several at once.

    ``read`` is called from several threads for different files. The first error ends the reading. All files
    are of one save: when another save is committed meanwhile, they are read again.

    Raises
    ------
    StorageError
        A file cannot be read, or the directory was saved again and again.
    """
    names = list(names)
    for _ in range(_TRIES):
        recover(directory)
        before = _generation(directory)
        try:
            values = _read_once(directory, names, read)
        except StorageError:
            if _generation(directory) == before:
                raise
        else:
            if _generation(directory) == before:
                # S10
                return values
    raise StorageError(f"{os.fspath(directory)} was saved again and again while it was read")


def _generation(directory: Path) -> tuple[int, int] | None:
    """Return what changes when other files are saved into the directory; None: it does not exist."""
    try:
        facts = os.stat(os.fspath(directory) or ".")
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns


def _read_once(directory: Path, names: list[str], read: Callable[[str, File], T]) -> dict[str, T]:
    paths = {name: os.path.join(directory, relative_path(name)) for name in names}
    values: dict[str, T] = {}
    large = []

    def read_one(name: str) -> T:
        with File(paths[name]) as file:
            return read(name, file)

    for name, path in paths.items():
        with File(path) as file:
            if file.size < LARGE:
                values[name] = read(name, file)
            else:
                large.append(name)  # which is opened again
    read_later = run_in_threads([lambda name=name: read_one(name) for name in large])  # type: ignore[misc]
    values.update(zip(large, read_later, strict=True))
    return {name: values[name] for name in names}


def list_names(directory: Path, *, linked_folders: bool = False) -> list[str]:
    """Return the names of all files in ``directory`` and below but manifests, sorted; "/" between parts.

    Links to files are among them. Folders that are links are not looked into, as in Paddle; with
    ``linked_folders`` they are named like files.

    Raises
    ------
    StorageError
        There is no such directory, or it cannot be read.
    """
    root = os.fspath(directory) or "."
    recover(root)
    if not os.path.isdir(root):
        raise StorageError(f"there is no directory {root}")
    found: list[str] = []
    folders = [""]  # to be looked into, with "/" at the end
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{entry.name}/")
                    elif entry.name == MANIFEST:
                        continue
                    elif linked_folders or not (entry.is_symlink() and os.path.isdir(entry.path)):
                        found.append(folder + entry.name)
        except OSError as error:
            raise unreadable(root, error) from error
    return sorted(found)
