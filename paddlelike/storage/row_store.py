"""Rows of bytes by 64-bit ids in an embedded store (RocksDB) on this machine's disk.

It holds rows for which a process has no memory; only saves make rows durable. The files are in a folder of
their own, which is removed with the store. The next store beside it removes a folder that a killed process
left. The README of this room says why RocksDB.

RocksDB checks the blocks that it reads. After a damaged block a look-up raises, but an iteration just ends,
so a scan checks the iterator's status at its end. Every failure is a StorageError.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from paddlelike.errors import ExtraMissingError, StorageError
from paddlelike.foundation.locks import OpenFile, opened

try:
    import fcntl
except ImportError:  # not a POSIX system: folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

Array = np.ndarray[Any, Any]

_FOLDER: Final = "paddlelike-rows-"
_OWN: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CACHE: Final = 32 << 20  # bytes of blocks that RocksDB keeps, and of rows before it writes them
_BLOCK: Final = 1 << 16  # rows of one call
_HINT: Final = "the changes since the last save are lost: load that save in a new process"
_open: Final = weakref.WeakSet[Any]()  # the stores of this process


class RowStore:
    """Rows of ``width`` bytes, in a new folder below ``PADDLELIKE_TABLE_STORE`` (by default tempfile's
    folder).

    Raises ExtraMissingError without the extra ``store``, OSError where the folder cannot be made. All methods
    raise StorageError where RocksDB fails.
    """

    def __init__(self, width: int) -> None:
        rocksdb = _load_rocksdb()
        self._width = width
        self._folder, lock = _make_folder(get_folder())
        options = rocksdb.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_compression_type(rocksdb.DBCompressionType.none())  # trained numbers hardly compress
        options.set_write_buffer_size(_CACHE)
        blocks = rocksdb.BlockBasedOptions()
        blocks.set_block_cache(rocksdb.Cache(_CACHE))
        blocks.set_bloom_filter(10, False)
        options.set_block_based_table_factory(blocks)
        self._new_batch = rocksdb.WriteBatch
        try:
            with self._failures("opened"):
                self._db = rocksdb.Rdict(str(self._folder / "rows"), options)
        except StorageError:
            _close(None, self._folder, lock, os.getpid())
            raise
        written = rocksdb.WriteOptions()
        written.disable_wal = True
        self._db.set_write_options(written)
        self.close = weakref.finalize(self, _close, self._db, self._folder, lock, os.getpid())
        _open.add(self)

    def read(self, ids: Array) -> tuple[Array, Array]:
        """Return a mask of the ids that have rows, and the bytes of these rows, (n, width)."""
        found: list[bytes | None] = []
        for at in range(0, len(ids), _BLOCK):
            with self._failures("read"):
                found += self._db.get(_keys(ids[at : at + _BLOCK]))
        there = np.fromiter((one is not None for one in found), np.bool_, len(ids))
        return there, self._join([one for one in found if one is not None])

    def write(self, ids: Array, rows: Array, *, reserve: bool = True) -> None:
        """Set the rows of ids, given as arrays of ``width`` bytes each.

        With ``reserve`` the disk must also have room for the next writes of all stores: so a step on a full
        disk fails at its first look-up, before it has changed anything.
        """
        if not len(ids):
            return
        self._check_room(len(ids) * (8 + self._width), reserve=reserve)
        for at in range(0, len(ids), _BLOCK):
            data = np.ascontiguousarray(rows[at : at + _BLOCK]).view(f"V{self._width}").reshape(-1).tolist()
            with self._failures("written"):
                batch = self._new_batch(raw_mode=True)
                for key, row in zip(_keys(ids[at : at + _BLOCK]), data, strict=True):
                    batch.put(key, row)
                self._db.write(batch)

    def remove(self, ids: Array) -> None:
        """Remove the rows of ids; ignore missing ones."""
        for at in range(0, len(ids), _BLOCK):
            with self._failures("written"):
                batch = self._new_batch(raw_mode=True)
                for key in _keys(ids[at : at + _BLOCK]):
                    batch.delete(key)
                self._db.write(batch)

    def scan(self) -> Iterator[tuple[Array, Array]]:
        """Yield all ids and rows in parts, by rising id (as unsigned numbers)."""
        last = None
        with self._failures("read"):
            items = self._db.items()
        while True:
            with self._failures("read"):
                part = [pair for _, pair in zip(range(_BLOCK), items, strict=False)]
                if not part:
                    self._check_end(last)
                    return
            last = part[-1][0]
            ids = np.frombuffer(b"".join(key for key, _ in part), ">i8").astype(np.int64)
            yield ids, self._join([row for _, row in part])

    def _check_end(self, last: bytes | None) -> None:
        """Raise StorageError if there are entries after the last key of an iteration."""
        cursor = self._db.iter()
        if last is None:
            cursor.seek_to_first()
        else:
            cursor.seek(last)
            cursor.next()
        cursor.status()  # raises the error that ended it
        if cursor.valid():
            raise StorageError(f"the rows in {self._folder} end too early", hint=_HINT)

    def _join(self, found: list[bytes]) -> Array:
        """Return rows as bytes, (n, width)."""
        data = bytearray(b"".join(found))
        if len(data) != len(found) * self._width or any(len(one) != self._width for one in found):
            raise StorageError(f"a row in {self._folder} does not have {self._width} bytes", hint=_HINT)
        return np.frombuffer(data, np.uint8).reshape(-1, self._width)

    def _check_room(self, size: int, *, reserve: bool) -> None:
        if not hasattr(os, "statvfs"):
            return
        facts = os.statvfs(self._folder)
        free, needed = facts.f_bavail * facts.f_frsize, 2 * size
        if reserve:  # each may write two buffers
            needed += 2 * _CACHE * len(_open)
        if free < needed:
            raise _make_full(
                f"{self._folder} has {free >> 20} MiB left on its disk, {max(needed >> 20, 1)} MiB are needed"
            )

    @contextlib.contextmanager
    def _failures(self, done: str) -> Iterator[None]:
        """Turn errors of RocksDB into StorageError."""
        try:
            yield
        except StorageError:
            raise
        except Exception as error:  # RocksDB's error has no class of its own
            text = f"the rows in {self._folder} cannot be {done}: {error}"
            if "No space left" in str(error):
                raise _make_full(text) from error
            raise StorageError(text, hint=_HINT) from error


def _make_full(text: str) -> StorageError:
    error = StorageError(text, hint="free space, or let PADDLELIKE_TABLE_STORE name a folder on another disk")
    error.errno = errno.ENOSPC
    return error


def get_folder() -> Path:
    """Return the folder of the stores."""
    return Path(os.environ.get("PADDLELIKE_TABLE_STORE") or tempfile.gettempdir())


def map_array(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array in an unnamed file beside the stores, which can be paged out.

    Raises StorageError where the disk is full.
    """
    count = int(np.prod(shape))
    if not count:
        return np.empty(shape, dtype)
    size = count * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile(dir=get_folder()) as file:
        try:
            if hasattr(os, "posix_fallocate"):  # on a full disk a write into the array would kill the process
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise _make_full(f"{get_folder()} has no room for {size} bytes: {error.strerror}") from error
        return np.asarray(np.memmap(file, dtype, "r+" if file.seek(0, 2) else "w+", shape=shape))


def _keys(ids: Array) -> list[bytes]:
    found: list[bytes] = np.ascontiguousarray(ids, ">i8").view("V8").tolist()
    return found


def _load_rocksdb() -> Any:
    try:
        import rocksdict
    except ImportError as error:
        raise ExtraMissingError("tables that are larger than memory need RocksDB", extra="store") from error
    return rocksdict


def _make_folder(where: Path) -> tuple[Path, OpenFile]:
    """Return a new folder, and an open file in it whose lock shows that its process is alive."""
    where.mkdir(parents=True, exist_ok=True)
    try:
        door = opened(where / f".{_FOLDER}lock-{_find_user()}", os.O_RDWR | os.O_CREAT | _OWN, 0o600)
    except OSError:  # another user's, as below: leave other folders
        door = opened(where, os.O_RDONLY)
    with door as (fd, _):
        if (
            fcntl is not None
            and stat.S_ISREG((facts := os.fstat(fd)).st_mode)
            and facts.st_uid == _find_user()
        ):
            fcntl.flock(fd, fcntl.LOCK_EX)
            for other in where.glob(f"{_FOLDER}*"):
                _remove_if_left(other)
        folder = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=where))
        lock = opened(folder / "lock", os.O_RDWR | os.O_CREAT | _OWN, 0o600)
        if fcntl is not None:
            fcntl.flock(lock.args[0], fcntl.LOCK_EX)
    return folder, lock


def _find_user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _remove_if_left(folder: Path) -> None:
    """Remove the folder that an ended process of this user left."""
    with contextlib.suppress(OSError):
        facts = folder.lstat()
        if stat.S_ISDIR(facts.st_mode) and facts.st_uid == _find_user():
            with opened(folder / "lock", os.O_RDONLY | _OWN) as (fd, _):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder)


def _close(db: Any, folder: Path, lock: OpenFile, owner: int) -> None:
    """Remove the files. A forked process, which only saves, leaves them to its parent."""
    if os.getpid() == owner:
        with contextlib.suppress(Exception):  # it writes buffered rows, for which the disk may be full
            if db is not None:
                db.close()
        shutil.rmtree(folder, ignore_errors=True)
    del lock  # its deletion closes it
