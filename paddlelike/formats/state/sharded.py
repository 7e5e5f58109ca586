"""The directory that ``paddle.distributed.save_state_dict`` writes: pieces of tensors from several processes.

``ID.metadata`` is a pickle with the file and the position of each piece. ``RANK_ID.distcp`` is a pickle of
one process's pieces by the keys of the tensors; ``RANK_ID.safetensors`` is the same as a safetensors file. A
second checkpoint in a directory has a higher ID; the highest is read. Tensors of nested dicts are called by
their paths: ``model/weight``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, Final, NamedTuple, cast

import numpy as np

from paddlelike.core import Array, VarType, convert_dtype, memory, numpy_dtype
from paddlelike.errors import FormatError
from paddlelike.formats.base import Capabilities, FolderFormat, Value, Values
from paddlelike.formats.elements import check_shape
from paddlelike.formats.entry import Entry, LeftOut, Listing, deliver, free_name
from paddlelike.formats.safetensors import Safetensors
from paddlelike.formats.sources import Buffer, Folder
from paddlelike.formats.state import pickles
from paddlelike.formats.state.format import decode, describe_array, encode
from paddlelike.formats.state.pickle_writer import Instance, Reference, encode_plain
from paddlelike.formats.state.pickled import Foreign, PickledArray
from paddlelike.lazy import dataclass

_METADATA: Final = re.compile(r"(\d{1,18})\.metadata")
_MODULE: Final = "paddle.distributed.flex_checkpoint.dcp.metadata"
_FILE: Final = "0_0.distcp"


class _Piece(NamedTuple):
    """A part of a tensor: a box or, with ``span``, a range of the flattened box."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]
    span: tuple[int, int] | None
    file: str
    array: PickledArray | Entry

    @property
    def ends(self) -> tuple[int, int]:
        return (0, math.prod(self.shape)) if self.span is None else self.span

    @property
    def size(self) -> int:
        return self.ends[1] - self.ends[0]


@dataclass(frozen=True)
class PaddleDistributed(FolderFormat):
    """A checkpoint of ``paddle.distributed.save_state_dict``; ``write`` makes one piece of each tensor."""

    name = "paddle_distributed"
    title = "a checkpoint of paddle.distributed"
    advice = "convert it with paddlelike.convert; paddle.distributed.load_state_dict reads it"
    holds = Capabilities()

    def sniff(self, folder: Folder) -> bool:
        try:
            names = [name for name in folder.list_names() if _METADATA.fullmatch(name)]
            if not names:
                return False
            with folder.open_file(names[0]) as file:
                return b"paddle.distributed." in bytes(file.read_at(0, 64))
        except FormatError:
            return False
        except OSError as error:
            if error.errno is not None:  # the system refuses to read it, which says nothing of its format
                raise
            return False

    def is_part(self, name: str) -> bool:
        return _METADATA.fullmatch(name) is not None

    def entries(self, source: Folder) -> list[Entry]:
        found = {int(one[1]): one[0] for name in source.list_names() if (one := _METADATA.fullmatch(name))}
        if not found:
            raise FormatError("there is no ID.metadata")
        name = found.pop(max(found))
        left_out = [LeftOut(other, "an earlier checkpoint") for other in found.values()]
        with source.open_file(name) as file:
            held = pickles.load(file.read_at(0, file.size), foreign=True)
        try:
            return _list_entries(_get_parts(held), source, left_out)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            if isinstance(error, FormatError):
                raise
            raise FormatError(f"{name} does not list the positions of the pieces ({error!r:.200})") from error

    def read(self, source: Folder, entry: Entry, *, into: Array | None = None) -> Value:
        pieces = cast("list[_Piece]", entry.payload)
        whole = memory.empty(entry.shape, numpy_dtype(entry.dtype))
        covered = np.zeros(entry.shape if len(pieces) > 1 else (), bool)
        for box, parts in _group(pieces).items():
            arrays = [self._read_piece(source, part) for part in parts]
            where = tuple(slice(at, at + dim) for at, dim in zip(*box, strict=True))
            whole[where] = (arrays[0] if len(arrays) == 1 else np.concatenate(arrays)).reshape(box[1])
            covered[where if covered.ndim else ()] = True
        if not covered.all():
            raise FormatError(f"{entry.name!r:.80}: its pieces leave a gap")
        return deliver(whole, into)

    def _read_piece(self, source: Folder, piece: _Piece) -> Array:
        if isinstance(piece.array, PickledArray):
            return piece.array.read().reshape(-1)
        with source.open_file(piece.file) as file:
            array = Safetensors().read(file, piece.array).held_array
        assert array is not None
        return array.reshape(-1)

    def write(self, values: Values) -> dict[str, Iterable[Buffer]]:
        arrays = self.take_arrays(values)
        keys: dict[str, str] = {}
        for name in arrays:
            keys[free_name(name.replace("/", "."), keys)] = name
        tensors, files = {}, {}
        for key, name in keys.items():
            shape = arrays[name].shape
            dtype = convert_dtype(arrays[name].dtype)
            shown = "bfloat16" if dtype == VarType.BF16 else numpy_dtype(dtype).name
            where = {"global_offset": (0,) * len(shape), "is_flattened": False, "flattened_range": None}
            box = {**where, "local_shape": shape}
            tensors[key] = [_make("LocalTensorMetadata", {**box, "dtype": shown, "global_shape": shape})]
            files[_make("LocalTensorIndex", {**box, "tensor_key": key, "replica_id": None})] = _FILE
        paths = {key: tuple(name.split("/")) for key, name in keys.items()}
        parts = {"state_dict_metadata": tensors, "storage_metadata": files, "flat_mapping": paths}
        return {
            "0.metadata": [encode_plain(_make("Metadata", parts))],
            _FILE: encode({key: arrays[name] for key, name in keys.items()}),
        }


def _make(kind: str, state: dict[str, Any]) -> Instance:
    return Instance(Reference(_MODULE, kind), state)


def _get_parts(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Foreign):
        raise TypeError(f"expected the description of an object, got a {type(value).__name__}")
    return value.parts


def _get_dims(value: Iterable[Any]) -> tuple[int, ...]:
    return tuple(map(index, value))


def _group(pieces: list[_Piece]) -> dict[tuple[tuple[int, ...], tuple[int, ...]], list[_Piece]]:
    """Return the pieces of each box, by the box's offset and shape, in the order of their elements."""
    boxes: dict[tuple[tuple[int, ...], tuple[int, ...]], list[_Piece]] = {}
    for piece in pieces:
        boxes.setdefault((piece.offset, piece.shape), []).append(piece)
    return {box: sorted(parts, key=lambda part: part.ends) for box, parts in boxes.items()}


def _list_entries(held: Mapping[str, Any], source: Folder, left_out: list[LeftOut]) -> Listing:
    """Return the tensors of a checkpoint, each with its pieces."""
    boxes = {
        (key, tuple(one["global_offset"]), one.get("flattened_range")): one
        for key, some in held["state_dict_metadata"].items()
        for one in map(_get_parts, some)
    }
    files = _Files(source)
    wholes: dict[str, Iterable[int] | None] = {}
    for (key, *_), box in boxes.items():
        wholes.setdefault(key, box.get("global_shape"))
    pieces: dict[str, dict[Any, _Piece]] = {key: {} for key in held["state_dict_metadata"]}
    for position, file in held["storage_metadata"].items():
        one = _get_parts(position)
        key, offset, span = one["tensor_key"], _get_dims(one["global_offset"]), one.get("flattened_range")
        shape = _get_dims(boxes[key, offset, span]["local_shape"])
        array = files.find(file, key)
        if isinstance(array, str):
            left_out.append(LeftOut(key, array))
            pieces.pop(key, None)
        elif key in pieces:
            pieces[key].setdefault((offset, span), _Piece(offset, shape, span, file, array))
    paths = held.get("flat_mapping") or {}
    entries: dict[str, Entry] = {}
    for key, parts in pieces.items():
        name = free_name("/".join(map(str, paths.get(key, (key,)))), entries)
        entries[name] = _join(name, list(parts.values()), wholes.get(key))
    return Listing(entries.values(), [*left_out, *files.list_rest()])


def _join(name: str, pieces: list[_Piece], whole: Iterable[int] | None) -> Entry:
    """Return the entry of a tensor. Raises FormatError unless its pieces together have all its elements."""
    facts = [describe_array(name, p.array) if isinstance(p.array, PickledArray) else p.array for p in pieces]
    ends = [[at + dim for at, dim in zip(p.offset, p.shape, strict=True)] for p in pieces]
    shape = tuple(max(some) for some in zip(*ends, strict=True)) if whole is None else _get_dims(whole)
    check_shape(f"{name!r:.80}", shape, 16)
    for piece, fact, end in zip(pieces, facts, ends, strict=True):
        inside = min(piece.offset, default=0) >= 0 and all(a <= b for a, b in zip(end, shape, strict=True))
        if not inside or math.prod(fact.shape) != piece.size or fact.dtype != facts[0].dtype:
            raise FormatError(
                f"{name!r:.80}: {piece.file} has {fact.dtype.name} {list(fact.shape)}, where elements "
                f"{list(piece.offset)} to {end} of {facts[0].dtype.name} {list(shape)} should be"
            )
    for (offset, dims), parts in _group(pieces).items():
        check_shape(f"{name!r:.80}", dims, 16)
        if [0, *(p.ends[1] for p in parts)] != [*(p.ends[0] for p in parts), math.prod(dims)]:
            raise FormatError(
                f"{name!r:.80}: the box {list(dims)} at {list(offset)} has elements "
                + ", ".join(f"{p.ends[0]} to {p.ends[1]}" for p in parts[:9])
            )
    count = sum(piece.size for piece in pieces)
    if not pieces or count != math.prod(shape):
        raise FormatError(
            f"{name!r:.80}: its {len(pieces)} pieces have {count} of {math.prod(shape)} elements"
        )
    nbytes = count * numpy_dtype(facts[0].dtype).itemsize
    return Entry(name, facts[0].dtype, shape, nbytes=nbytes, file=pieces[0].file, payload=pieces)


class _Files:
    """The files of the pieces, each read once."""

    def __init__(self, source: Folder) -> None:
        self._source = source
        self._held: dict[str, tuple[Mapping[str, PickledArray | Entry], dict[str, LeftOut]]] = {}
        self._used: set[tuple[str, str]] = set()

    def find(self, file: str, key: str) -> PickledArray | Entry | str:
        """Return the array under a key in a file, or the type of a value that no variable can hold."""
        if file not in self._held:
            self._held[file] = self._open(file)
        arrays, others = self._held[file]
        self._used.add((file, key))
        if key in arrays:
            return arrays[key]
        if key in others:
            return others.pop(key).what
        raise FormatError(f"{file} has no {key!r:.80}, which the metadata expects there")

    def list_rest(self) -> list[LeftOut]:
        """Return the contents of the files that are not among the pieces."""
        rest = {one.name: one for _, others in self._held.values() for one in others.values()}
        return [*rest.values()] + [
            LeftOut(f"{file}/{key}", "a piece that the metadata does not name")
            for file, (arrays, _) in self._held.items()
            for key in arrays
            if (file, key) not in self._used
        ]

    def _open(self, name: str) -> tuple[Mapping[str, PickledArray | Entry], dict[str, LeftOut]]:
        if not isinstance(name, str) or "/" in name or "\\" in name or not self._source.has(name):
            raise FormatError(f"the metadata names {name!r:.80}, which is not in the folder")
        with self._source.open_file(name) as file:
            if name.endswith(".safetensors"):
                entries = Safetensors().entries(file)
                others = cast("Listing", entries).left_out
                return {one.name: one for one in entries}, {one.name: one for one in others}
            contents = decode(file.read_at(0, file.size))
        return contents.arrays, {one.name: one for one in contents.left_out}
