"""A set of files that is written into a directory as one: all of them, or none.

The files are written into a staging directory beside the target, so that nothing half-written and
nothing foreign is ever seen inside it (Paddle's loaders read every file that they find there). Then
they are moved in: a new directory by one rename, an existing one file by file, with the replaced
files kept until the last one is in. Whatever fails, the earlier files are put back.

What this does not survive is a crash between two of those moves.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Literal

from paddlelike.errors import SaveError, StorageError
from paddlelike.storage import hashing
from paddlelike.storage.local import LARGE, THREADS, Path
from paddlelike.storage.manifest import Record
from paddlelike.storage.names import relative_path
from paddlelike.storage.problems import explained

__all__ = ["Committed", "Durability", "Transaction", "write_all"]

Buffer = bytes | bytearray | memoryview
Durability = Literal["process", "power"]

_FLAGS: Final = (
    os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)
_IOV_MAX: Final = 1024  # buffers that the system takes in one call
_BATCH: Final = 8 << 20  # bytes


@dataclass(frozen=True)
class Committed:
    """What a transaction saved: a record for each file, written and kept ones; and how much was written."""

    directory: str
    files: dict[str, Record]
    written: int = 0  # files
    nbytes: int = 0  # bytes in them
    kept: int = 0  # files that were left as they were


def write_all(directory: Path, files: Mapping[str, Iterable[Buffer]]) -> None:
    """Write every file of ``{name: buffers}`` into ``directory``, or none of them."""
    with Transaction(directory) as transaction:
        for name, buffers in files.items():
            transaction.add(name, buffers)


class Transaction:
    """Collects files for a directory; :meth:`commit`, or the end of the ``with``, writes them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with Transaction(f"{home}/model") as transaction:
    ...         transaction.add("fc_0.w_0", [b"header", b"data"])
    ...     print(os.listdir(home), os.listdir(f"{home}/model"))
    ['model'] ['fc_0.w_0']
    """

    def __init__(
        self,
        directory: Path,
        *,
        beside: Path | None = None,
        durability: Durability = "process",
        checksum: hashing.Algorithm | None = "sha256",
        manifest: bool = True,
        program: str | None = None,
        wait: float | None = 0.0,
        keep_generation: bool = False,
    ) -> None:
        # through links, so that the staging directory lies on the same file system
        self.directory = os.path.realpath(os.fspath(directory) or ".")
        self._files: dict[str, tuple[str, Iterable[Buffer]]] = {}  # path -> name, buffers

    def keep(self, name: str, record: Record, *, base: Path | None = None) -> bool:
        """Let the file of ``name`` be the one that was saved as ``record``, without writing it.

        ``record`` is from :attr:`Committed.files` of an earlier save, or from ``manifest.read``. Without
        ``base`` the file is the one in place; with it, the one of that name in the directory ``base``, which is
        then shared (reflink, else hard link).

        Returns
        -------
        False when that file is not there or is not the one that was saved any more: then :meth:`add` it.
        """
        return False

    def add(
        self, name: str, buffers: Iterable[Buffer], facts: Mapping[str, object] | None = None
    ) -> None:
        """Add the file of variable ``name``. The buffers are read at the commit, not copied now.

        ``facts`` go into the manifest: variable, kind, dtype, shape, lod.

        Raises
        ------
        StorageError
            When the name cannot be a file, or is the file of another variable already.
        """
        path = relative_path(name)
        if path in self._files:
            raise StorageError(f"variables {self._files[path][0]!r} and {name!r} would be the same file")
        self._files[path] = (name, buffers)

    def commit(self) -> Committed:
        """Write all files and move them into the directory.

        Returns
        -------
        What was saved, file by file.

        Raises
        ------
        SaveError
            With the file and the reason; the directory is as it was.
        """
        self._check_clashes()
        files, self._files = self._files, {}
        if not files:
            return Committed(self.directory, {})
        staging = _make_staging(self.directory)
        try:
            _write_files(staging, {path: buffers for path, (_, buffers) in files.items()})
            if not _became(staging, self.directory):
                _move_in(staging, self.directory, sorted(files))
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return Committed(self.directory, {})

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit()

    def _check_clashes(self) -> None:
        for path, (name, _) in self._files.items():
            folder = os.path.dirname(path)
            while folder:
                if folder in self._files:
                    other = self._files[folder][0]
                    raise SaveError(
                        f"variable {other!r} is a file where {name!r} needs a directory",
                        hint="rename one of them, or use filename= for one file of all",
                    )
                folder = os.path.dirname(folder)
            if os.path.isdir(os.path.join(self.directory, path)):
                raise SaveError(
                    f"variable {name!r} cannot be saved: {os.path.join(self.directory, path)} is a directory"
                )


def _make_staging(directory: str) -> str:
    """A new empty directory beside ``directory``; inside it where that cannot be."""
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise SaveError(f"{directory} is a file; a directory is needed to save into")
    parent, base = os.path.split(directory)
    name = f".{base}.saving-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        os.makedirs(parent, exist_ok=True)
        staging = os.path.join(parent, name)
        os.mkdir(staging)
        if not os.path.isdir(directory) or os.stat(staging).st_dev == os.stat(directory).st_dev:
            return staging
        os.rmdir(staging)  # the directory is a mount point: nothing can be moved into it from outside
    except OSError as error:
        if not os.path.isdir(directory):
            raise explained(SaveError, f"{directory} cannot be made", error) from error
    staging = os.path.join(directory, name)
    try:
        os.mkdir(staging)
    except OSError as error:
        raise explained(SaveError, f"{directory} cannot be written", error) from error
    return staging


def _write_files(staging: str, files: Mapping[str, Iterable[Buffer]]) -> None:
    """Write all files; large ones by several threads, the largest first."""
    try:
        for folder in sorted({os.path.dirname(path) for path in files} - {""}):
            os.makedirs(os.path.join(staging, folder), exist_ok=True)
    except OSError as error:
        raise explained(SaveError, f"{staging} cannot be written", error) from error
    sizes = {path: _known_size(buffers) for path, buffers in files.items()}
    large = sorted((path for path in files if sizes[path] >= LARGE), key=lambda path: -sizes[path])
    with ThreadPoolExecutor(THREADS, "paddlelike-write") as pool:
        try:
            futures = [pool.submit(_write_file, staging, path, files[path]) for path in large]
            for path, buffers in files.items():
                if sizes[path] < LARGE:
                    _write_file(staging, path, buffers)
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _known_size(buffers: Iterable[Buffer]) -> int:
    """The size of a file; as large where it is not known before its pieces are made."""
    if not isinstance(buffers, Sequence):
        return LARGE
    return sum(memoryview(buffer).nbytes for buffer in buffers)


def _write_file(staging: str, path: str, buffers: Iterable[Buffer]) -> None:
    try:
        fd = os.open(os.path.join(staging, path), _FLAGS, 0o666)
        try:
            for batch in _batches(buffers):
                _write(fd, batch)
        finally:
            os.close(fd)
    except StorageError:  # from whoever makes the buffers
        raise
    except OSError as error:
        raise explained(SaveError, f"{path} cannot be written", error) from error


def _batches(buffers: Iterable[Buffer]) -> Iterator[list[Buffer]]:
    """Buffers for one call: what the system takes at once, and a few megabytes at most."""
    batch: list[Buffer] = []
    size = 0
    for buffer in buffers:
        batch.append(buffer)
        size += memoryview(buffer).nbytes
        if len(batch) == _IOV_MAX or size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _write(fd: int, rest: list[Buffer]) -> None:
    while rest:
        count = os.writev(fd, rest) if hasattr(os, "writev") else os.write(fd, rest[0])
        while rest and count >= (size := memoryview(rest[0]).nbytes):
            count -= size
            del rest[0]
        if rest and count:
            rest[0] = memoryview(rest[0]).cast("B")[count:]


def _became(staging: str, directory: str) -> bool:
    """Whether the staging directory could become the new directory, by one rename."""
    if os.path.exists(directory):
        return False
    try:
        os.rename(staging, directory)
    except OSError as error:
        if os.path.isdir(directory):  # somebody else made it in the meantime
            return False
        raise explained(SaveError, f"{directory} cannot be made", error) from error
    return True


def _move_in(staging: str, directory: str, paths: Sequence[str]) -> None:
    """Replace file by file; on an error put back what was replaced."""
    kept = os.path.join(staging, f"kept-{secrets.token_hex(4)}")
    undo: list[tuple[str, str | None]] = []
    made: list[str] = []
    try:
        os.mkdir(kept)
        for number, path in enumerate(paths):
            new, final = os.path.join(staging, path), os.path.join(directory, path)
            if os.path.dirname(path):
                _make_folders(directory, os.path.dirname(path), made)
            old = _keep(final, new, os.path.join(kept, str(number)))
            undo.append((final, old))
            os.replace(new, final)
    except BaseException as error:
        for final, old in reversed(undo):
            _put_back(final, old)
        for folder in reversed(made):
            os.rmdir(folder)
        if isinstance(error, OSError):
            raise explained(SaveError, f"{directory} cannot be written", error) from error
        raise


def _make_folders(directory: str, folder: str, made: list[str]) -> None:
    """Make the sub-directory ``folder``; append what had to be made."""
    for part in folder.split(os.sep):
        directory = os.path.join(directory, part)
        if not os.path.isdir(directory):
            os.mkdir(directory)
            made.append(directory)


def _keep(final: str, new: str, kept: str) -> str | None:
    """Keep the file that will be replaced, and give the new one its mode; None if there is none."""
    try:
        mode = os.stat(final).st_mode
    except FileNotFoundError:
        return None
    if stat.S_IMODE(mode) != stat.S_IMODE(os.stat(new).st_mode):
        os.chmod(new, stat.S_IMODE(mode))
    try:
        os.link(final, kept)
    except OSError:  # a file system without hard links
        os.replace(final, kept)
    return kept


def _put_back(final: str, old: str | None) -> None:
    try:
        if old is not None:
            os.replace(old, final)
        else:
            os.unlink(final)
    except OSError:  # the first error is the one to tell
        pass
