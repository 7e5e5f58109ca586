"""Writing many files: the buffers go to the system as they are, checksums are taken on the way.

Large files are written by a few threads, the largest first; small ones one after the other, each with three
calls. A piece is hashed and written while it is in the processor's cache.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from paddlelike.errors import PaddlelikeError, SaveError
from paddlelike.storage import hashing
from paddlelike.storage.local.files import LARGE, THREADS
from paddlelike.storage.local.mapping import is_free
from paddlelike.storage.manifest import Record, stamp_of
from paddlelike.storage.problems import explained

__all__ = ["Piece", "Shared", "write_files"]

Buffer = bytes | bytearray | memoryview

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OVER: Final = os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_IOV_MAX: Final = 1024  # buffers that the system takes in one call
_BATCH: Final = 8 << 20  # bytes in one call
_HASHED: Final = 1 << 20  # bytes that are hashed, then written: they stay in the processor's cache
_SMALL: Final = 64 << 10  # bytes that are joined into one buffer


@dataclass(frozen=True)
class Shared:
    """The buffers of a file that several processes write: ``front`` here, the rest by others.

    Attributes
    ----------
    size
        Bytes of the whole file; None: whoever fills it knows.
    fill
        Has the rest of the file at a path written, and gives the checksum of all of it, or None.
    """

    front: bytes
    size: int | None
    fill: Callable[[str], str | None]

    def __iter__(self) -> Iterator[Buffer]:
        return iter((self.front,))


class Piece(NamedTuple):
    """A file to be written."""

    buffers: Iterable[Buffer]
    facts: Mapping[str, Any]
    like: os.stat_result | None = None  # the file it replaces, whose mode and owner it takes
    over: bool = False  # there is a file nobody needs any more, whose pages may be used again


def write_files(
    root: str, files: Mapping[str, Piece], algorithm: str | None, *, shown: str | None = None
) -> dict[str, Record]:
    """Write ``{path: piece}`` below ``root``; its folders exist.

    Errors name the file as one in the directory ``shown``, where it is going to be.

    Raises
    ------
    SaveError
        With the file that could not be written; the others are in any state.
    """
    try:
        return _written(root, files, algorithm)
    except _WriteError as unwritten:
        path, error = unwritten.args
        raise explained(SaveError, f"{os.path.join(shown or root, path)} cannot be written", error) from error


class _WriteError(Exception):
    """The system refused to write the file of a path, and why."""


def _written(root: str, files: Mapping[str, Piece], algorithm: str | None) -> dict[str, Record]:
    sizes = {path: _known_size(piece.buffers) for path, piece in files.items()}
    large = sorted((path for path in files if sizes[path] >= LARGE), key=lambda path: -sizes[path])
    futures: dict[str, tuple[Future[Record], Future[str] | None]] = {}
    records: dict[str, Record] = {}
    folder = os.open(root, os.O_RDONLY) if os.open in os.supports_dir_fd else None
    try:
        with ThreadPoolExecutor(THREADS, "paddlelike-write") as pool:
            try:
                for path in large:
                    few = len(large) < THREADS
                    futures[path] = _submit(pool, root, path, files[path], algorithm, few=few)
                for path, piece in files.items():
                    if sizes[path] < _SMALL and folder is not None and piece.like is None and not piece.over:
                        records[path] = _write_small(folder, path, piece, algorithm)
                    elif sizes[path] < LARGE:
                        records[path] = _write_file(root, folder, path, piece, algorithm)
                for path, (written, hashed) in futures.items():
                    record = written.result()
                    records[path] = record if hashed is None else record._replace(checksum=hashed.result())
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
    finally:
        if folder is not None:
            os.close(folder)
    return records


def _submit(
    pool: ThreadPoolExecutor, root: str, path: str, piece: Piece, algorithm: str | None, *, few: bool
) -> tuple[Future[Record], Future[str] | None]:
    """Hand a large file to the pool; where threads are idle, its checksum to another thread."""
    if isinstance(piece.buffers, Shared):
        return pool.submit(_write_shared, root, path, piece, piece.buffers), None
    hashed = None
    if few and algorithm is not None and isinstance(piece.buffers, Sequence):
        hashed = pool.submit(hashing.of_parts, piece.buffers, algorithm)
        algorithm = None
    return pool.submit(_write_file, root, None, path, piece, algorithm), hashed


def _known_size(buffers: Iterable[Buffer]) -> int:
    """The size of a file; as large where it is not known before its pieces are made."""
    if not isinstance(buffers, Sequence):
        return LARGE
    return sum(len(b) if isinstance(b, bytes) else memoryview(b).nbytes for b in buffers)


def _write_small(folder: int, path: str, piece: Piece, algorithm: str | None) -> Record:
    """Write a small new file: what :func:`_write_file` does, in the fewest steps."""
    data = b"".join(piece.buffers)
    try:
        fd = os.open(path, _NEW, 0o666, dir_fd=folder)
        try:
            written = os.write(fd, data)
            if written < len(data):
                _write(fd, [data[written:]])
            facts = os.fstat(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise _WriteError(path, error) from error
    checksum = None if algorithm is None else f"{algorithm}:{hashing.ALGORITHMS[algorithm](data).hexdigest()}"
    return Record(len(data), checksum, (facts.st_ino, facts.st_mtime_ns), piece.facts)


def _write_file(root: str, folder: int | None, path: str, piece: Piece, algorithm: str | None) -> Record:
    """Write a file, named in the open directory ``folder`` where that is possible."""
    where = path if folder is not None else os.path.join(root, path)
    hasher = None if algorithm is None else hashing.hasher(algorithm)
    try:
        over, fd = _opened(where, folder, over=piece.over)
        try:
            for batch in _batches(piece.buffers, _BATCH if hasher is None else _HASHED):
                if hasher is not None:
                    for buffer in batch:
                        hasher.update(buffer)
                _write(fd, batch)
            facts = os.fstat(fd)
            if over:
                os.ftruncate(fd, os.lseek(fd, 0, os.SEEK_CUR))
                facts = os.fstat(fd)
            if piece.like is not None:
                _take_after(fd, facts, piece.like)
        finally:
            os.close(fd)
    except PaddlelikeError:  # from whoever makes the buffers
        raise
    except OSError as error:
        raise _WriteError(path, error) from error
    checksum = None if hasher is None else f"{algorithm}:{hasher.hexdigest()}"
    return Record(facts.st_size, checksum, stamp_of(facts), piece.facts)


def _opened(where: str, folder: int | None, *, over: bool) -> tuple[bool, int]:
    """Open a file to be written: over the one that is there if nobody has it mapped, else a new one."""
    if over:
        fd = os.open(where, _OVER, dir_fd=folder)
        if is_free(fd):
            return True, fd
        os.close(fd)
        os.unlink(where, dir_fd=folder)
    return False, os.open(where, _NEW, 0o666, dir_fd=folder)


def _write_shared(root: str, path: str, piece: Piece, shared: Shared) -> Record:
    """Write the beginning of a file, make room for the rest, and have it written."""
    _write_file(root, None, path, piece, None)
    where = os.path.join(root, path)
    try:
        if shared.size is not None:
            os.truncate(where, shared.size)
        checksum = shared.fill(where)
        facts = os.stat(where)
    except PaddlelikeError:
        raise
    except OSError as error:
        raise _WriteError(path, error) from error
    if shared.size not in (None, facts.st_size):
        raise SaveError(f"{path} has {facts.st_size} bytes after others wrote it, not {shared.size}")
    return Record(facts.st_size, checksum, stamp_of(facts), piece.facts)


def _take_after(fd: int, facts: os.stat_result, like: os.stat_result) -> None:
    """Give a file the owner and the mode of the one it replaces; the owner as far as the system lets us."""
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


def _batches(buffers: Iterable[Buffer], most: int) -> Iterator[list[Buffer]]:
    """Buffers for one call: what the system takes at once, and about ``most`` bytes."""
    batch: list[Buffer] = []
    size = 0
    for buffer in buffers:
        nbytes = len(buffer) if isinstance(buffer, bytes) else memoryview(buffer).nbytes
        if nbytes > most:
            view = memoryview(buffer).cast("B")
            parts: Iterable[Buffer] = (view[at : at + most] for at in range(0, nbytes, most))
        else:
            parts = (buffer,)
        for part in parts:
            batch.append(part)
            size += len(part) if isinstance(part, bytes) else memoryview(part).nbytes
            if len(batch) == _IOV_MAX or size >= most:
                yield batch
                batch, size = [], 0
    if batch:
        yield [b"".join(batch)] if len(batch) > 1 and size <= _SMALL else batch


def _write(fd: int, rest: list[Buffer]) -> None:
    while rest:
        count = os.writev(fd, rest) if hasattr(os, "writev") else os.write(fd, rest[0])
        while rest and count >= (size := memoryview(rest[0]).nbytes):
            count -= size
            del rest[0]
        if rest and count:
            rest[0] = memoryview(rest[0]).cast("B")[count:]
