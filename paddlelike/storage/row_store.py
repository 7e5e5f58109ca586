"""Rows of bytes by 64-bit ids in an embedded store (RocksDB) on this machine's disk.

It holds what a process has no memory for, and nothing else reads its files: a row is durable when it is
saved, not here. They lie in a folder of their own, which goes with the store; what a killed process left is
removed by whoever opens the next store beside it. The README of this room says why RocksDB.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from paddlelike.errors import ExtraMissingError

try:
    import fcntl
except ImportError:  # not a POSIX system: folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

__all__ = ["RowStore", "map_array"]

Array = np.ndarray[Any, Any]

_FOLDER: Final = "paddlelike-rows-"
_CACHE: Final = 32 << 20  # bytes of blocks that RocksDB keeps, and of rows before it writes them
_BLOCK: Final = 1 << 16  # rows of one call


class RowStore:
    """Rows of ``width`` bytes, in a new folder below ``PADDLELIKE_TABLE_STORE`` (default: that of tempfile).

    Raises ExtraMissingError without the extra ``store``, OSError where the folder cannot be made.
    """

    def __init__(self, width: int) -> None:
        rocksdb = _load_rocksdb()
        self._width = width
        folder, lock = _make_folder(get_folder())
        options = rocksdb.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_compression_type(rocksdb.DBCompressionType.none())  # numbers of training hardly shrink
        options.set_write_buffer_size(_CACHE)
        blocks = rocksdb.BlockBasedOptions()
        blocks.set_block_cache(rocksdb.Cache(_CACHE))
        blocks.set_bloom_filter(10, False)
        options.set_block_based_table_factory(blocks)
        self._new_batch = rocksdb.WriteBatch
        self._db = rocksdb.Rdict(str(folder / "rows"), options)
        written = rocksdb.WriteOptions()
        written.disable_wal = True
        self._db.set_write_options(written)
        self.close = weakref.finalize(self, _close, self._db, folder, lock, os.getpid())

    def read(self, ids: Array) -> tuple[Array, Array]:
        """Return which ids have rows, and the bytes of these rows, (n, width)."""
        found = [
            one for at in range(0, len(ids), _BLOCK) for one in self._db.get(_keys(ids[at : at + _BLOCK]))
        ]
        there = np.fromiter((one is not None for one in found), np.bool_, len(found))
        data = b"".join(one for one in found if one is not None)
        return there, np.frombuffer(bytearray(data), np.uint8).reshape(-1, self._width)

    def write(self, ids: Array, rows: Array) -> None:
        """Set the rows of ids, given as arrays of ``width`` bytes each."""
        for at in range(0, len(ids), _BLOCK):
            data = np.ascontiguousarray(rows[at : at + _BLOCK]).view(f"V{self._width}").reshape(-1).tolist()
            batch = self._new_batch(raw_mode=True)
            for key, row in zip(_keys(ids[at : at + _BLOCK]), data, strict=True):
                batch.put(key, row)
            self._db.write(batch)

    def remove(self, ids: Array) -> None:
        """Remove the rows of ids, where there are any."""
        for at in range(0, len(ids), _BLOCK):
            batch = self._new_batch(raw_mode=True)
            for key in _keys(ids[at : at + _BLOCK]):
                batch.delete(key)
            self._db.write(batch)

    def scan(self) -> Iterator[tuple[Array, Array]]:
        """Yield all ids and rows of now in parts, by rising id (as unsigned numbers)."""
        items = self._db.items()
        while True:
            part = [pair for _, pair in zip(range(_BLOCK), items, strict=False)]
            if not part:
                return
            ids = np.frombuffer(b"".join(key for key, _ in part), ">i8").astype(np.int64)
            data = bytearray(b"".join(row for _, row in part))
            yield ids, np.frombuffer(data, np.uint8).reshape(-1, self._width)


def get_folder() -> Path:
    """Return where stores lie."""
    return Path(os.environ.get("PADDLELIKE_TABLE_STORE") or tempfile.gettempdir())


def map_array(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array in an unnamed file beside the stores, which the system may take out of memory."""
    count = int(np.prod(shape))
    if not count:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(dir=get_folder()) as file:
        return np.asarray(np.memmap(file, dtype, "w+", shape=shape))


def _keys(ids: Array) -> list[bytes]:
    found: list[bytes] = np.ascontiguousarray(ids, ">i8").view("V8").tolist()
    return found


def _load_rocksdb() -> Any:
    try:
        import rocksdict
    except ImportError as error:
        raise ExtraMissingError(
            "tables that are larger than memory need RocksDB", hint="pip install 'paddlelike[store]'"
        ) from error
    return rocksdict


def _make_folder(where: Path) -> tuple[Path, int]:
    """Return a new folder, and the open file in it whose lock says that its process lives."""
    where.mkdir(parents=True, exist_ok=True)
    with open(where / f".{_FOLDER}lock", "wb") as door:
        if fcntl is not None:
            fcntl.flock(door, fcntl.LOCK_EX)
            for other in where.glob(f"{_FOLDER}*"):
                _remove_if_left(other)
        folder = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=where))
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def _remove_if_left(folder: Path) -> None:
    """Remove a folder of a process that is no more; one of another user is left alone."""
    with contextlib.suppress(OSError), open(folder / "lock", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)


def _close(db: Any, folder: Path, lock: int, owner: int) -> None:
    """Remove the files; a forked process, which saves, leaves them to its parent."""
    if os.getpid() == owner:
        db.close()
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
