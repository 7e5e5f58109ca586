"""The files of large variables, filled in pieces: streamed through trainer 0, or written by the servers."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from paddlelike.core import VarType, numpy_dtype
from paddlelike.distributed.checkpoint.servers import Servers
from paddlelike.distributed.client.receivers import Sink
from paddlelike.distributed.placement import Slice
from paddlelike.errors import SaveError, StorageError
from paddlelike.formats import elements
from paddlelike.formats.paddle import lod_tensor
from paddlelike.formats.paddle.directory import make_facts
from paddlelike.foundation.locks import close_at_end, close_files, open_file
from paddlelike.io.partition import GatheredFile
from paddlelike.io.report import Moved
from paddlelike.lazy import dataclass
from paddlelike.storage import hashing
from paddlelike.storage.interfaces import Buffer
from paddlelike.storage.local.files import File
from paddlelike.storage.local.writing import Shared
from paddlelike.storage.options import SaveOptions
from paddlelike.storage.ranges import RangeSums, join_ranges

Fill = Callable[[str], hashing.Checksum | None]  # the path of a file to fill -> its checksum


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Gathering:
    """The options of gathering variables from servers.

    Attributes
    ----------
    checksum
        The algorithm for the manifest; files that servers write always use xxh3_128, whose pieces can be
        joined.
    by_servers
        Servers write their rows of large files themselves.
    local
        The files are on this machine's file systems; otherwise they cannot be written at offsets.
    joined
        Whether tables that are sharded by id become one file, as prediction needs; else one for each server.
    after
        Called whenever values have been pulled.
    """

    checksum: hashing.Algorithm | None = SaveOptions.checksum
    by_servers: bool = False
    local: bool = True
    joined: bool = False
    after: Callable[[], None] = _nothing


def make_extra(
    one: Slice, buffers: Iterable[Buffer], pull: Callable[[], bytes] | None = None
) -> GatheredFile:
    """Return the file of the variable that ``one`` is a slice of, with its entry for the manifest."""
    facts = make_facts(one.origin, VarType(one.dtype).name, one.whole)
    dtype = numpy_dtype(one.dtype)
    moved = Moved(one.whole, dtype.name, math.prod(one.whole) * dtype.itemsize)
    return GatheredFile(one.origin, buffers, facts, moved, pull)


def make_header(one: Slice) -> bytes:
    """Return the header of the file of the variable that ``one`` is a slice of."""
    return lod_tensor.encode_header(one.dtype, one.whole)


def gather_large(servers: Servers, slices: Sequence[Slice], how: Gathering) -> GatheredFile:
    """Return the file of a large variable, given its slices by rows."""
    one, whole = slices[0], _SequentialFile(servers, slices)
    pull = functools.partial(b"".join, whole)
    if not how.local:
        return make_extra(one, whole, pull)
    header = make_header(one)
    size = len(header) + math.prod(one.whole) * numpy_dtype(one.dtype).itemsize
    make_fill = _write_by_servers if how.by_servers else _stream
    return make_extra(one, Shared(header, size, make_fill(servers, slices, header, how)), pull)


class _SequentialFile:
    """The bytes of a large variable, written in order for files without random access."""

    def __init__(self, servers: Servers, slices: Sequence[Slice]) -> None:
        self._servers = servers
        self._slices = slices

    def __iter__(self) -> Iterator[Buffer]:
        yield make_header(self._slices[0])
        for one in self._slices:
            yield elements.view_elements(self._servers.pull([(one.endpoint, one.name)])[0])


def _stream(servers: Servers, slices: Sequence[Slice], header: bytes, how: Gathering) -> Fill:
    """Return a function that fills a file with slices streamed from their servers."""

    def fill(path: str) -> hashing.Checksum | None:
        total = StreamSum(how.checksum, header)
        with OffsetFile(path) as file:
            offset = len(header)
            for one in slices:
                servers.stream((one.endpoint, one.name), stream_sink(file, total, offset, one.nbytes))
                total.settle()
                offset += one.nbytes
        how.after()
        return total.finish()

    return fill


def _write_by_servers(servers: Servers, slices: Sequence[Slice], header: bytes, how: Gathering) -> Fill:
    """Return a function that makes servers write their slices into a file."""

    def fill(path: str) -> hashing.Checksum | None:
        name = slices[0].origin
        answers = servers.save(path.removesuffix(name), [name])
        checksum = join_answers(path, header, answers, slices)
        how.after()
        return None if how.checksum is None else checksum

    return fill


def join_answers(
    path: str, header: bytes, answers: Mapping[str, Mapping[str, Any]], slices: Sequence[Slice]
) -> hashing.Checksum:
    """Return the checksum of a file that servers have written after ``header``, from their answers.

    Raises
    ------
    SaveError
        A server did not write its rows, or they are not in the file that this process sees.
    """
    try:
        sums = [RangeSums.parse(answers[one.endpoint]["sums"][one.name]) for one in slices]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        endpoints = ", ".join(sorted({one.endpoint for one in slices}))
        raise SaveError(
            f"not every one of the servers {endpoints} wrote its rows of {slices[0].origin!r}",
            hint="do all programs come from one transpile()? Otherwise save without by_servers=",
        ) from error
    try:
        with File(path) as file:
            _check_places(sums, [file.size] if not header else [one.nbytes for one in slices], len(header))
            return join_ranges(file, header, sums)
    except StorageError as error:
        raise SaveError(
            f"{path} differs from the data that the servers wrote: {error.message}", hint=error.hint
        ) from error


def _check_places(sums: Sequence[RangeSums], sizes: Sequence[int], start: int) -> None:
    """Raise StorageError unless the ranges have these sizes and follow each other from ``start`` on."""
    for one, size in zip(sums, sizes, strict=True):
        if (one.start, one.size) != (start, size):
            raise StorageError(
                f"{one.size} bytes were written from {one.start} on, not {size} from {start} on"
            )
        start += size


def stream_sink(file: OffsetFile, total: StreamSum, start: int, size: int) -> Callable[[], Sink]:
    """Return a function that makes sinks for ``size`` bytes of a file from offset ``start``."""

    def take(offset: int, data: memoryview) -> None:
        total.update(offset, data)
        file.write(start + offset, data)

    return lambda: Sink(size, take)


class OffsetFile:
    """An existing file that is written at offsets."""

    def __init__(self, path: str) -> None:
        self._files: list[int] = []
        self._end = close_at_end(self._files)
        open_file(self._files, path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0))

    def __enter__(self) -> OffsetFile:
        return self

    def __exit__(self, *error: object) -> None:
        close_files(self._files)

    def write(self, offset: int, data: memoryview) -> None:
        """Write all of ``data`` from ``offset`` on."""
        while data:
            count = os.pwrite(self._files[0], data, offset)
            data, offset = data[count:], offset + count


class StreamSum:
    """A checksum of streamed bytes; a slice may be streamed again from its start.

    Parameters
    ----------
    algorithm
        The name of the checksum; None for no checksum.
    header
        The bytes before the first slice.
    """

    def __init__(self, algorithm: str | None, header: bytes) -> None:
        self._algorithm = algorithm or "xxh3_128"
        self._is_wanted = algorithm is not None
        self._settled = hashing.new_hasher(self._algorithm)
        self._settled.update(header)
        self._current = self._settled

    def update(self, offset: int, data: memoryview) -> None:
        """Add bytes of the current slice; offset 0 starts the slice again."""
        if offset == 0:
            self._current = self._settled.copy()
        if self._is_wanted:
            self._current.update(data)

    def settle(self) -> None:
        """End the current slice and keep its bytes in the checksum."""
        self._settled = self._current

    def finish(self) -> hashing.Checksum | None:
        """Return the checksum for the manifest, or None if no checksum is wanted."""
        return hashing.finish(self._settled, self._algorithm) if self._is_wanted else None
