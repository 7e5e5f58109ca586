"""Writing of many files: buffers go to the system without a copy, and checksums are computed on the way.

A few threads write large files, the largest first. Small files are written one by one, each with three system
calls. Bytes are hashed and written while they are in the processor's cache.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from paddlelike.errors import PaddlelikeError, SaveError
from paddlelike.foundation.locks import close_at_end, close_files, open_file, opened
from paddlelike.foundation.progress import advance_progress, show_progress
from paddlelike.lazy import dataclass
from paddlelike.storage import hashing
from paddlelike.storage.interfaces import Buffer
from paddlelike.storage.local.files import LARGE
from paddlelike.storage.local.filesystem.mapping import is_free
from paddlelike.storage.manifest import NOBODY, Author, Record, make_stamp
from paddlelike.storage.problems import explain
from paddlelike.storage.threads import run_in_threads

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OVER: Final = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_IOV_MAX: Final = 1024  # buffers that the system takes in one call
_BATCH: Final = 8 << 20  # bytes in one call: from 2 MiB on, Linux caches them in its largest pages
_SMALL: Final = 64 << 10  # smaller buffers are joined
_NONE: Final = (None, (), "")  # instead of a checksum


@dataclass(frozen=True)
class Shared:
    """The buffers of a file that several processes write: ``front`` here, the rest in the others.

    Attributes
    ----------
    size
        Bytes of the whole file, or None if ``fill`` determines them.
    fill
        Called with the path of the file: it writes the rest, and returns the checksum of the whole file, or
        None if none is requested.
    """

    front: bytes
    size: int | None
    fill: Callable[[str], hashing.Checksum | None]

    def __iter__(self) -> Iterator[Buffer]:
        return iter((self.front,))


class Piece(NamedTuple):
    """A file to be written."""

    buffers: Iterable[Buffer]
    facts: Mapping[str, Any]
    like: os.stat_result | None = None  # the replaced file, for mode and owner
    over: bool = False  # an unused file is there, whose pages can be reused


def write_files(
    root: str,
    files: Mapping[str, Piece],
    algorithm: str | None,
    *,
    author: Author = NOBODY,
    shown: str | None = None,
) -> dict[str, Record]:
    """Write ``{path: piece}`` below ``root``, whose folders exist, and return a record of each file.

    Errors name a file by its future path in the directory ``shown``.

    Raises
    ------
    SaveError
        A file could not be written; the state of the others is undefined.
    """
    writer = _Writer(root, algorithm, author, shown or root)
    try:
        return writer.write(files)
    except _WriteError as unwritten:
        path, error = unwritten.args
        raise explain(SaveError, f"{os.path.join(shown or root, path)} cannot be written", error) from error


class _WriteError(Exception):
    """The system's reason why a file could not be written."""


class _Writer:
    """Writes files below one folder."""

    def __init__(self, root: str, algorithm: str | None, author: Author, shown: str) -> None:
        self._root = root
        self._shown = shown
        self._algorithm = algorithm
        self._author = author

    def write(self, files: Mapping[str, Piece]) -> dict[str, Record]:
        """Write the large files in threads, and the small ones."""
        sizes = {path: _known_size(piece.buffers) for path, piece in files.items()}
        large = sorted((path for path in files if sizes[path] >= LARGE), key=lambda path: -sizes[path])
        records: dict[str, Record] = {}

        def write_large(path: str) -> None:
            records[path] = self._write_large(path, files[path])

        tasks: list[Callable[[], None]] = [functools.partial(write_large, path) for path in large]
        tasks.append(lambda: records.update(self._write_all_small(files, sizes)))
        are_known = all(isinstance(files[path].buffers, Sequence) for path in large)
        with show_progress(f"writing {self._shown}", sizes.values() if are_known else ()):
            run_in_threads(tasks)
        return records

    def _write_large(self, path: str, piece: Piece) -> Record:
        if isinstance(piece.buffers, Shared):
            return self._write_shared(path, piece, piece.buffers)
        return self._write_file(None, path, piece)

    def _write_all_small(self, files: Mapping[str, Piece], sizes: Mapping[str, int]) -> dict[str, Record]:
        records = {}
        has_folder = os.open in os.supports_dir_fd
        nothing = contextlib.nullcontext((None, None))
        # Without a name: a frame that a traceback keeps would keep the folder open.
        with opened(self._root, os.O_RDONLY) if has_folder else nothing as (folder, _):
            open_new = functools.partial(os.open, dir_fd=folder)
            for path, piece in files.items():
                if sizes[path] < _SMALL and folder is not None and piece.like is None and not piece.over:
                    records[path] = self._write_small(open_new, path, piece)
                elif sizes[path] < LARGE:
                    records[path] = self._write_file(folder, path, piece)
        return records

    def _write_small(self, open_new: Callable[[str, int, int], int], path: str, piece: Piece) -> Record:
        """Write a small new file as :meth:`_write_file` does, in the fewest steps."""
        data = b"".join(piece.buffers)
        file, same, last = itertools.tee(map(open_new, (path,), (_NEW,), (0o666,)), 3)
        try:
            # in one call, so that no interrupt leaves it open
            calls = map(os.write, file, (data,)), map(os.fstat, same), map(os.close, last)
            written, facts, _ = next(zip(*calls))  # noqa: B905
        except BaseException as error:  # os.fstat can be interrupted
            list(map(os.close, last))
            if isinstance(error, OSError):
                raise _WriteError(path, error) from error
            raise
        if written < len(data):  # the disk is nearly full: writing the rest raises the error
            os.unlink(os.path.join(self._root, path))
            return self._write_file(None, path, piece)
        advance_progress(written)
        checksum = None if self._algorithm is None else hashing.hash_bytes(data, self._algorithm)
        return Record(len(data), checksum, (facts.st_ino, facts.st_mtime_ns), piece.facts, (), self._author)

    def _write_file(self, folder: int | None, path: str, piece: Piece) -> Record:
        """Write a file, named relative to the open directory ``folder`` if possible."""
        where = path if folder is not None else os.path.join(self._root, path)
        hasher = None if self._algorithm is None else hashing.new_hasher(self._algorithm)
        files: list[int] = []
        try:
            with close_at_end(files):
                over = _open(files, where, folder, over=piece.over)
                fd = files[0]
                for batch in _batches(piece.buffers, _BATCH):
                    if hasher is not None:
                        for buffer in batch:
                            hasher.update(buffer)
                    _write(fd, batch)
                facts = os.fstat(fd)
                if over:
                    os.ftruncate(fd, os.lseek(fd, 0, os.SEEK_CUR))
                    facts = os.fstat(fd)
                if piece.like is not None:
                    _copy_owner(fd, facts, piece.like)
                close_files(files)
        except PaddlelikeError:  # raised while the buffers are made
            raise
        except OSError as error:
            raise _WriteError(path, error) from error
        checksum, pieces, parts = _NONE if hasher is None else hashing.finish(hasher, str(self._algorithm))
        return Record(facts.st_size, checksum, make_stamp(facts), piece.facts, pieces, self._author, parts)

    def _write_shared(self, path: str, piece: Piece, shared: Shared) -> Record:
        """Write the beginning of a file, reserve space for the rest, and let other processes write that."""
        record = self._write_file(None, path, piece)
        where = os.path.join(self._root, path)
        try:
            if shared.size is not None:
                os.truncate(where, shared.size)
            checksum, pieces, parts = shared.fill(where) or _NONE
            facts = os.stat(where)
        except PaddlelikeError:
            raise
        except OSError as error:
            raise _WriteError(path, error) from error
        if shared.size not in (None, facts.st_size):
            raise SaveError(f"{path} has {facts.st_size} bytes after others wrote it, not {shared.size}")
        record = record._replace(size=facts.st_size, stamp=make_stamp(facts))
        return record._replace(checksum=checksum, pieces=pieces, parts=parts)


def _known_size(buffers: Iterable[Buffer]) -> int:
    """Return the size of a file, or LARGE if it is only known once its buffers are made."""
    if type(buffers) is not list and not isinstance(buffers, Sequence):  # quicker than by the second alone
        return LARGE
    size = 0
    for buffer in buffers:
        size += len(buffer) if type(buffer) is bytes else memoryview(buffer).nbytes
    return size


def _open(files: list[int], where: str, folder: int | None, *, over: bool) -> bool:
    """Open a file for writing: the existing one (then True) if nobody has it mapped, otherwise a new one."""
    if over:
        open_file(files, where, _OVER, dir_fd=folder)
        if is_free(files[0]):
            return True
        close_files(files)
        os.unlink(where, dir_fd=folder)
    open_file(files, where, _NEW, 0o666, dir_fd=folder)
    return False


def _copy_owner(fd: int, facts: os.stat_result, like: os.stat_result) -> None:
    """Copy the mode of the replaced file, and its owner as far as the system permits."""
    if (facts.st_uid, facts.st_gid) != (like.st_uid, like.st_gid):
        for uid, gid in ((like.st_uid, like.st_gid), (-1, like.st_gid)):
            try:
                os.fchown(fd, uid, gid)
                break
            except PermissionError:
                continue
    mode = stat.S_IMODE(like.st_mode)
    if mode != stat.S_IMODE(facts.st_mode):
        os.fchmod(fd, mode)


def _batches(buffers: Iterable[Buffer], size: int) -> Iterator[list[Buffer]]:
    """Yield buffers in batches for one call each; large buffers in batches of exactly ``size`` bytes."""
    batch: list[Buffer] = []
    room = size
    for buffer in buffers:
        nbytes = len(buffer) if isinstance(buffer, bytes) else memoryview(buffer).nbytes
        if nbytes < room:
            batch.append(buffer)
            room -= nbytes
            if len(batch) == _IOV_MAX:
                yield batch
                batch, room = [], size
            continue
        view = memoryview(buffer).cast("B")
        at = 0
        while at < nbytes:
            part = view[at : at + room]
            batch.append(part)
            at += len(part)
            room -= len(part)
            if room == 0 or len(batch) == _IOV_MAX:
                yield batch
                batch, room = [], size
    if batch:
        yield [b"".join(batch)] if len(batch) > 1 and size - room <= _SMALL else batch


def _write(fd: int, rest: list[Buffer]) -> None:
    while rest:
        count = os.writev(fd, rest) if hasattr(os, "writev") else os.write(fd, rest[0])
        advance_progress(count)
        while rest and count >= (size := memoryview(rest[0]).nbytes):
            count -= size
            del rest[0]
        if rest and count:
            rest[0] = memoryview(rest[0]).cast("B")[count:]
