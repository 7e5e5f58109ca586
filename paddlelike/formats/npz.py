"""npz: a ZIP file of NPY arrays, as ``numpy.savez`` writes it; also Theano's bundles, which add a pickle.

Specification: numpy.lib.format for NPY, PKZIP's APPNOTE for ZIP, ``theano/misc/pkl_utils.py`` for bundles.
Uncompressed members are read in place; compressed members (``numpy.savez_compressed``) are unpacked. Arrays
that cannot be variables (objects, texts, uint16) are left out.
"""

from __future__ import annotations

import math
import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Array, VarType, convert_dtype
from paddlelike.errors import FormatError
from paddlelike.formats import npy
from paddlelike.formats.base import Capabilities, FileFormat, Value, Values
from paddlelike.formats.elements import view_elements
from paddlelike.formats.entry import Entry, LeftOut, Listing, check_entries, deliver, read_dense
from paddlelike.formats.sources import Buffer, Readable, Source, as_source
from paddlelike.formats.state.pickle_writer import encode_text
from paddlelike.formats.zips import Member, find_damage, open_zip, write_zip
from paddlelike.lazy import dataclass

_SUFFIX: Final = ".npy"
_PICKLE: Final = "pkl"  # the member of a bundle with its pickle
_NO_NUMBERS: Final = {
    "O": "objects", "[": "records", "V": "records", "U": "texts", "S": "texts", "a": "texts", "M": "dates",
    "m": "times",
}  # fmt: skip
_BEFORE: Final = 1 << 12  # an array of a GPU begins with a small pickle
_DTYPES: Final = {row.numpy for row in TENSOR_DTYPES.values() if row.var_type != VarType.BF16}


@dataclass(frozen=True)
class Npz(FileFormat):
    """An ``.npz`` file; names are the member names without ``.npy``."""

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
        held = open_zip(file)
        members = {name.removesuffix(_SUFFIX): one for name, one in held.items()}
        if len(members) < len(held):
            doubled = sorted(name for name in members if name + _SUFFIX in held and name in held)
            raise FormatError(f"several arrays have the same name: {doubled[:5]}")
        return _list_members(file, members)

    def find_damage(self, source: Readable) -> str | None:
        return find_damage(as_source(source))

    def read(self, source: Readable, entry: Entry, *, into: Array | None = None) -> Value:
        file = as_source(source)
        if entry.offset is not None:
            return read_dense(file, entry, into=into)
        member, length, fortran, dtype = cast("tuple[Member, int, bool, np.dtype[Any]]", entry.payload)
        data = member.read(file)[length:]
        if len(data) != entry.nbytes:
            raise FormatError(f"{entry.name!r} takes {entry.nbytes} bytes, its member has {len(data)}")
        array = np.frombuffer(data, dtype).reshape(entry.shape, order="F" if fortran else "C")
        return deliver(np.ascontiguousarray(array, dtype.newbyteorder("=")).reshape(entry.shape), into)

    def refuse_name(self, name: str) -> str | None:
        return "a name with a NUL, where a ZIP file cuts it" if "\0" in name else super().refuse_name(name)

    def write(self, values: Values) -> Iterator[Buffer]:
        return _encode(self.take_arrays(values))


@dataclass(frozen=True)
class TheanoBundle(Npz):
    """The arrays of a bundle of Theano; the pickle is not opened. Written bundles load as a dict of arrays.

    `` (2)`` is added to the name of a second member; members that are not arrays of numbers are left out.
    """

    name = "theano"
    title = "a bundle of Theano (a ZIP of arrays and a pickle)"
    suffixes = (".zip",)
    advice = "load it with paddlelike.bundle.load, or convert it with paddlelike.convert"

    def sniff(self, head: bytes, size: int) -> bool:
        name, extra = (int.from_bytes(head[at : at + 2], "little") for at in (26, 28))  # the lengths
        begin = 30 + name + extra
        filename = head[30 : 30 + name]
        if head[:4] != b"PK\x03\x04" or filename.endswith(_SUFFIX.encode()):
            return False
        data = head[begin:]
        if head[8:10] == b"\x08\x00":  # deflated
            try:
                data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, _BEFORE)
            except zlib.error:
                return False
        return filename == _PICKLE.encode() or npy.MAGIC in data[:_BEFORE]

    def refuse_name(self, name: str) -> str | None:
        if name == _PICKLE or name.endswith(_SUFFIX):
            return (
                f"a name that means something else in a bundle ({_PICKLE!r} is its pickle, .npy is dropped)"
            )
        return super().refuse_name(name)

    def entries(self, source: Readable) -> list[Entry]:
        file = as_source(source)
        members = {name: one for name, one in open_zip(file, doubled=True).items() if name != _PICKLE}
        return _list_members(file, members, _BEFORE)

    def write(self, values: Values) -> Iterator[Buffer]:
        arrays = self.take_arrays(values)
        items = b"".join(
            encode_text(name) + encode_text(f"ndarray.{name}") + pickle.BINPERSID for name in arrays
        )
        program = pickle.EMPTY_DICT + pickle.MARK + items + pickle.SETITEMS + pickle.STOP
        return _encode(arrays, "", {_PICKLE: [pickle.PROTO + b"\x02" + program]})


def _encode(
    arrays: dict[str, Any], suffix: str = _SUFFIX, others: Mapping[str, Iterable[Buffer]] | None = None
) -> Iterator[Buffer]:
    members: dict[str, Iterable[Buffer]] = {
        name + suffix: [npy.encode_header(array.dtype.newbyteorder("<"), array.shape), view_elements(array)]
        for name, array in arrays.items()
    }
    return write_zip(members | dict(others or {}))


def _list_members(file: Source, members: Mapping[str, Member], before: int = 0) -> Listing:
    """Return the entries of the members. Their NPY files may begin up to ``before`` bytes into the member."""
    found, left_out = [], []
    for name, member in members.items():
        head = member.read(file, before + npy.LARGEST_HEADER)
        begin = head.find(npy.MAGIC, 0, before + len(npy.MAGIC))
        problem = "not an array" if begin < 0 else _find_problem(head[begin:], name)
        if problem is None:
            found.append(_parse_member(file, name, member, begin))
        else:
            left_out.append(LeftOut(name, problem))
    return check_entries(found, file.size, left_out)


def _find_problem(head: bytes, name: str) -> str | None:
    """Return why an array cannot be a variable, or None if it can."""
    kind = _NO_NUMBERS.get(npy.find_kind(head))
    if kind is not None:
        return f"an array of {kind}"
    dtype = npy.parse_header(head, name).dtype
    return None if is_held(dtype) else f"an array of {dtype}"


def _parse_member(file: Source, name: str, member: Member, begin: int = 0) -> Entry:
    """Return the entry of a member whose NPY file begins at ``begin``."""
    head = member.read(file, begin + npy.LARGEST_HEADER)[begin:]
    dtype, shape, fortran, header = npy.parse_header(head, name)
    length = begin + header
    in_place = member.offset is not None and not fortran and dtype.byteorder != ">"
    offset = (member.offset or 0) + length if in_place else None
    nbytes = math.prod(shape) * dtype.itemsize
    if length + nbytes != member.size:
        raise FormatError(
            f"{name!r:.80}: {dtype} {list(shape)} takes {nbytes} bytes, its member has another size"
        )
    return Entry(
        name,
        convert_dtype(dtype),
        shape,
        offset=offset,
        nbytes=nbytes,
        payload=(member, length, fortran, dtype),
    )


def is_held(dtype: np.dtype[Any]) -> bool:
    """Return whether a variable can have elements of a numpy dtype: not of uint16, which stands for BF16."""
    return dtype.newbyteorder("=") in _DTYPES
