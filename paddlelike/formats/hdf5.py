"""HDF5 files of named arrays, by h5py (extra ``hdf5``).

Three forms are read. The first has one dataset per variable in the root group, with blanks for the slashes of
its name, as many TensorFlow users wrote it; this form is also written. The second has groups in place of the
slashes. The third is a Keras weight file, whose attributes ``layer_names`` and ``weight_names`` give the
order. There, a name that two layers use becomes ``LAYER/NAME``; arrays that the attributes do not list, such
as the optimizer's, are called by their paths. Datasets that cannot be variables, such as texts, are left out
and reported. A ``.keras`` file of Keras 3 is a ZIP with such a file, ``model.weights.h5``, whose weights have
names such as ``layers/dense/vars/0``.

HDF5 does not store LoD. Nothing in a file is executed. Errors of the HDF5 library become FormatError. On some
damaged files the library hangs or crashes, so a local file, or one in memory, is first read in a fork of this
process with a time limit (if the system has forks). External links, external storage and virtual datasets can
name any file of this machine; they are left out and reported, and the other files are never opened.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import xxhash

from paddlelike.core import Array, VarType, convert_dtype
from paddlelike.errors import ExtraMissingError, FormatError
from paddlelike.formats.base import Capabilities, FileFormat, Value, Values
from paddlelike.formats.elements import check_shape
from paddlelike.formats.entry import Entry, LeftOut, check_entries, deliver, free_name, read_dense
from paddlelike.formats.npz import is_held
from paddlelike.formats.sources import Buffer, BufferSource, Readable, Source, as_source
from paddlelike.formats.zips import SourceFile, open_zip
from paddlelike.foundation.locks import make_keys
from paddlelike.foundation.snapshot import try_aside
from paddlelike.lazy import dataclass

if TYPE_CHECKING:
    import h5py

_SIGNATURE: Final = b"\x89HDF\r\n\x1a\n"
_PIECE: Final = 1 << 20
_KERAS: Final = "model.weights.h5"
_PATIENCE: Final = 30.0  # seconds to read a file, and one more for each of these bytes
_SLOWEST: Final = 10 << 20
_MOST_KNOWN: Final = 1000
_read: Final[set[tuple[int, ...]]] = set()  # files that were read to the end
Attributes = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Hdf5(FileFormat):
    """An HDF5 file. ``attributes`` are pairs of a name and a text, number or small array that ``write`` adds.

    Raises ExtraMissingError when h5py is not installed.
    """

    attributes: Attributes = ()

    name = "hdf5"
    title = "an HDF5 file"
    suffixes = (".hdf5", ".h5")  # .keras is read, not written
    advice = "load it with paddlelike.load_hdf5, or convert it with paddlelike.convert"
    holds = Capabilities(dtypes=frozenset(set(Capabilities().dtypes) - {VarType.BF16}), order=False)

    def sniff(self, head: bytes, size: int) -> bool:
        return head[:8] == _SIGNATURE or (head[:4] == b"PK\x03\x04" and head[30:43] == b"metadata.json")

    def entries(self, source: Readable) -> list[Entry]:
        file = as_source(source)
        _read_aside(file)
        return self._list(file)

    def _list(self, file: Source) -> list[Entry]:
        with _open(file) as opened:
            listed, left_out = _list_datasets(opened)
            datasets = dict(listed)
            keras = _list_keras(opened)
            named = {str(dataset.name) for _, dataset in keras}
            found = [
                *keras,
                *((decode_name(path), one) for path, one in datasets.items() if str(one.name) not in named),
            ]
            begin = _find_inner(file)[1]
            entries: dict[str, Entry] = {}
            for name, dataset in found:
                problem = _find_problem(name, dataset)
                if problem is None:
                    free = free_name(name, entries)
                    entries[free] = _describe(free, dataset, file.size, begin)
                else:
                    left_out.append(LeftOut(name, problem))
        return check_entries(entries.values(), file.size, left_out)

    def read(self, source: Readable, entry: Entry, *, into: Array | None = None) -> Value:
        file = as_source(source)
        if entry.offset is not None:
            return read_dense(file, entry, into=into)
        with _open(file) as opened, _damage_named(f"{entry.name!r:.80} cannot be read"):
            array = np.asarray(opened[cast("str", entry.payload)][()])
        if (
            array.shape != entry.shape
            or array.dtype != array.dtype.newbyteorder("=")
            or array.nbytes != entry.nbytes
        ):
            array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(entry.shape)
        return deliver(array, into)

    def refuse_name(self, name: str) -> str | None:
        if " " in name or "\0" in name or name in ("", "."):
            return "a name that cannot be a key, in which a blank stands for '/'"
        return super().refuse_name(name)

    def write(self, values: Values) -> Iterator[Buffer]:
        return self._encode({encode_name(name): one for name, one in self.take_arrays(values).items()})

    def _encode(self, arrays: dict[str, Any]) -> Iterator[Buffer]:
        h5py = _import_h5py()
        with tempfile.TemporaryFile() as file:  # on disk: h5py cannot write piece by piece
            with h5py.File(file, "w", track_order=False) as opened:
                for key in sorted(arrays):
                    opened.create_dataset(
                        key, data=np.asarray(arrays[key], arrays[key].dtype.newbyteorder("<"))
                    )
                    yield b""  # the array has been copied: the reader may release it
                for name, value in self.attributes:
                    _write_attribute(opened, name, value)
            file.seek(0)
            while piece := file.read(_PIECE):
                yield piece


def _write_attribute(opened: h5py.Group, name: str, value: object) -> None:
    try:
        opened.attrs[name] = value
    except _DAMAGE as error:
        raise FormatError(
            f"the attribute {name!r:.80} cannot be kept in an HDF5 file ({error!s:.100})",
            hint="HDF5 attributes hold texts, numbers and arrays of them, below 64 kB",
        ) from error


def encode_name(name: str) -> str:
    """Return the key of a variable: its name with blanks in place of slashes.

    >>> encode_name("net/layer1/W")
    'net layer1 W'
    """
    return name.replace("/", " ")


def decode_name(key: str) -> str:
    """Return the name of the variable that a key stands for."""
    return key.replace(" ", "/")


def read_attributes(source: Readable) -> dict[str, Any]:
    """Return the attributes of the root group, and the texts that are datasets.

    Raises FormatError when the file is damaged.
    """
    file = as_source(source)
    _read_aside(file)
    return _list_attributes(file)


def _list_attributes(file: Source) -> dict[str, Any]:
    with _open(file) as opened:
        texts = {path: dataset for path, dataset in _list_datasets(opened)[0] if _is_text(dataset)}
        with _damage_named("the attributes cannot be read"):
            return {path: _text(dataset) for path, dataset in texts.items()} | dict(opened.attrs.items())


def _read_aside(file: Source) -> None:
    """Read all contents in a fork of this process, once for each file.

    Raises
    ------
    FormatError
        The HDF5 library did not come to an end in time, or ended the process.
    """
    key = _identify(file)
    if not hasattr(os, "fork") or key is None or key in _read:
        return
    _import_h5py()
    from h5py._objects import phil  # the lock of the library, which the fork must not find taken

    def read() -> bool:
        with suppress(Exception):  # this process reports the error when it reads
            kind = Hdf5()
            for entry in kind._list(file):
                if entry.offset is None:
                    kind.read(file, entry)
            _list_attributes(file)
        return True

    seconds = _PATIENCE + file.size / _SLOWEST
    if try_aside(read, make_keys(phil.acquire, phil.release), seconds) is None:
        raise FormatError(
            f"the HDF5 library crashes on this file, or does not finish reading it within {seconds:.0f} s",
            hint="the file is damaged: get another copy; h5repack or h5debug of HDF5 may tell more",
        )
    if len(_read) >= _MOST_KNOWN:
        _read.clear()
    _read.add(key)


def _identify(file: Source) -> tuple[int, ...] | None:
    """Return numbers that identify a file of this machine, or bytes in memory; None for other sources."""
    if isinstance(file, BufferSource):
        return file.size, xxhash.xxh3_128_intdigest(file.read_at(0, file.size))
    describe = getattr(file, "get_facts", None)  # of a file on this machine
    if describe is None:
        return None
    facts = describe()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def _is_text(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset of this file holds one or several texts."""
    with _damage_named(f"{dataset.name!r:.80}: its header is damaged"):
        if dataset.is_virtual or dataset.external is not None:
            return False
        return dataset.shape is not None and _import_h5py().check_string_dtype(dataset.dtype) is not None


def _text(dataset: h5py.Dataset) -> object:
    value = dataset.asstr()[()]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _import_h5py() -> ModuleType:
    try:
        import h5py  # an extra
    except ImportError as error:
        raise ExtraMissingError("HDF5 files need h5py, which is not installed", extra="hdf5") from error
    module: ModuleType = h5py
    return module


_DAMAGE: Final = (
    OSError, KeyError, ValueError, TypeError, RuntimeError, OverflowError, MemoryError, AttributeError
)  # fmt: skip


@contextmanager
def _damage_named(what: str) -> Iterator[None]:
    """Convert errors of the HDF5 library to a FormatError that begins with ``what``."""
    try:
        yield
    except FormatError:
        raise
    except _DAMAGE as error:
        raise FormatError(f"{what} ({error!s:.100})") from error


def _open(file: Source) -> h5py.File:
    h5py = _import_h5py()
    file, _ = _find_inner(file)
    if bytes(file.read_at(0, 8)) != _SIGNATURE:
        raise FormatError("offset 0: the signature of an HDF5 file is missing")
    with _damage_named("the HDF5 file is damaged"):
        return h5py.File(SourceFile(file), "r")


def _find_inner(file: Source) -> tuple[Source, int | None]:
    """Return the HDF5 file and its offset in ``file``; None in place of the offset if it is compressed."""
    if bytes(file.read_at(0, 2)) != b"PK":
        return file, 0
    member = open_zip(file).get(_KERAS)
    if member is None:
        raise FormatError(f"the ZIP file has no {_KERAS}, so Keras has not written it")
    if member.size > _MOST_PACKED * member.stored_size + _PIECE:
        raise FormatError(f"{_KERAS} takes {member.size} bytes, packed into {member.stored_size}: unpack it")
    inner = as_source(member.read(file)) if member.offset is None else _Part(file, member.offset, member.size)
    return inner, member.offset


class _Part:
    """A part of a source, as a source of its own."""

    def __init__(self, whole: Source, begin: int, size: int) -> None:
        self._whole, self._begin, self.size = whole, begin, size

    def read_at(self, offset: int, size: int) -> Buffer:
        return self._whole.read_at(self._begin + offset, max(min(size, self.size - offset), 0))

    def readinto_at(self, offset: int, target: memoryview) -> int:
        return self._whole.readinto_at(
            self._begin + offset, target[: max(min(len(target), self.size - offset), 0)]
        )


def _list_datasets(opened: h5py.Group) -> tuple[list[tuple[str, h5py.Dataset]], list[LeftOut]]:
    """Return the path of each dataset with the dataset, groups included, and the links that lead to none."""
    found: dict[str, Any] = {}
    with _damage_named("the groups of the HDF5 file are damaged"):
        for path in _walk(opened, "", found, {_get_address(opened)}):
            found[path] = _follow(opened, path)
    datasets = [(path, found[path]) for path in sorted(found) if hasattr(found[path], "shape")]
    lost = [(path, found[path]) for path in sorted(found) if _leads_nowhere(found[path])]
    return datasets, [
        LeftOut(
            decode_name(path), f"a link to another file, {link.filename!r:.80}" if link else "a broken link"
        )
        for path, link in lost
    ]


def _walk(group: h5py.Group, prefix: str, found: dict[str, Any], seen: set[int]) -> list[str]:
    """Collect the datasets of a group and its subgroups in ``found``, by path. Return the paths of links."""
    h5py = _import_h5py()
    links = []
    for key in group:
        path = prefix + key
        if not isinstance(group.get(key, getlink=True), h5py.HardLink):
            links.append(path)
            continue
        item = group[key]
        if isinstance(item, h5py.Dataset):
            found[path] = item
        elif isinstance(item, h5py.Group) and (address := _get_address(item)) not in seen:
            seen.add(address)  # a group can hold itself
            links += _walk(item, f"{path}/", found, seen)
    return links


def _follow(group: h5py.Group, path: str) -> h5py.HLObject | h5py.ExternalLink | None:
    """Return the object that a path leads to: an object of this file, a link to another file, or None.

    The HDF5 library would open the other file.
    """
    h5py = _import_h5py()
    here, names = group.file if path.startswith("/") else group, path.split("/")[::-1]
    for _ in range(_MOST_STEPS):
        if not names or len(names) > _MOST_STEPS:
            return None if names else here
        name = names.pop()
        link = here.get(name, getlink=True) if name not in ("", ".") else None
        if isinstance(link, h5py.SoftLink):
            here = here.file if link.path.startswith("/") else here
            names += link.path.split("/")[::-1]
        elif isinstance(link, h5py.HardLink):
            here = here[name]
        elif name not in ("", "."):
            return link
        if names and not isinstance(here, h5py.Group):
            return None
    return None


def _leads_nowhere(item: object) -> bool:
    return item is None or isinstance(item, _import_h5py().ExternalLink)


def _get_address(group: h5py.Group) -> int:
    return int(_import_h5py().h5o.get_info(group.id).addr)


def _list_keras(opened: h5py.Group) -> list[tuple[str, h5py.Dataset]]:
    """Return the name and the dataset of every weight of a Keras file, in order; [] for other files."""
    with _damage_named("the layer_names or weight_names of the Keras file are damaged"):
        root = _follow(opened, "model_weights")
        root = opened if _leads_nowhere(root) else root
        layers = _read_names(root, "layer_names")
        if layers is None:
            return []
        groups = {layer: _find_part(root, layer) for layer in layers}
        weights = [
            (layer, name)
            for layer, group in groups.items()
            if not _leads_nowhere(group)
            for name in _read_names(group, "weight_names") or ()
        ]
        counts = Counter(name for _, name in weights)  # two inner models of one architecture share names
        found = [(layer, name, _find_part(groups[layer], name)) for layer, name in weights]
        return [
            (name if counts[name] == 1 else f"{layer}/{name}", item)
            for layer, name, item in found
            if not _leads_nowhere(item)
        ]


def _find_part(group: h5py.Group, name: str) -> h5py.HLObject | h5py.ExternalLink:
    """Return the object to which a name in one of Keras' lists leads; it may be a link to another file."""
    item = _follow(group, name)
    if item is None:
        raise KeyError(name)
    return item


def _read_names(group: h5py.Group, attribute: str) -> list[str] | None:
    """Return a list of names of Keras: ``NAME``, or, over 64 kB, its parts ``NAME0``, ``NAME1``, ..."""
    if attribute in group.attrs:
        return _texts(group.attrs[attribute])
    parts: list[str] = []
    for index in itertools.count():
        if f"{attribute}{index}" not in group.attrs:
            return parts if index else None
        parts += _texts(group.attrs[f"{attribute}{index}"])
    raise AssertionError


def _texts(value: object) -> list[str]:
    return [
        text.decode() if isinstance(text, bytes) else str(text)
        for text in np.asarray(value).reshape(-1).tolist()
    ]


def _describe(name: str, dataset: h5py.Dataset, size: int, begin: int | None) -> Entry:
    """Return the entry of a dataset in a file that begins at offset ``begin``, or is compressed."""
    with _damage_named(f"{name!r:.80}: its header is damaged"):
        dtype, shape = np.dtype(dataset.dtype), tuple(int(dim) for dim in dataset.shape)
        contiguous = dataset.chunks is None and dataset.compression is None
        offset = dataset.id.get_offset() if contiguous and dtype.kind != "b" else None
        offset = None if offset is None or begin is None else offset + begin
        path, stored = str(dataset.name), int(dataset.id.get_storage_size())
    var_type = convert_dtype(dtype)
    nbytes = math.prod(shape) * dtype.itemsize
    check_shape(f"{name!r:.80}", shape, dtype.itemsize)
    if nbytes > _MOST_DEFLATED * max(stored, 0) + 64 or stored > size:
        raise FormatError(
            f"{name!r:.80}: {dtype} {list(shape)} takes {nbytes} bytes, the file stores {stored}"
        )
    if offset is not None and (dtype.byteorder == ">" or stored != nbytes):
        offset = None
    return Entry(name, var_type, shape, offset=offset, nbytes=nbytes, payload=path)


def _find_problem(name: str, dataset: h5py.Dataset) -> str | None:
    """Return why a dataset cannot be a variable, or None if it can."""
    h5py = _import_h5py()
    with _damage_named(f"{name!r:.80}: its header is damaged"):
        if dataset.is_virtual or dataset.external is not None:
            return (
                f"an array in other files ({'virtual dataset' if dataset.is_virtual else 'external storage'})"
            )
        if dataset.shape is None:
            return "a null dataset, without shape and elements"
        if h5py.check_string_dtype(dataset.dtype) is not None:
            return "texts"
        if h5py.check_enum_dtype(dataset.dtype) is not None and dataset.dtype.kind != "b":
            return "an array of an enumeration"
        dtype = np.dtype(dataset.dtype)
        return None if is_held(dtype) else f"an array of {'records' if dtype.names else dtype}"


_MOST_STEPS: Final = 1000  # of a path with its links, which can lead in a circle
_MOST_PACKED: Final = 50  # weights hardly compress; a file of zeros could fill the memory
_MOST_DEFLATED: Final = 1100  # deflate makes no data smaller than by this factor
