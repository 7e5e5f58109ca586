"""npz: a ZIP file of NPY arrays, as ``numpy.savez`` writes it.

Specification: numpy.lib.format for NPY, PKZIP's APPNOTE for ZIP. Members that are stored are read where they
lie in the file; compressed ones (``numpy.savez_compressed``) are unpacked. Arrays of objects are pickles and
refused.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from paddlelike.core.dtypes import TENSOR_DTYPES, VarType, convert_dtype
from paddlelike.core.tensor import Array, LoDTensor
from paddlelike.errors import FormatError
from paddlelike.formats import npy
from paddlelike.formats.base import Capabilities, Entry, FileFormat, Value, Values, read_dense
from paddlelike.formats.sources import Buffer, Readable, Source, as_source
from paddlelike.formats.tensor_desc import elements

__all__ = ["Npz", "SourceFile", "deliver", "to_var_type"]

_DATE: Final = (1980, 1, 1, 0, 0, 0)  # equal values give equal bytes
_LOCAL_HEADER: Final = 30
_MOST_DEFLATED: Final = 1100  # deflate makes no data smaller than by this factor
_SUFFIX: Final = ".npy"
_DTYPES: Final = {row.numpy for row in TENSOR_DTYPES.values() if row.var_type != VarType.BF16}


@dataclass(frozen=True)
class Npz(FileFormat):
    """An ``.npz`` file; names are those of the members without ``.npy``."""

    name = "npz"
    title = "an npz file of numpy"
    suffixes = (".npz",)
    advice = "convert it with paddlelike.convert, or read its arrays with numpy.load and set them by name"
    holds = Capabilities(dtypes=frozenset(set(Capabilities().dtypes) - {VarType.BF16}))

    def sniff(self, head: bytes, size: int) -> bool:
        length = int.from_bytes(head[26:28], "little")
        return head[:4] == b"PK\x03\x04" and head[30 : 30 + length].endswith(b".npy")

    def entries(self, source: Readable) -> list[Entry]:
        file = as_source(source)
        with _open(file) as archive:
            found = [_parse_member(file, archive, info) for info in archive.infolist()]
        names = [entry.name for entry in found]
        if len(set(names)) < len(names):
            raise FormatError(
                f"two members have one name: {sorted({n for n in names if names.count(n) > 1})[:5]}"
            )
        return found

    def read(self, source: Readable, entry: Entry, *, into: Array | None = None) -> Value:
        file = as_source(source)
        if entry.offset is not None:
            return read_dense(file, entry, into=into)
        info, header, fortran, dtype = entry.payload
        with _open(file) as archive:
            data = _read_member(archive, info)[header:]
        if len(data) != entry.nbytes:
            raise FormatError(f"{entry.name!r} takes {entry.nbytes} bytes, its member has {len(data)}")
        array = np.frombuffer(data, dtype).reshape(entry.shape, order="F" if fortran else "C")
        return deliver(np.ascontiguousarray(array, dtype.newbyteorder("=")).reshape(entry.shape), into)

    def write(self, values: Values) -> Iterator[Buffer]:
        self.check(values)
        return _encode({name: v.array if isinstance(v, LoDTensor) else v for name, v in values.items()})


class SourceFile(io.RawIOBase):
    """A source as a seekable file object, for libraries that read those."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        if at < 0:
            raise OSError(22, "negative seek position")
        self._at = at
        return at

    def read(self, size: int = -1) -> bytes:
        left = max(self._source.size - self._at, 0)
        data = bytes(self._source.read_at(self._at, left if size < 0 else min(size, left))) if left else b""
        self._at += len(data)
        return data

    def readinto(self, target: Any) -> int:
        view = memoryview(target).cast("B")
        left = max(min(self._source.size - self._at, len(view)), 0)
        count = self._source.readinto_at(self._at, view[:left]) if left else 0
        self._at += count
        return count


class _Pieces(io.RawIOBase):
    """Collects what is written to it, without copying large pieces."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.buffers.append(data if isinstance(data, memoryview) else bytes(data))
        return len(data)

    def take(self) -> list[Buffer]:
        """Return the pieces since the last call."""
        pieces, self.buffers = self.buffers, []
        return pieces


def _encode(arrays: dict[str, Any]) -> Iterator[Buffer]:
    pieces = _Pieces()
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(name + _SUFFIX, _DATE)
            with archive.open(info, "w", force_zip64=array.nbytes >= 1 << 31) as member:
                member.write(npy.encode_header(array.dtype.newbyteorder("<"), array.shape))
                if array.nbytes:
                    member.write(elements(array))
            yield from pieces.take()
    yield from pieces.take()


def _open(file: Source) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(SourceFile(file))
    except (
        Exception
    ) as error:  # zipfile raises struct's, OSError, ValueError, NotImplementedError besides its own
        raise FormatError(f"the ZIP file is damaged ({error!s:.100})") from error


def _parse_member(file: Source, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    name = info.filename.removesuffix(_SUFFIX)
    stored = info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1
    if stored:
        local = bytes(file.read_at(info.header_offset, _LOCAL_HEADER))
        lengths = (int.from_bytes(local[at : at + 2], "little") for at in (26, 28))  # of name and extra field
        begin = info.header_offset + _LOCAL_HEADER + sum(lengths)
        head = bytes(file.read_at(begin, min(npy.LARGEST_HEADER, info.file_size)))
    else:
        begin, head = 0, _read_member(archive, info, npy.LARGEST_HEADER)
    dtype, shape, fortran, length = npy.parse_header(head, name)
    offset = begin + length if stored and not fortran and dtype.byteorder != ">" else None
    var_type = to_var_type(dtype, name)
    nbytes = math.prod(shape) * dtype.itemsize
    if length + nbytes != info.file_size or (stored and begin + info.file_size > file.size):
        raise FormatError(
            f"{name!r:.80}: {dtype} {list(shape)} takes {nbytes} bytes, its member has another size"
        )
    return Entry(name, var_type, shape, offset=offset, nbytes=nbytes, payload=(info, length, fortran, dtype))


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int = -1) -> bytes:
    if info.file_size > _MOST_DEFLATED * info.compress_size + 64:
        raise FormatError(
            f"member {info.filename!r:.80} claims {info.file_size} bytes, compressed to "
            f"{info.compress_size}: impossible"
        )
    try:
        with archive.open(info) as member:
            return member.read(size)
    except Exception as error:  # zlib's, struct's and zipfile's own
        raise FormatError(f"member {info.filename!r:.80} is damaged ({error!s:.100})") from error


def to_var_type(dtype: np.dtype[Any], name: str) -> VarType:
    """Return the element type of an array of numpy's.

    Raises FormatError for one that no Paddle variable has. uint16 is one of them, not BF16.
    """
    if dtype.newbyteorder("=") not in _DTYPES:
        raise FormatError(f"{name!r:.80} is an array of {dtype}, which no Paddle variable can be")
    return convert_dtype(dtype)


def deliver(array: Array, into: Array | None) -> LoDTensor:
    """Return the array as a tensor, copied into ``into`` if one is given."""
    if into is None:
        return LoDTensor(array.copy() if not array.flags.writeable else array)
    if into.dtype != array.dtype or into.shape != array.shape:
        raise FormatError(
            f"the file holds {array.dtype} {list(array.shape)}, "
            f"the array to fill is {into.dtype} {list(into.shape)}"
        )
    into[...] = array
    return LoDTensor(into)
