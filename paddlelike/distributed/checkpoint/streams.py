"""The files of large variables, filled in pieces: streamed through trainer 0, or written by the servers."""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddlelike.core.dtypes import VarType, numpy_dtype
from paddlelike.distributed.checkpoint.servers import Servers
from paddlelike.distributed.client.receivers import Sink
from paddlelike.distributed.placement import Slice
from paddlelike.errors import SaveError
from paddlelike.formats import elements
from paddlelike.formats.paddle import lod_tensor
from paddlelike.io.partition import GatheredFile
from paddlelike.io.report import Moved
from paddlelike.storage import hashing
from paddlelike.storage.interfaces import Buffer
from paddlelike.storage.local.writing import Shared
from paddlelike.storage.options import SaveOptions

__all__ = [
    "Gathering",
    "OffsetFile",
    "StreamSum",
    "gather_large",
    "header_of",
    "make_extra",
    "read_crc",
    "stream_sink",
]

Fill = Callable[[str], str | None]  # the path of a file to fill -> its checksum


def _nothing() -> None:
    pass


@dataclass(frozen=True)
class Gathering:
    """The options of gathering variables from servers.

    Attributes
    ----------
    checksum
        For the manifest; of files that servers write it is always the crc32, which can be combined.
    by_servers
        Servers write their rows of large files themselves.
    local
        The files are on this machine's file systems; otherwise they cannot be written at offsets.
    joined
        Tables that are sharded by id become one file, as prediction needs them; else one for each server.
    after
        Called whenever values have been pulled.
    """

    checksum: hashing.Algorithm | None = SaveOptions.checksum
    by_servers: bool = False
    local: bool = True
    joined: bool = False
    after: Callable[[], None] = _nothing


def make_extra(one: Slice, buffers: Iterable[Buffer]) -> GatheredFile:
    """Return the file of the variable that ``one`` is a slice of, with its entry for the manifest."""
    facts = {
        "variable": one.origin,
        "kind": "lod_tensor",
        "dtype": VarType(one.dtype).name,
        "shape": list(one.whole),
        "lod": [],
    }
    dtype = numpy_dtype(one.dtype)
    moved = Moved(one.whole, dtype.name, math.prod(one.whole) * dtype.itemsize)
    return GatheredFile(one.origin, buffers, facts, moved)


def header_of(one: Slice) -> bytes:
    """Return the header of the file of the variable that ``one`` is a slice of."""
    return lod_tensor.encode_header(one.dtype, one.whole)


def gather_large(servers: Servers, slices: Sequence[Slice], how: Gathering) -> GatheredFile:
    """Return the file of a large variable, given its slices by rows."""
    one = slices[0]
    if not how.local:
        return make_extra(one, _SequentialFile(servers, slices))
    header = header_of(one)
    size = len(header) + math.prod(one.whole) * numpy_dtype(one.dtype).itemsize
    make_fill = _write_by_servers if how.by_servers else _stream
    return make_extra(one, Shared(header, size, make_fill(servers, slices, header, how)))


class _SequentialFile:
    """The bytes of a large variable where no offsets can be written: one slice after the other."""

    def __init__(self, servers: Servers, slices: Sequence[Slice]) -> None:
        self._servers = servers
        self._slices = slices

    def __iter__(self) -> Iterator[Buffer]:
        yield header_of(self._slices[0])
        for one in self._slices:
            yield elements.view_elements(self._servers.pull([(one.endpoint, one.name)])[0])


def _stream(servers: Servers, slices: Sequence[Slice], header: bytes, how: Gathering) -> Fill:
    """Return what fills a file with slices that are streamed from their servers."""

    def fill(path: str) -> str | None:
        total = StreamSum(how.checksum, header)
        with OffsetFile(path) as file:
            offset = len(header)
            for one in slices:
                servers.stream((one.endpoint, one.name), stream_sink(file, total, offset, one.nbytes))
                total.settle()
                offset += one.nbytes
        how.after()
        return total.text()

    return fill


def _write_by_servers(servers: Servers, slices: Sequence[Slice], header: bytes, how: Gathering) -> Fill:
    """Return what has servers write their slices into a file."""

    def fill(path: str) -> str | None:
        name = slices[0].origin
        answers = servers.save(path.removesuffix(name), [name])
        sums = [(zlib.crc32(header), len(header))]
        sums += [(read_crc(answers, one), one.nbytes) for one in slices]
        how.after()
        return None if how.checksum is None else f"crc32:{hashing.combine_crc32(sums):08x}"

    return fill


def read_crc(answers: Mapping[str, Mapping[str, Any]], one: Slice) -> int:
    """Return the crc32 of the bytes that the server of a slice wrote.

    Raises
    ------
    SaveError
        The server's answer has none.
    """
    found = answers[one.endpoint].get("crc32", {}).get(one.name)
    if not isinstance(found, int):
        raise SaveError(
            f"the server at {one.endpoint} did not write its rows of {one.origin!r}",
            hint="are its program and the trainer's of one transpile()? Else save without by_servers=",
        )
    return found


def stream_sink(file: OffsetFile, total: StreamSum, start: int, size: int) -> Callable[[], Sink]:
    """Return what makes sinks for ``size`` bytes that go into a file from offset ``start`` on."""

    def take(offset: int, data: memoryview) -> None:
        total.update(offset, data)
        file.write(start + offset, data)

    return lambda: Sink(size, take)


class OffsetFile:
    """An existing file that is written at offsets."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0))

    def __enter__(self) -> OffsetFile:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._fd)

    def write(self, offset: int, data: memoryview) -> None:
        """Write all of ``data`` from ``offset`` on."""
        while data:
            count = os.pwrite(self._fd, data, offset)
            data, offset = data[count:], offset + count


class StreamSum:
    """A checksum of streamed bytes; a slice may be streamed again from its start.

    Parameters
    ----------
    algorithm
        None: no checksum is wanted.
    header
        The bytes before the first slice.
    """

    def __init__(self, algorithm: str | None, header: bytes) -> None:
        self._algorithm = algorithm or "crc32"
        self._is_wanted = algorithm is not None
        self._settled = hashing.new_hasher(self._algorithm)
        self._settled.update(header)
        self._current = self._settled

    def update(self, offset: int, data: memoryview) -> None:
        """Add bytes of the slice under way; offset 0 begins it again."""
        if offset == 0:
            self._current = self._settled.copy()
        if self._is_wanted:
            self._current.update(data)

    def settle(self) -> None:
        """End the slice under way: its bytes count."""
        self._settled = self._current

    def text(self) -> str | None:
        """Return the checksum as the manifest has it, or None."""
        return f"{self._algorithm}:{self._settled.hexdigest()}" if self._is_wanted else None
