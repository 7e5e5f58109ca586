"""ZIP files of arrays: find the members' bytes in a source, and write large pieces without copying them.

Specification: PKZIP's APPNOTE; the standard library's ``zipfile`` is used. Stored members are read in place,
deflated ones unpacked. A member may not claim more bytes than deflate can hold.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from paddlelike.errors import FormatError
from paddlelike.formats.elements import check_total
from paddlelike.formats.sources import Buffer, Source

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_DATE: Final = (1980, 1, 1, 0, 0, 0)  # equal values give equal bytes
_LOCAL_HEADER: Final = 30
_END: Final = 22  # bytes of the end record without its comment
_END_64: Final = 20 + 56  # and of what is before it where the file is large: the locator and its record
_FLAGS: Final = 0x801  # encrypted, and names in UTF-8
_SIZES_LATER: Final = 8  # the flag of a member whose sizes follow its bytes
_MOST_DEFLATED: Final = 1100  # deflate makes no data smaller than by this factor
_LARGE: Final = 1 << 31
_PIECE: Final = 1 << 20  # bytes that are compared at a time


class Member(NamedTuple):
    """A member of a ZIP file.

    Attributes
    ----------
    offset
        The place where its bytes begin in the file. None means that they are compressed.
    begin
        The place where its bytes begin, compressed or not.
    size, stored_size
        The number of its bytes, unpacked and as stored in the file.
    info
        Its row of the ZIP directory; None for bytes that are in no ZIP file.
    """

    offset: int | None
    size: int
    stored_size: int
    info: zipfile.ZipInfo | None
    begin: int = 0

    def read(self, file: Source, size: int | None = None) -> bytes:
        """Return the bytes of the member, or the first ``size``. Raises FormatError when they are damaged."""
        wanted = self.size if size is None else min(size, self.size)
        if self.offset is not None:
            return bytes(file.read_at(self.offset, wanted))
        assert self.info is not None
        if self.info.compress_type != zipfile.ZIP_DEFLATED:
            raise FormatError(
                f"member {self.info.filename!r:.80} is not packed by deflate: pack it again with zip"
            )
        enough = min(self.stored_size, 2 * wanted + _PIECE) if wanted < self.size else self.stored_size
        try:
            packed = file.read_at(self.begin, enough)
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, max(wanted, 1))  # 0: all of them
        except zlib.error as error:
            raise FormatError(f"member {self.info.filename!r:.80} is damaged ({error!s:.100})") from error
        if len(data) != wanted or (wanted == self.size and zlib.crc32(data) != self.info.CRC):
            raise FormatError(f"member {self.info.filename!r:.80} is damaged: its size or CRC-32 differs")
        return data


def open_zip(file: Source, *, doubled: bool = False) -> dict[str, Member]:
    """Return the members by name, in the order of the file.

    Raises FormatError for a damaged file, an encrypted member, a size that is impossible or too large to
    unpack, and for two members of one name (with ``doubled`` the second one is called ``NAME (2)`` instead).
    The entries of the central directory are compared with the count in the end record and with the header
    before each member, so that damage cannot drop or rename a member.
    """
    found: dict[str, Member] = {}
    with _open_archive(file) as archive:
        infos = archive.infolist()
        count = _read_count(file, file.size - _END - len(archive.comment))
        if count != len(infos):
            raise FormatError(
                f"the ZIP file's directory is damaged: it lists {len(infos)} of {count} members"
            )
        check_sizes(infos, file.size)
        counts: dict[str, int] = {}
        for info in infos:
            count = counts[info.filename] = counts.get(info.filename, 0) + 1
            if count > 1 and not doubled:
                raise FormatError(f"two members have the name {info.filename!r:.80}")
            found[info.filename if count == 1 else f"{info.filename} ({count})"] = _locate(file, info)
    return found


def check_sizes(infos: Iterable[zipfile.ZipInfo], size: int) -> None:
    """Raise FormatError for members that do not fit into a file of ``size`` bytes or look malicious."""
    unpacked = 0
    for info in infos:
        if info.compress_type == zipfile.ZIP_STORED:
            continue
        if info.file_size > _MOST_DEFLATED * info.compress_size + 64:
            raise FormatError(
                f"member {info.filename!r:.80} claims {info.file_size} bytes, compressed to "
                f"{info.compress_size}: impossible"
            )
        unpacked += info.file_size
    check_total(unpacked, size)


def find_damage(file: Source) -> str | None:
    """Return an uncompressed member that does not match its CRC-32, or None if all match. Others are checked
    when unpacked.

    Raises FormatError as :func:`open_zip` does.
    """
    for name, member in open_zip(file, doubled=True).items():
        if member.offset is None or member.info is None:
            continue
        found = 0
        for at in range(0, member.size, _PIECE):
            piece = file.read_at(member.offset + at, min(_PIECE, member.size - at))
            found = zlib.crc32(piece, found)
        if found != member.info.CRC:
            was = f"{member.info.CRC:08x}"
            return f"member {name!r:.80} is damaged: its CRC-32 is {found:08x}, the ZIP file says {was}"
    return None


def write_zip(members: Mapping[str, Iterable[Buffer]]) -> Iterator[Buffer]:
    """Yield the bytes of a ZIP file with uncompressed members; large buffers are not copied."""
    pieces = _Pieces()
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, buffers in members.items():
            parts = list(buffers)
            large = sum(len(part) for part in parts) >= _LARGE
            with archive.open(zipfile.ZipInfo(name, _DATE), "w", force_zip64=large) as member:
                for part in parts:
                    if len(part):
                        member.write(part)
            yield from pieces.take()
    yield from pieces.take()


class SourceFile(io.RawIOBase):
    """A source as a seekable file object, for libraries that read file objects."""

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

    def readinto(self, target: WriteableBuffer) -> int:
        view = memoryview(target).cast("B")
        left = max(min(self._source.size - self._at, len(view)), 0)
        count = self._source.readinto_at(self._at, view[:left]) if left else 0
        self._at += count
        return count


class _Pieces(io.RawIOBase):
    """A file object that collects written bytes without copying large pieces."""

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        piece = data if isinstance(data, memoryview) else bytes(data)
        self._buffers.append(piece)
        return len(piece)

    def take(self) -> list[Buffer]:
        """Return the pieces since the last call."""
        pieces, self._buffers = self._buffers, []
        return pieces


def _open_archive(file: Source) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(SourceFile(file))
    except Exception as error:  # zipfile raises struct's, OSError, ValueError and others besides its own
        raise FormatError(f"the ZIP file is damaged ({error!s:.100})") from error


def _read_count(file: Source, at: int) -> int:
    """Return the number of members in the end record at an offset."""
    count = int.from_bytes(file.read_at(at + 10, 2), "little")
    if count < 0xFFFF or at < _END_64:
        return count
    large = bytes(file.read_at(at - _END_64, 56))
    return int.from_bytes(large[32:40], "little") if large[:4] == b"PK\x06\x06" else count


def _locate(file: Source, info: zipfile.ZipInfo) -> Member:
    """Return a member, after comparing its directory entry with the header before its bytes."""
    if info.flag_bits & 1:
        raise FormatError(f"member {info.filename!r:.80} is encrypted")
    local = bytes(file.read_at(info.header_offset, _LOCAL_HEADER))
    flags, method = (int.from_bytes(local[at : at + 2], "little") for at in (6, 8))
    sums = tuple(int.from_bytes(local[at : at + 4], "little") for at in (14, 18, 22))  # CRC-32 and sizes
    name, extra = (int.from_bytes(local[at : at + 2], "little") for at in (26, 28))  # the lengths
    begin = info.header_offset + _LOCAL_HEADER + name + extra
    if local[:4] != b"PK\x03\x04" or begin + info.compress_size > file.size:
        raise FormatError(
            f"member {info.filename!r:.80} is cut: {info.compress_size} bytes from offset {begin}"
        )
    held = bytes(file.read_at(info.header_offset + _LOCAL_HEADER, name))
    if held not in (info.orig_filename.encode("utf-8"), info.orig_filename.encode("cp437", "replace")):
        raise FormatError(f"member {info.filename!r:.80} is called {held!r:.80} in its own header")
    said = info.CRC, info.compress_size, info.file_size
    sizes_here = not flags & _SIZES_LATER and 0xFFFFFFFF not in sums[1:]
    if (
        method != info.compress_type
        or (flags ^ info.flag_bits) & _FLAGS
        or (sizes_here and sums != said)
        or (method == zipfile.ZIP_STORED and info.compress_size != info.file_size)
    ):
        raise FormatError(
            f"member {info.filename!r:.80} is damaged: the ZIP file's directory differs from it"
        )
    offset = begin if method == zipfile.ZIP_STORED else None
    return Member(offset, info.file_size, info.compress_size, info, begin)
