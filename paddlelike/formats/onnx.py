"""ONNX files as a format of named tensors: the initializers of the model's graph.

Protobuf messages (https://onnx.ai/onnx/repo-docs/IR.html) are parsed field by field, without the package
``onnx`` and without copying the elements::

    ModelProto    1 ir_version   2 producer_name   7 graph   8 opset_import (2 version)
    GraphProto    2 name   5 initializer   12 output
    TensorProto   1 dims   2 data_type   4 5 7 10 11 elements by type   8 name   9 raw_data   14 data_location

A written file is a model without nodes whose outputs are its initializers. It passes ONNX's checker, and
onnxruntime returns all values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, cast

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Array, VarType, convert_dtype, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.formats.base import Capabilities, FileFormat, Value, Values
from paddlelike.formats.elements import check_shape, view_elements
from paddlelike.formats.entry import Entry, LeftOut, Listing, deliver
from paddlelike.formats.sources import Buffer, Readable, Source, as_source
from paddlelike.lazy import dataclass

_LARGEST: Final = (1 << 31) - 1  # bytes: protobuf's limit
_TYPES: Final = {row.onnx: row.var_type for row in TENSOR_DTYPES.values()}
_IR, _OPSET = 8, 17
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_PACKED: Final = {VarType.FP32: 4, VarType.FP64: 10}  # elements that lie there as in memory
_EXTERNAL: Final = 1
# the version, and the tag of another field of a model that is not a list of messages
_HEAD: Final = re.compile(rb"\x08[\x03-\x7f][\x12\x1a\x22\x28\x32\x3a\x42]")


@dataclass(frozen=True)
class OnnxFile(FileFormat):
    """An ONNX file.

    >>> file = b"".join(OnnxFile().write({"w": np.ones((2, 3), "float32")}))
    >>> print(OnnxFile().describe(file))
    an ONNX model: 1 entries, 24 bytes of elements
      w: FP32 [2, 3]
    """

    name = "onnx"
    title = "an ONNX model"
    suffixes = (".onnx",)
    advice = "open the model with paddlelike.import_onnx, or convert its values with paddlelike.convert"
    holds = Capabilities()

    def sniff(self, head: bytes, size: int) -> bool:
        return bool(_HEAD.match(head)) and size > len(head[:3])

    def entries(self, source: Readable) -> list[Entry]:
        file = as_source(source)
        found: dict[str, Entry] = {}
        left_out = []
        for start, end in _find_graphs(file):
            for field in _walk(file, start, end):
                if (field.number, field.kind) != (5, _BYTES):
                    continue
                entry = _read_tensor(file, field)
                if isinstance(entry, LeftOut):
                    left_out.append(entry)
                    continue
                if entry.name in found:
                    raise FormatError(f"two initializers are called {entry.name!r:.80}")
                found[entry.name] = entry
        return Listing(found.values(), left_out)

    def read(self, source: Readable, entry: Entry, *, into: Array | None = None) -> Value:
        if entry.offset is not None:
            return super().read(source, entry, into=into)
        if entry.payload is None:
            raise FormatError(
                f"{entry.name!r:.80}: its elements are in another file",
                hint="open the model with paddlelike.import_onnx, which reads files beside it",
            )
        return deliver(_decode(as_source(source), entry), into)

    def write(self, values: Values) -> Iterator[Buffer]:
        arrays = self.take_arrays(values)
        total = sum(array.nbytes for array in arrays.values())
        if total > _LARGEST - (1 << 20):
            raise FormatError(f"{total} bytes of elements: a file of ONNX has at most {_LARGEST}")
        return _encode(arrays)


# Reading


class _Field(NamedTuple):
    """A field of a message: a number, or the position of its bytes."""

    number: int
    kind: int
    value: int  # of a varint
    start: int
    end: int


def _read_varint(file: Source, at: int, end: int) -> tuple[int, int]:
    """Return a number and the offset after it."""
    data = bytes(file.read_at(at, min(10, end - at)))
    number = 0
    for index, byte in enumerate(data):
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return number, at + index + 1
    raise FormatError(f"offset {at}: a number does not end")


def _walk(file: Source, at: int, end: int) -> Iterator[_Field]:
    """Yield the fields of a message. Raises FormatError if one extends beyond the end."""
    while at < end:
        begin = at
        tag, at = _read_varint(file, at, end)
        number, kind, value, start = tag >> 3, tag & 7, 0, at
        if kind == _VARINT:
            value, at = _read_varint(file, at, end)
        elif kind == _BYTES:
            length, start = _read_varint(file, at, end)
            at = start + length
        elif kind in (_FIXED32, _FIXED64):
            at += 4 if kind == _FIXED32 else 8
        else:
            raise FormatError(f"offset {begin}: a field has kind {kind}, which ONNX does not have")
        if at > end or not number:
            raise FormatError(f"offset {begin}: field {number} ends at byte {at}, but its message at {end}")
        yield _Field(number, kind, value, start, at)


def _find_graphs(file: Source) -> list[tuple[int, int]]:
    fields = list(_walk(file, 0, file.size))
    graphs = [(one.start, one.end) for one in fields if (one.number, one.kind) == (7, _BYTES)]
    if not graphs or not any((one.number, one.kind) == (8, _BYTES) for one in fields):
        raise FormatError("no graph, or no operator set: the file was truncated, or is another kind of file")
    return graphs


def _read_tensor(file: Source, tensor: _Field) -> Entry | LeftOut:
    dims: list[int] = []
    parts: dict[int, _Field] = {}
    for field in _walk(file, tensor.start, tensor.end):
        if field.number == 1 and field.kind == _BYTES:
            at = field.start
            while at < field.end:
                dim, at = _read_varint(file, at, field.end)
                dims.append(dim)
        elif field.number == 1:
            dims.append(field.value)
        else:
            parts[field.number] = field
    name = _read_name(file, parts.get(8))
    code = parts[2].value if 2 in parts else 0
    if code not in _TYPES:
        return LeftOut(name, f"a tensor of ONNX type {code}")
    dtype, shape = _TYPES[code], tuple(dims)
    check_shape(f"{name!r:.80}", shape, numpy_dtype(dtype).itemsize)
    nbytes = math.prod(shape) * numpy_dtype(dtype).itemsize
    if 14 in parts and parts[14].value == _EXTERNAL:
        return Entry(name, dtype, shape, nbytes=nbytes)
    held = parts.get(9, parts.get(_PACKED.get(dtype, 9)))
    if held is None and dtype not in _PACKED:
        return _find_numbers(name, dtype, shape, nbytes, parts)
    if held is None or held.kind != _BYTES:
        held = _Field(9, _BYTES, 0, tensor.start, tensor.start)
    if held.end - held.start != nbytes:
        there = held.end - held.start
        raise FormatError(
            f"{name!r:.80}: {dtype.name} {list(shape)} takes {nbytes} bytes, the file has {there}"
        )
    return Entry(name, dtype, shape, offset=held.start, nbytes=nbytes)


def _read_name(file: Source, field: _Field | None) -> str:
    if field is None or field.kind != _BYTES:
        return ""
    if field.end - field.start > 1 << 16:
        raise FormatError(
            f"offset {field.start}: a name has {field.end - field.start} bytes, expected at most {1 << 16}"
        )
    try:
        return str(bytes(file.read_at(field.start, field.end - field.start)), "utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(f"offset {field.start}: a name is not text: {error}") from None


def _find_numbers(
    name: str, dtype: VarType, shape: tuple[int, ...], nbytes: int, parts: Mapping[int, _Field]
) -> Entry:
    """Return the entry of a tensor whose elements are varints, one to ten bytes each."""
    held = parts.get(7 if dtype == VarType.INT64 else 5)
    count, size = math.prod(shape), 0 if held is None else held.end - held.start
    if dtype in (VarType.COMPLEX64, VarType.COMPLEX128) or not count <= size <= 10 * count:
        raise FormatError(
            f"{name!r:.80}: {dtype.name} {list(shape)} of {count} elements, the file has {size} bytes"
        )
    return Entry(name, dtype, shape, nbytes=nbytes, payload=(held.start, held.end) if held else (0, 0))


def _decode(file: Source, entry: Entry) -> Array:
    at, end = cast("tuple[int, int]", entry.payload)
    numbers = []
    while at < end:
        number, at = _read_varint(file, at, end)
        numbers.append(number & (1 << 64) - 1)
    dtype = numpy_dtype(entry.dtype)
    if len(numbers) != math.prod(entry.shape):
        raise FormatError(f"{entry.name!r:.80}: {len(numbers)} elements for shape {list(entry.shape)}")
    whole = np.array(numbers, np.uint64)
    plain = (
        whole.astype(np.uint16).view(dtype) if dtype == np.float16 else whole.astype(np.int64).astype(dtype)
    )
    return plain.reshape(entry.shape)


# Writing


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _prefix(field: int, size: int) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(size)


def _bytes(field: int, data: bytes) -> bytes:
    return _prefix(field, len(data)) + data


def _encode(arrays: Mapping[str, Array]) -> Iterator[Buffer]:
    heads, tails = [], []
    for name, array in arrays.items():
        code, text = TENSOR_DTYPES[convert_dtype(array.dtype)].onnx, name.encode()
        dims = b"".join(_varint(dim) for dim in array.shape)
        head = (
            (_bytes(1, dims) if dims else b"") + _number(2, code) + _bytes(8, text) + _prefix(9, array.nbytes)
        )
        heads.append(_prefix(5, len(head) + array.nbytes) + head)
        shape = b"".join(_bytes(1, _number(1, dim)) for dim in array.shape)
        tails.append(_bytes(12, _bytes(1, text) + _bytes(2, _bytes(1, _number(1, code) + _bytes(2, shape)))))
    title = _bytes(2, b"values")
    size = len(title) + sum(map(len, heads)) + sum(map(len, tails))
    size += sum(array.nbytes for array in arrays.values())
    yield _number(1, _IR) + _bytes(2, b"paddlelike") + _prefix(7, size) + title
    for head, array in zip(heads, arrays.values(), strict=True):
        yield head
        yield view_elements(array)
    yield b"".join(tails) + _bytes(8, _bytes(1, b"") + _number(2, _OPSET))
