"""Copies of the values of an asynchronous save, since training may change them meanwhile.

Large tables that are updated by rows are read directly, while updates keep the old rows
(``core/row_changes.py``); with a snapshot a step would copy a memory page for each of its rows. A snapshot
holds all other memory.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import functools
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from paddlelike.core import Array, memory
from paddlelike.core.row_changes import OldRows, Table, find_tables, keep_old_rows
from paddlelike.core.views import view_bytes_at
from paddlelike.formats.sources import Buffer
from paddlelike.foundation.locks import close_at_end, close_files, open_file
from paddlelike.foundation.snapshot import Rests, Snapshot
from paddlelike.storage.hashing import Checksum, finish, new_hasher
from paddlelike.storage.local.writing import Shared

_Part = Buffer | OldRows

_LARGE: Final = 64 << 10  # bytes; smaller copies are not reused
_PIECE: Final = 2 << 20  # bytes written at a time: Linux caches them in its largest pages
_HELD: Final = 32 << 20  # bytes copied in the time of a snapshot


class KeptMemory:
    """Memory of finished copies, kept for the copies of the next save.

    Several threads may take memory at once.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[Array]] = {}

    def take(self, size: int) -> Array:
        """Return ``size`` bytes that are not used elsewhere."""
        try:
            return self._free[size].pop()
        except (KeyError, IndexError):
            return memory.empty((size,), np.dtype(np.uint8))

    def give_back(self, buffers: Sequence[Array]) -> None:
        """Keep memory for the next copies."""
        for buffer in buffers:
            self._free.setdefault(buffer.nbytes, []).append(buffer)

    def clear(self) -> None:
        """Release all kept memory to the system."""
        self._free = {}


class Copies:
    """The contents of files as they were when a save was requested: a snapshot of all memory, or copies.

    Kept memory that is not used for copies is returned to the system.

    Parameters
    ----------
    checksum
        The algorithm of the files' checksums.
    is_local
        Whether the snapshot's process writes large files, beside this one.
    """

    def __init__(self, kept: KeptMemory, *, checksum: str | None = None, is_local: bool = False) -> None:
        self._kept = kept
        self._checksum = checksum
        self._is_local = is_local
        self._used: list[Array] = []
        self._tables: list[OldRows] = []
        self._snapshot: Snapshot | None = None
        self._waited_for = bytearray(1)

    def hold(self, files: Sequence[Sequence[Buffer]]) -> list[Iterable[Buffer]]:
        """Return the contents of the files at this instant, which can be read until :meth:`release`."""
        tables = find_tables() if self._is_local else {}
        parts = [[self._keep_rows(tables, buffer) for buffer in buffers] for buffers in files]
        if sum(map(_count_bytes, parts)) >= _HELD:
            with contextlib.suppress(OSError):  # otherwise they are copied
                self._snapshot = Snapshot(_write_spans, without=[table.span for table in self._tables])
        held = [self._hold(buffers) for buffers in parts]
        self._kept.clear()
        return [self._share(one) if self._is_local and isinstance(one, _Held) else one for one in held]

    def _keep_rows(self, tables: Mapping[int, Table], buffer: Buffer) -> _Part:
        """Return a table's old rows, readable once (enough for local saves); return any other buffer
        unchanged.
        """
        if not isinstance(buffer, memoryview) or (old := keep_old_rows(tables, buffer)) is None:
            return buffer
        self._tables.append(old)
        return old

    def _hold(self, parts: list[_Part]) -> Iterable[Buffer]:
        buffers = [part for part in parts if not isinstance(part, OldRows)]
        if len(buffers) < len(parts):
            apart = [part if isinstance(part, OldRows) else self._hold([part]) for part in parts]
            return _Paced(apart, self._waited_for)
        if self._snapshot is None or _count_bytes(buffers) < _LARGE:
            return [self._copy(buffer) for buffer in buffers]
        return _Held(self._snapshot, buffers)

    def _share(self, held: _Held) -> Shared:
        return Shared(b"", held.size, functools.partial(held.write, self._checksum))

    def hurry(self) -> None:
        """Write large files without pauses, because a caller waits for them."""
        self._waited_for[0] = 1
        if (snapshot := self._snapshot) is not None:
            snapshot.hurry()

    def release(self) -> None:
        """Release the contents; the memory of copies is kept for the next save."""
        used, self._used, tables, self._tables = self._used, [], self._tables, []
        self._kept.give_back(used)
        for table in tables:
            table.close()
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            snapshot.close()

    def _copy(self, buffer: Buffer) -> Buffer:
        if isinstance(buffer, bytes):
            return buffer
        view = memoryview(buffer)
        if view.nbytes < _LARGE:
            return view.tobytes()
        copy = self._kept.take(view.nbytes)
        self._used.append(copy)
        np.copyto(copy, np.frombuffer(view, np.uint8))
        return copy.data


class _Held:
    """The contents of one file, in a snapshot."""

    def __init__(self, snapshot: Snapshot, buffers: Sequence[Buffer]) -> None:
        self.size = _count_bytes(buffers)
        self._snapshot = snapshot
        self._spans = [_find_span(buffer) for buffer in buffers]

    def write(self, checksum: str | None, path: str) -> Checksum | None:
        """Let the snapshot process write an existing file, and return its checksum."""
        spans = [base64.b64encode(one).decode() if isinstance(one, bytes) else one for one in self._spans]
        request = {"path": path, "spans": spans, "checksum": checksum, "parent": os.getpid()}
        answer = self._snapshot.ask(request)
        return None if answer is None else Checksum(answer[0], tuple(answer[1]), answer[2])

    def __iter__(self) -> Iterator[Buffer]:
        for span in self._spans:
            if isinstance(span, bytes):
                yield span
            else:
                yield from self._snapshot.read(*span)


class _Paced:
    """The contents of a file that this process reads, with pauses until somebody waits for the save."""

    def __init__(self, contents: Sequence[Iterable[Buffer]], waited_for: bytearray) -> None:
        self._contents = contents
        self._waited_for = waited_for

    def __iter__(self) -> Iterator[Buffer]:
        rest = Rests(self._waited_for, time.thread_time)
        for piece in itertools.chain.from_iterable(self._contents):
            yield piece
            rest()


def _write_spans(request: dict[str, Any], rest: Callable[[], None]) -> Checksum | None:
    """Write memory of this process into a file that exists, and return its checksum."""
    checksum, at = request["checksum"], 0
    hasher = None if checksum is None else new_hasher(checksum)
    files: list[int] = []
    with close_at_end(files):
        open_file(files, request["path"], os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
        for span in request["spans"]:
            view = memoryview(base64.b64decode(span)) if isinstance(span, str) else view_bytes_at(*span)
            for start in range(0, len(view), _PIECE):
                if os.getppid() != request["parent"]:  # this save has ended; another may be running
                    raise OSError(errno.ESRCH, "the process that saves was killed")
                piece = view[start : start + _PIECE]
                if hasher is not None:
                    hasher.update(piece)
                while piece:
                    count = os.pwrite(files[0], piece, at)
                    at += count
                    piece = piece[count:]
                rest()
        close_files(files)
    return None if hasher is None else finish(hasher, checksum)


def _count_bytes(parts: Sequence[_Part]) -> int:
    """Return the number of bytes of contents that are not tables."""
    return sum(memoryview(part).nbytes for part in parts if not isinstance(part, OldRows))


def _find_span(buffer: Buffer) -> bytes | tuple[int, int]:
    """Return a constant array itself; for any other array, its address and size."""
    if isinstance(buffer, bytes) or not memoryview(buffer).nbytes:
        return bytes(buffer)
    array = np.frombuffer(buffer, np.uint8)
    return array.ctypes.data, array.nbytes
