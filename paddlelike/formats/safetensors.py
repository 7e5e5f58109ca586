"""safetensors: a JSON header, then the elements of every tensor.

Specification: https://github.com/huggingface/safetensors (format section of its README)::

    8 bytes   N, the length of the header, little-endian
    N bytes   {"__metadata__": {...}, "NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    the rest  elements, little-endian, C order; offsets count from here, without holes or overlaps

A model of the Hugging Face hub is a folder with ``model.safetensors``. Above 5 GB it has several files, and
``model.safetensors.index.json`` maps names to files. Other files, such as ``config.json``, hold no tensors.

The writer orders the tensors and pads the header like the ``safetensors`` package, so both give the same
bytes. The package itself is not used, since it reads whole files, and numpy does not have its BF16.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from paddlelike.core import TENSOR_DTYPES, VarType, convert_dtype, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.formats.base import SNIFF_BYTES, Capabilities, FileFormat, FolderFormat, Values
from paddlelike.formats.elements import check_shape, view_elements
from paddlelike.formats.entry import Entry, LeftOut, Listing, list_left_out
from paddlelike.formats.sources import Buffer, Folder, Readable, Source, as_source
from paddlelike.lazy import dataclass

_LARGEST_HEADER: Final = 100_000_000  # the specification's limit
_SINGLE: Final = "model.safetensors"
_INDEX: Final = ".index.json"
_METADATA: Final = "__metadata__"

# The possible JSON of a header or an index. Other large JSON is refused before it is parsed: a list of empty
# lists takes 25 times the memory of its text, names and tensors 8 times.
_LARGE: Final = 1 << 20
_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FLAT: Final = rb"\{(?:\s*+%b\s*+:\s*+(?:%b|[-+.\w]++)\s*+,?)*+\s*+\}" % (_TEXT, _TEXT)
_FIELD: Final = rb'\s*+(?:"dtype"\s*+:\s*+%b|"(?:shape|data_offsets)"\s*+:\s*+\[[\s\d,]*+\])\s*+' % _TEXT
_ROW: Final = rb"\{%b,%b,%b\}" % (_FIELD, _FIELD, _FIELD)
_HEADER: Final = re.compile(
    rb'\{(?:\s*+(?:"__metadata__"\s*+:\s*+%b|%b\s*+:\s*+%b)\s*+,?)*+\s*+\}\s*+' % (_FLAT, _TEXT, _ROW)
)
_INDEX_TEXT: Final = re.compile(
    rb"\s*+\{(?:\s*+%b\s*+:\s*+(?:%b|%b|[-+.\w]++)\s*+,?)*+\s*+\}\s*+" % (_TEXT, _FLAT, _TEXT)
)
_NAMES: Final = {row.safetensors: row.var_type for row in TENSOR_DTYPES.values() if row.safetensors}
# the package sorts by its own list of element types, the last first, and then by name
_ORDER: Final = ("BOOL", "U8", "I8", "I16", "U16", "F16", "BF16", "I32", "U32", "F32", "F64", "I64", "U64")


@dataclass(frozen=True)
class Safetensors(FileFormat):
    """A safetensors file. ``metadata`` are pairs of texts that ``write`` puts into the header.

    >>> import numpy as np
    >>> file = b"".join(Safetensors((("made_by", "me"),)).write({"w": np.ones((2, 3), "float32")}))
    >>> print(Safetensors().describe(file))
    a safetensors file: 1 entries, 24 bytes of elements
      w: FP32 [2, 3]
    >>> Safetensors.read_metadata(file)
    {'made_by': 'me'}
    """

    metadata: tuple[tuple[str, str], ...] = ()

    name = "safetensors"
    title = "a safetensors file"
    suffixes = (".safetensors",)
    advice = "convert it with paddlelike.convert, or load its arrays with fluid.load_program_state"
    holds = Capabilities(dtypes=frozenset(_NAMES.values()), order=False)

    def sniff(self, head: bytes, size: int) -> bool:
        length = int.from_bytes(head[:8], "little")
        return len(head) > 8 and head[8:9] == b"{" and 2 <= length <= min(_LARGEST_HEADER, size - 8)

    def refuse_name(self, name: str) -> str | None:
        return "a reserved name, which no tensor can have" if name == _METADATA else super().refuse_name(name)

    def entries(self, source: Readable) -> list[Entry]:
        file = as_source(source)
        header, start = _read_header(file)
        found = [_parse_entry(name, row, start) for name, row in header.items() if name != _METADATA]
        _check_extents(found, start, file.size)
        known = [one for one in found if one.payload is None]
        return Listing(
            known, [LeftOut(one.name, str(one.payload)) for one in found if one.payload is not None]
        )

    def write(self, values: Values) -> Iterator[Buffer]:
        return self._encode(self.take_arrays(values))

    @staticmethod
    def read_metadata(source: Readable) -> dict[str, str]:
        """Return the texts of the header. Raises FormatError when the file is damaged."""
        header, _ = _read_header(as_source(source))
        return {str(key): str(text) for key, text in header.get(_METADATA, {}).items()}

    def _encode(self, arrays: Mapping[str, Any]) -> Iterator[Buffer]:
        names = {
            name: TENSOR_DTYPES[convert_dtype(array.dtype)].safetensors for name, array in arrays.items()
        }
        ordered = sorted(arrays, key=lambda name: (-_ORDER.index(names[name] or ""), name))
        header: dict[str, Any] = {_METADATA: dict(self.metadata)} if self.metadata else {}
        end = 0
        for name in ordered:
            begin, end = end, end + arrays[name].nbytes
            header[name] = {
                "dtype": names[name],
                "shape": list(arrays[name].shape),
                "data_offsets": [begin, end],
            }
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        yield len(text).to_bytes(8, "little") + text
        for name in ordered:
            yield view_elements(arrays[name])


@dataclass(frozen=True)
class SafetensorsFolder(FolderFormat):
    """A folder of safetensors files, as on the Hugging Face hub.

    Attributes
    ----------
    shard_size
        The most bytes of elements in one file; ``write`` begins another file before it has more.
    metadata
        The metadata of each file; readers of the hub expect the name of the system that the tensors come
        from.
    """

    shard_size: int = 5_000_000_000
    metadata: tuple[tuple[str, str], ...] = (("format", "pt"),)

    name = "safetensors_folder"
    title = "a folder of safetensors files"
    advice = "convert it with paddlelike.convert"
    holds = Safetensors.holds

    def sniff(self, folder: Folder) -> bool:
        try:
            if _find_indexes(folder) or not folder.has(_SINGLE):
                return bool(_find_indexes(folder))
            with folder.open_file(_SINGLE) as file:
                return Safetensors().sniff(bytes(file.read_at(0, min(file.size, SNIFF_BYTES))), file.size)
        except FormatError:
            return False
        except OSError as error:
            if error.errno is not None:  # the system refuses to read it, which says nothing of its format
                raise
            return False

    def entries(self, source: Folder) -> list[Entry]:
        indexes = _find_indexes(source)
        if len(indexes) > 1:
            raise FormatError(f"the folder has several indexes: {', '.join(indexes[:5])}")
        files = _read_index(source, indexes[0]) if indexes else {_SINGLE: None}
        found: list[Entry] = []
        left_out: list[LeftOut] = []
        for name, wanted in files.items():
            if not source.has(name):
                raise FormatError(f"{indexes[0]} names {name!r:.80}, which is not in the folder")
            with source.open_file(name) as file:
                held = Safetensors().entries(file)
            left_out += list_left_out(held)
            there = {one.name for one in held} | {one.name for one in list_left_out(held)}
            missing = sorted((wanted or set()) - there)
            if missing:
                raise FormatError(f"{name} has no {missing[0]!r:.80}, which {indexes[0]} expects there")
            found += [one._replace(file=name) for one in held if wanted is None or one.name in wanted]
        return Listing(found, left_out)

    def write(self, values: Values) -> dict[str, Iterator[Buffer]]:
        arrays = Safetensors().take_arrays(values)
        shards: list[dict[str, Any]] = [{}]
        size = 0
        for name, array in arrays.items():
            if shards[-1] and size + array.nbytes > self.shard_size:
                shards.append({})
                size = 0
            shards[-1][name] = array
            size += array.nbytes
        one_file = Safetensors(self.metadata)
        if len(shards) == 1:
            return {_SINGLE: one_file.write(shards[0])}
        files = {f"model-{i:05}-of-{len(shards):05}.safetensors": shard for i, shard in enumerate(shards, 1)}
        index = {
            "metadata": {"total_size": sum(array.nbytes for array in arrays.values())},
            "weight_map": {name: file for file, shard in files.items() for name in shard},
        }
        text = json.dumps(index, indent=2, sort_keys=True) + "\n"
        return {file: one_file.write(shard) for file, shard in files.items()} | {
            _SINGLE + _INDEX: iter([text.encode()])
        }


def _find_indexes(folder: Folder) -> list[str]:
    return [name for name in folder.list_names() if name.endswith(f".safetensors{_INDEX}")]


def _read_index(folder: Folder, name: str) -> dict[str, set[str] | None]:
    """Return the names of the tensors in each file."""
    with folder.open_file(name) as file:
        data = file.read_at(0, min(file.size, _LARGEST_HEADER))
    try:
        if len(data) > _LARGE and _INDEX_TEXT.fullmatch(data) is None:
            raise ValueError("it is more than a map of names")
        weights = json.loads(str(data, "utf-8"), object_pairs_hook=_make_dict)["weight_map"]
        files: dict[str, set[str] | None] = {file: set() for file in sorted(set(weights.values()))}
        for key, file in weights.items():
            held = files[file]
            assert held is not None
            held.add(key)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(f"{name} is not an index of safetensors files ({error!r:.100})") from error
    if outside := [file for file in files if not isinstance(file, str) or "/" in file or "\\" in file]:
        raise FormatError(f"{name} names {outside[0]!r:.80}, which is outside of the folder")
    return files


def _read_header(file: Source) -> tuple[dict[str, Any], int]:
    """Return the header and the offset of the elements."""
    length = int.from_bytes(file.read_at(0, 8), "little")
    if file.size < 10 or length > min(_LARGEST_HEADER, file.size - 8):
        raise FormatError(f"offset 0: the header of {length} bytes reaches beyond the file of {file.size}")
    text = file.read_at(8, length)
    if length > _LARGE and _HEADER.fullmatch(text) is None:
        raise FormatError("offset 8: the header is not JSON of names and tensors, and of nothing else")
    try:
        header = json.loads(str(text, "utf-8"), object_pairs_hook=_make_dict)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"offset 8: the header is not JSON of names and tensors ({error!s:.120})"
        ) from error
    if not isinstance(header, dict) or not isinstance(header.get(_METADATA, {}), dict):
        raise FormatError("offset 8: the header is not a JSON object of names and tensors")
    return header, 8 + length


def _make_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dict. Raises ValueError for a repeated name."""
    if len(made := dict(pairs)) < len(pairs):
        raise ValueError(f"a name is repeated: {[name for name, _ in pairs[:99]]!s:.100}")
    return made


def _parse_entry(name: str, row: Mapping[str, Any], start: int) -> Entry:
    try:
        dtype, shape, (begin, end) = row["dtype"], tuple(row["shape"]), row["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise FormatError(f"{name!r:.80}: the header has no dtype, shape and data_offsets for it") from None
    if not isinstance(dtype, str):
        raise FormatError(f"{name!r:.80} has the element type {dtype!r:.20}")
    if not all(type(number) is int and 0 <= number < 2**62 for number in (*shape, begin, end)):
        raise FormatError(f"{name!r:.80}: shape {row['shape']!r:.80} or offsets that are not whole numbers")
    check_shape(f"{name!r:.80}", shape, 16)
    if dtype not in _NAMES:
        what = f"a tensor of {dtype!s:.20}"  # its bytes count, so that no hole hides
        return Entry(name, VarType.UINT8, (end - begin,), (), start + begin, end - begin, payload=what)
    return Entry(name, VarType(_NAMES[dtype]), shape, offset=start + begin, nbytes=end - begin)


def _check_extents(entries: list[Entry], start: int, size: int) -> None:
    """Raise FormatError unless the elements fill the rest of the file without holes or overlaps."""
    at = start
    for entry in sorted(entries, key=lambda entry: (entry.offset, entry.nbytes)):
        expected = math.prod(entry.shape) * numpy_dtype(entry.dtype).itemsize
        if entry.offset != at or entry.nbytes != expected:
            raise FormatError(
                f"{entry.name!r:.80}: {entry.dtype.name} {list(entry.shape)} takes {expected} bytes from "
                f"offset {at}, the header says {entry.nbytes} from {entry.offset}"
            )
        at += entry.nbytes
    if at != size:
        raise FormatError(f"the tensors end at offset {at}, the file at {size}")
