"""PyTorch's files of a ``state_dict``: read and written without PyTorch.

Since 1.6 ``torch.save`` writes a ZIP file: ``NAME/data.pkl``, a pickle whose tensors refer to storages, and
``NAME/data/KEY``, the elements of each storage (``torch/serialization.py``). Older files are a sequence of
pickles (magic number, protocol, system, object, keys), then each storage as its count (8 bytes) and its
elements. Both forms are read; the newer one is written.

:mod:`paddlelike.formats.state.pickles` reads the pickle and executes nothing. Tensors in dicts, lists and
objects are called by their paths: ``model/0.weight``. Other values are left out and reported by
:class:`~paddlelike.formats.entry.Listing`.
"""

from __future__ import annotations

import math
import pickle
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from paddlelike.core import Array, VarType, convert_dtype, numpy_dtype
from paddlelike.core.views import view_strided
from paddlelike.errors import FormatError
from paddlelike.formats.base import Capabilities, FileFormat, Value, Values
from paddlelike.formats.elements import check_shape, view_elements
from paddlelike.formats.entry import Entry, check_entries, deliver, read_dense
from paddlelike.formats.sources import Buffer, Readable, Source, as_source
from paddlelike.formats.state import pickles
from paddlelike.formats.state.format import describe_array
from paddlelike.formats.state.machine import Reference
from paddlelike.formats.state.nested import Flat, flatten
from paddlelike.formats.state.pickle_writer import encode_text
from paddlelike.formats.state.pickled import Foreign, PickledArray
from paddlelike.formats.zips import Member, find_damage, open_zip, write_zip
from paddlelike.lazy import dataclass

_SLACK: Final = 1 << 12
_MAGIC: Final = 0x1950A86A20F9469CFC6C
_LEGACY: Final = (
    b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M"  # the magic number and the next pickle's begin
)
_STORAGES: Final = {
    "Float": VarType.FP32, "Double": VarType.FP64, "Half": VarType.FP16, "BFloat16": VarType.BF16,
    "Long": VarType.INT64, "Int": VarType.INT32, "Short": VarType.INT16, "Char": VarType.INT8,
    "Byte": VarType.UINT8, "Bool": VarType.BOOL, "ComplexFloat": VarType.COMPLEX64,
    "ComplexDouble": VarType.COMPLEX128,
}  # fmt: skip
_FOREIGN: Final = {
    "QInt8": 1,
    "QUInt8": 1,
    "QInt32": 4,
    "ComplexHalf": 4,
    "Untyped": 1,
}  # bytes of an element
_NAMES: Final = {dtype: f"{name}Storage" for name, dtype in _STORAGES.items()}
_REFERENCES: Final = {
    (module, f"{name}Storage"): Reference(module, f"{name}Storage")
    for module in ("torch", "torch.storage")
    for name in (*_STORAGES, *_FOREIGN)
}


@dataclass(frozen=True)
class _Storage:
    """A storage that a tensor is a view of."""

    key: str
    dtype: VarType | None  # None: no variable has such elements
    size: int  # in elements
    itemsize: int


@dataclass(frozen=True)
class _View:
    """A tensor: a view of some elements of a storage."""

    storage: _Storage
    offset: int  # in elements, as the strides
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    problem: str | None = None  # why no variable can be this tensor

    @property
    def dtype(self) -> VarType:
        """The type of the elements, unless there is a problem."""
        assert self.storage.dtype is not None
        return self.storage.dtype


@dataclass(frozen=True)
class Torch(FileFormat):
    """A file of ``torch.save(module.state_dict(), ...)``."""

    name = "torch"
    title = "a file of torch.save"
    suffixes = (".pt", ".pth")
    advice = "convert it with paddlelike.convert, with rename= for the names of the variables"
    holds = Capabilities()

    def sniff(self, head: bytes, size: int) -> bool:
        length = int.from_bytes(head[26:28], "little")
        return head.startswith(_LEGACY) or (
            head[:4] == b"PK\x03\x04" and head[30 : 30 + length].endswith(b"/data.pkl")
        )

    def entries(self, source: Readable) -> list[Entry]:
        file = as_source(source)
        flat, storages = _read_legacy(file) if bytes(file.read_at(0, 2)) == b"\x80\x02" else _read_zip(file)
        entries = [_describe(name, view, storages) for name, view in flat.arrays.items()]
        return check_entries(entries, file.size, flat.left_out, flat.plain)

    def find_damage(self, source: Readable) -> str | None:
        file = as_source(source)
        return find_damage(file) if bytes(file.read_at(0, 2)) == b"PK" else None

    def read(self, source: Readable, entry: Entry, *, into: Array | None = None) -> Value:
        file = as_source(source)
        if entry.payload is None:
            return read_dense(file, entry, into=into)
        if isinstance(entry.payload, PickledArray):
            return deliver(entry.payload.read(), into)
        begin, view = cast("tuple[int, _View]", entry.payload)
        flat = read_dense(
            file, Entry(entry.name, entry.dtype, (_span(view),), (), begin, _span_bytes(view))
        ).held_array
        assert flat is not None
        strided = view_strided(flat, view.shape, view.strides)
        return deliver(np.ascontiguousarray(strided).reshape(view.shape), into)

    def write(self, values: Values) -> Iterator[Buffer]:
        return _encode(self.take_arrays(values))


# Writing


def _encode(arrays: Mapping[str, Any]) -> Iterator[Buffer]:
    rows = b"".join(
        _encode_row(name, str(index), array) for index, (name, array) in enumerate(arrays.items())
    )
    items = pickle.MARK + rows + pickle.SETITEMS if arrays else b""
    program = pickle.PROTO + b"\x02" + _ORDERED_DICT + items + pickle.STOP
    members: dict[str, list[Buffer]] = {"archive/data.pkl": [program], "archive/byteorder": [b"little"]}
    members |= {
        f"archive/data/{index}": [view_elements(array)] for index, array in enumerate(arrays.values())
    }
    return write_zip(members | {"archive/version": [b"3\n"]})


_ORDERED_DICT: Final = pickle.GLOBAL + b"collections\nOrderedDict\n" + pickle.EMPTY_TUPLE + pickle.REDUCE


def _encode_row(name: str, key: str, array: Array) -> bytes:
    """Encode a name, and the call of ``torch._utils._rebuild_tensor_v2`` that makes its tensor."""
    storage = _NAMES[convert_dtype(array.dtype)]
    strides = [math.prod(array.shape[axis + 1 :]) for axis in range(array.ndim)]
    identifier = (
        pickle.MARK + encode_text("storage") + pickle.GLOBAL + f"torch\n{storage}\n".encode()
        + encode_text(key) + encode_text("cpu") + _encode_count(array.size) + pickle.TUPLE + pickle.BINPERSID
    )  # fmt: skip
    arguments = (
        identifier + _encode_count(0) + _encode_counts(array.shape) + _encode_counts(strides)
        + pickle.NEWFALSE + _ORDERED_DICT
    )  # fmt: skip
    call = (
        pickle.GLOBAL
        + b"torch._utils\n_rebuild_tensor_v2\n"
        + pickle.MARK
        + arguments
        + pickle.TUPLE
        + pickle.REDUCE
    )
    return encode_text(name) + call


def _encode_count(count: int) -> bytes:
    return (
        pickle.BININT + struct.pack("<i", count)
        if count < 1 << 31
        else pickle.LONG1 + b"\x08" + count.to_bytes(8, "little")
    )


def _encode_counts(counts: Iterable[int]) -> bytes:
    return pickle.MARK + b"".join(map(_encode_count, counts)) + pickle.TUPLE


# Reading


def _rebuild_tensor(
    storage: object, offset: int, shape: Sequence[int], strides: Sequence[int], *_: object
) -> _View:
    counts = (offset, *shape, *strides)
    if not isinstance(storage, _Storage) or not all(type(n) is int and 0 <= n < 2**48 for n in counts):
        raise FormatError("a tensor has an invalid storage, shape or strides")
    if len(shape) != len(strides):
        raise FormatError(f"a tensor has shape {shape!r:.80}, but strides {strides!r:.80}")
    check_shape("a tensor", shape, storage.itemsize)
    problem = "a tensor of elements that no Paddle variable has" if storage.dtype is None else None
    view = _View(storage, offset, tuple(shape), tuple(strides), problem)
    if offset + _span(view) > storage.size:
        raise FormatError(f"a tensor of shape {shape!r:.80} exceeds its storage of {storage.size} elements")
    return view


def _rebuild_typed(
    storage: object, offset: int, shape: Sequence[int], strides: Sequence[int], *more: object
) -> _View:
    """Return a tensor of a type without a storage class of its own, such as float8. It is stored as bytes."""
    dtype = more[2] if len(more) > 2 else None
    if not isinstance(storage, _Storage):
        raise FormatError("a tensor has no storage")
    return _View(storage, 0, tuple(shape), (), f"a tensor of {dtype}")


def _rebuild_quantized(storage: object, offset: int, shape: Sequence[int], *_: object) -> _View:
    if not isinstance(storage, _Storage):
        raise FormatError("a tensor has no storage")
    return _View(storage, 0, tuple(shape), (), "a quantized tensor")


def _rebuild_parameter(view: object, *_: object) -> object:
    if not isinstance(view, _View | Foreign):
        raise FormatError("a parameter is not a tensor")
    return view


_CONSTRUCTORS: Final[dict[tuple[str, str], Callable[..., Any]]] = {
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _rebuild_typed,
    ("torch._utils", "_rebuild_qtensor"): _rebuild_quantized,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuild_parameter,
}


def _find_storage(identifier: object) -> _Storage:
    """Return the storage of a persistent id ``("storage", class, key, device, count, ...)``."""
    if not isinstance(identifier, tuple) or len(identifier) < 5 or identifier[0] != "storage":
        raise FormatError("the pickle refers to something that is not a storage")
    reference, key, count = identifier[1], identifier[2], identifier[4]
    name = reference.name.removesuffix("Storage") if isinstance(reference, Reference) else ""
    if (
        name not in {**_STORAGES, **_FOREIGN}
        or not isinstance(key, str)
        or type(count) is not int
        or not 0 <= count < 2**48
    ):
        raise FormatError("a storage has an invalid class, key or count")
    dtype = _STORAGES.get(name)
    return _Storage(key, dtype, count, _FOREIGN[name] if dtype is None else numpy_dtype(dtype).itemsize)


def _span(view: _View) -> int:
    """Return the number of elements of the storage from a tensor's first to its last element."""
    if 0 in view.shape:
        return 0
    return 1 + sum((dim - 1) * stride for dim, stride in zip(view.shape, view.strides, strict=True))


def _span_bytes(view: _View) -> int:
    return _span(view) * view.storage.itemsize


_Tensors = Flat[Any]  # of _View and PickledArray


def _read_zip(file: Source) -> tuple[_Tensors, dict[str, Member]]:
    """Return the tensors by name, and the position of each storage's elements."""
    members = open_zip(file)
    roots = [name.removesuffix("data.pkl") for name in members if name.endswith("/data.pkl")]
    if len(roots) != 1:
        raise FormatError("the ZIP file has no data.pkl, so torch.save has not written it")
    order = members.get(roots[0] + "byteorder")
    if order is not None and bytes(order.read(file)) != b"little":
        raise FormatError("the elements are big-endian")
    data = members[roots[0] + "data.pkl"].read(file)
    (value,), _, _ = _load_pickles(data, 1)
    prefix = roots[0] + "data/"
    found = {name.removeprefix(prefix): member for name, member in members.items() if name.startswith(prefix)}
    return _flatten(value, len(data)), found


def _load_pickles(data: Buffer, count: int) -> tuple[list[Any], int, dict[str, _Storage]]:
    """Return the objects of consecutive pickles, the offset of their end, and their storages by key."""
    storages: dict[str, _Storage] = {}

    def find(identifier: object) -> _Storage:
        found = _find_storage(identifier)
        return storages.setdefault(found.key, found)

    values, at = pickles.load_all(
        data, _REFERENCES, constructors=_CONSTRUCTORS, persistent=find, count=count, foreign=True
    )
    return values, at, storages


def _read_legacy(file: Source) -> tuple[_Tensors, dict[str, Member]]:
    """Return, for a file from before 1.6, the tensors by name and the position of each storage's elements."""
    data = file.read_at(0, file.size)
    (magic, _, _, value, keys), at, by_key = _load_pickles(data, 5)
    if magic != _MAGIC or not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise FormatError(
            "the file begins like a file of torch.save, but has another magic number or no list of keys"
        )
    flat = _flatten(value, at)
    storages = {}
    for key in keys:
        count = int.from_bytes(bytes(data[at : at + 8]), "little")
        storage = by_key.get(key)
        if storage is None:
            raise FormatError(f"the storage {key!r:.40} belongs to no tensor: its element type is not known")
        size = count * storage.itemsize
        if count != storage.size or at + 8 + size > file.size:
            raise FormatError(
                f"offset {at}: the storage {key!r:.40} has {count} elements, expected {storage.size}"
            )
        storages[key] = Member(at + 8, size, size, None)
        at += 8 + size
    return flat, storages


def _flatten(value: object, size: int) -> _Tensors:
    """Return the tensors and arrays in a pickle of ``size`` bytes by path, and its other contents."""
    flat = flatten(value, (_View, PickledArray), _SLACK + size)
    if not isinstance(value, dict) and not flat.arrays:
        raise FormatError(f"the pickle holds a {type(value).__name__}, and no tensor in it")
    return flat


def _describe(name: str, view: _View | PickledArray, storages: Mapping[str, Member]) -> Entry:
    if isinstance(view, PickledArray):
        return describe_array(name, view)
    member = storages.get(view.storage.key)
    itemsize = view.storage.itemsize
    if member is None or member.offset is None or member.size < view.storage.size * itemsize:
        raise FormatError(
            f"{name!r:.80}: the elements of its storage {view.storage.key!r:.40} are missing or compressed"
        )
    begin = member.offset + view.offset * itemsize
    nbytes = math.prod(view.shape) * itemsize
    contiguous = [math.prod(view.shape[axis + 1 :]) for axis in range(len(view.shape))]
    plain = all(dim <= 1 or s == c for dim, s, c in zip(view.shape, view.strides, contiguous, strict=True))
    if plain or nbytes == 0:
        return Entry(name, view.dtype, view.shape, offset=begin, nbytes=nbytes)
    if nbytes > 64 * member.size:
        raise FormatError(f"{name!r:.80}: shape {view.shape} repeats the {member.size} bytes of its storage")
    return Entry(name, view.dtype, view.shape, nbytes=nbytes, payload=(begin, view))
