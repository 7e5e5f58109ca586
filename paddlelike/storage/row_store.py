"""Rows of bytes by 64-bit ids, in an unnamed file on this machine's disk.

It holds rows for which a process has no memory; only saves make rows durable. The file has no name, so it
vanishes with its process, even a killed one.

A record is an id, its row, and a checksum of both and of the record's place. The index from ids to places is
in memory. Reading compares id and checksum, so damage is a StorageError. Scans, which every save makes, read
by system calls. Look-ups read through a mapping, which takes a fraction of the time; but a read error of the
disk then ends the process.

A forked process shares the file. If one of the two has written since the fork, the other's calls raise
StorageError.

An exception at any point, such as Ctrl-C, leaves every row with its old or its new value.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from paddlelike.core.rows import RowIndex
from paddlelike.errors import StorageError

Array = np.ndarray[Any, Any]

_BLOCK: Final = 1 << 16  # records of one call at most
_PIECE: Final = 1 << 24  # bytes of these records
_LEAST: Final = 1 << 20  # bytes by which a file grows at least
_PARTS: Final = 4  # of an index; only one part at a time needs memory to grow
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_open: Final = weakref.WeakSet[Any]()  # the stores of this process


class RowStore:
    """Rows of ``width`` elements, in a file below ``PADDLELIKE_TABLE_STORE`` (default: tempfile's folder).

    Raises OSError where the file cannot be made. All methods raise StorageError where the disk is full or the
    file is damaged.
    """

    def __init__(self, width: int, dtype: np.dtype[Any]) -> None:
        self.width, self.dtype = width, dtype
        words = 2 + -(-width * dtype.itemsize // 4)
        get_folder().mkdir(parents=True, exist_ok=True)
        self._block = max(1, min(_BLOCK, _PIECE // (4 * words + 4)))
        self._file = tempfile.TemporaryFile(dir=get_folder(), buffering=0)  # noqa: SIM115
        self._close = weakref.finalize(self, self._file.close)
        self._factors = (2 * np.arange(words, dtype=np.uint64) + np.uint64(3)) * _GOLDEN
        self._writes = np.frombuffer(mmap.mmap(-1, 8), np.int64)  # of all processes that share the file
        self._seen = 0  # the writes that this process knows
        self.clear()
        _open.add(self)

    def clear(self) -> None:
        """Remove all rows."""
        self._begin_write()
        self._records: Array  # of the file, mapped
        self._there: Array  # of each record: False for a removed one
        self._records, self._there, self._index, self._count = (
            np.empty((0, len(self._factors) + 1), np.uint32),
            np.empty(0, np.bool_),
            [RowIndex(np.empty(0, np.int64)) for _ in range(_PARTS)],  # of records, also of removed ones
            0,  # these records
        )
        self._file.truncate(0)

    def read(self, ids: Array) -> tuple[Array, Array]:
        """Return a mask of the ids that have rows, and these rows, (n, width)."""
        places = self._find(ids)
        there = places >= 0
        there[there] = self._there[places[there]]
        ids, places = ids[there], places[there]
        rows = np.empty((len(ids), self.width), self.dtype)
        for at in range(0, len(ids), self._block):
            part = slice(at, at + self._block)
            found, rows[part] = self._decode(self._records.take(places[part], axis=0), places[part])
            if not np.array_equal(found, ids[part]):
                raise _make_damage("a row has the id of another one")
        self._check_writes()
        return there, rows

    def write(self, ids: Array, rows: Array, *, reserve: bool = True) -> None:
        """Set the rows of distinct ids.

        With ``reserve`` the disk must also have room for the next growth of all stores. So a step on a full
        disk fails at its first look-up, before it has changed anything.
        """
        if not len(ids):
            return
        self._check_writes()
        places = self._find(ids)
        new = np.flatnonzero(places < 0)
        total = self._count + len(new)
        self._make_room(total, reserve=reserve)
        places[new] = np.arange(self._count, total)
        self._begin_write()
        order = places.argsort()  # the pages of the file one after another
        for at in range(0, len(ids), self._block):
            part = order[at : at + self._block]
            self._records[places[part]] = self._encode(ids[part], rows[part], places[part])
        self._count = total  # from here on, nothing else is written at these places
        for index, some in self._split(ids[new]):
            index.add(ids[new[some]], places[new[some]])
        self._there[places] = True

    def remove(self, ids: Array) -> None:
        """Remove the rows of ids; ignore missing ones."""
        places = self._find(ids)
        self._there[places[places >= 0]] = False
        if 2 * np.count_nonzero(self._there) < self._count:
            self._pack()

    def scan(self) -> Iterator[tuple[Array, Array]]:
        """Yield all present ids and rows in parts, in the order in which they came."""
        for at in range(0, self._count, self._block):
            there = self._there[at : min(at + self._block, self._count)]
            records = np.empty((len(there), self._records.shape[1]), np.uint32)
            if hasattr(os, "preadv"):  # moves no offset, which other threads and forked processes share
                try:
                    size = os.preadv(self._file.fileno(), [records.data], at * 4 * records.shape[1])
                except OSError as error:
                    raise _make_damage(str(error)) from error
                if size != records.nbytes:
                    raise _make_damage("the file ends too early")
            else:
                records[:] = self._records[at : at + len(there)]
            found = self._decode(records[there], at + np.flatnonzero(there))
            self._check_writes()
            yield found

    def _begin_write(self) -> None:
        self._seen += 1  # first: after Ctrl-C between the two, this process knows more writes than there were
        self._writes[0] = self._seen

    def _check_writes(self) -> None:
        if self._writes[0] > self._seen:
            raise _make_damage("a process that shares them since a fork changed them")

    def _pack(self) -> None:
        """Move the present records to a new file, if the disk has room for them."""
        try:
            new = RowStore(self.width, self.dtype)
            new._make_room(int(np.count_nonzero(self._there)), reserve=False)
        except (OSError, StorageError):
            return
        for ids, rows in self.scan():
            new.write(ids, rows, reserve=False)
        old = self._close
        new._close.detach()
        new._close = weakref.finalize(self, new._file.close)
        vars(self).update(vars(new))  # in one step
        old()

    def _split(self, ids: Array) -> Iterator[tuple[RowIndex, Array]]:
        """Yield each part of the index with the positions of its ids."""
        part = ((ids.view(np.uint64) * _GOLDEN) >> np.uint64(62)).astype(np.uint8)
        order = part.argsort(kind="stable")
        ends = np.bincount(part, minlength=_PARTS).cumsum()
        yield from zip(self._index, np.split(order, ends[:-1]), strict=True)

    def _find(self, ids: Array) -> Array:
        """Return the place of the record of each id, also of a removed one, or -1."""
        if os.fstat(self._file.fileno()).st_size < self._records.nbytes:  # its mapping would kill the process
            raise _make_damage("the file ends too early")
        places = np.empty(len(ids), np.int64)
        for index, some in self._split(ids):
            places[some] = index.find(ids[some])
        return places

    def _encode(self, ids: Array, rows: Array, places: Array) -> Array:
        records = np.zeros((len(ids), self._records.shape[1]), np.uint32)
        data = records.view(np.uint8)
        data[:, :8] = ids.reshape(-1, 1).view(np.uint8)
        data[:, 8 : 8 + self.width * self.dtype.itemsize] = np.ascontiguousarray(rows).view(np.uint8)
        records[:, -1] = self._sum(records, places)
        return records

    def _decode(self, records: Array, places: Array) -> tuple[Array, Array]:
        """Return the ids and rows of the records at these places, (n, width)."""
        if not np.array_equal(records[:, -1], self._sum(records, places)):
            raise _make_damage("the checksum of a row does not match")
        data = records.view(np.uint8)
        rows = data[:, 8 : 8 + self.width * self.dtype.itemsize].copy().view(self.dtype)
        return data[:, :8].copy().view(np.int64).reshape(-1), rows

    def _sum(self, records: Array, places: Array) -> Array:
        """Return the checksums: sums of products, which any single flipped bit changes."""
        sums = records[:, :-1].astype(np.uint64) @ self._factors + (places + 1).astype(np.uint64) * _GOLDEN
        found: Array = (sums >> np.uint64(32)).astype(np.uint32)
        return found

    def _make_room(self, count: int, *, reserve: bool) -> None:
        """Map room for so many records."""
        record = 4 * self._records.shape[1]
        grows = count > len(self._records)
        size = max(count * record, self._records.nbytes * 9 // 8, _LEAST) if grows else 0
        needed = size - self._records.nbytes if grows else 0
        if reserve:
            needed += sum(max(one._records.nbytes // 8, _LEAST) for one in _open)
        if needed and hasattr(os, "fstatvfs"):
            facts = os.fstatvfs(self._file.fileno())
            free = facts.f_bavail * facts.f_frsize
            if free < needed:
                raise _make_full(needed, f"{free >> 20} MiB are left on its disk")
        if grows:
            records = map_file(self._file, (size // record, self._records.shape[1]), np.uint32)
            there = np.zeros(len(records), np.bool_)
            there[: self._count] = self._there[: self._count]
            self._there, self._records = there, records


def _make_damage(what: str) -> StorageError:
    return StorageError(
        f"the rows in {get_folder()} cannot be read: {what}",
        hint="the changes since the last save are lost: load that save in a new process",
    )


def _make_full(size: int, what: str) -> StorageError:
    error = StorageError(
        f"{get_folder()} has no room for {size} bytes: {what}",
        hint="free space, or let PADDLELIKE_TABLE_STORE name a folder on another disk",
    )
    error.errno = errno.ENOSPC
    return error


def get_folder() -> Path:
    """Return the folder of the stores."""
    return Path(os.environ.get("PADDLELIKE_TABLE_STORE") or tempfile.gettempdir())


def map_array(shape: tuple[int, ...], dtype: Any) -> Array:
    """Return an array in an unnamed file beside the stores, which can be paged out.

    Raises StorageError where the disk is full.
    """
    with tempfile.TemporaryFile(dir=get_folder()) as file:
        return map_file(file, shape, dtype) if np.prod(shape) else np.empty(shape, dtype)


def map_file(file: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Map a file as an array of this shape; existing contents stay.

    Raises StorageError where the disk is full.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    try:
        if hasattr(os, "posix_fallocate"):  # on a full disk a write into the array would kill the process
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
        return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
    except OSError as error:
        raise _make_full(size, str(error.strerror)) from error
