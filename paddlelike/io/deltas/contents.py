"""The values of a directory with chains: each whole value is read, then its links' rows replace its rows."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Array, SelectedRows, VarType
from paddlelike.errors import FormatError, LoadError, PaddlelikeError
from paddlelike.formats.paddle import selected_rows
from paddlelike.formats.sources import Buffer
from paddlelike.io.contents.directory import DirectoryContents
from paddlelike.io.contents.interface import Contents, Held, Reading, Unreadable, Want
from paddlelike.io.deltas.chain import FOLDER, Broken, Chain, find_chains, parse_path
from paddlelike.storage import hashing
from paddlelike.storage.location import LocalDirectory, Location
from paddlelike.storage.manifest import RESTORE, Record
from paddlelike.storage.problems import is_directory
from paddlelike.storage.threads import map_in_threads

_ROOM: Final = 64 << 20  # bytes for a link; a larger one gets memory of its own
_ALIGN: Final = 4  # bytes before a link in that memory, which align its row ids


def open_directory(
    location: Location,
    records: Mapping[str, Record] | None = None,
    *,
    complete: bool = True,
    only: Iterable[str] | None = None,
) -> Contents:
    """Return the values of a directory, including values in chains; see :class:`DirectoryContents`.

    Raises
    ------
    MissingFileError
        There is no such directory.
    """
    if only is not None and has_chains(location, only := list(only)):
        only = None
    contents = DirectoryContents(location, records, complete=complete, only=only)
    if any(name.startswith(FOLDER + "/") for name in contents.names()):
        return ChainedContents(contents, location)
    return contents


def has_chains(location: Location, names: Iterable[str]) -> bool:
    """Return whether some of these variables may be in chains, from a quick look at the directory."""
    if isinstance(location, LocalDirectory):
        return is_directory(os.path.join(location.path, FOLDER))
    if all(location.has(name) for name in names) or not location.exists():
        return False
    return any(name.startswith(FOLDER + "/") for name in location.list_names())


class _Part(NamedTuple):
    """Some rows of a chain's value: the first row, and the job that reads the whole value."""

    chain: Chain
    first: int
    want: Want


class ChainedContents:
    """A directory in which some variables lie in chains. Their links are always verified.

    Parameters
    ----------
    inner
        The files.
    """

    unnamed = None

    def __init__(self, inner: DirectoryContents, location: Location) -> None:
        self.where = inner.where
        self._inner = inner
        self._location = location
        manifest = location.manifest()
        self._chains = find_chains(None if manifest is None else manifest.files, inner.names())
        self._offsets: dict[str, int] = {}  # offsets of the elements of the whole values
        files = [name for name in inner.names() if parse_path(name) is None]
        self._names = sorted({*files, *self._chains})

    def cut(self, chain: Chain) -> ChainedContents:
        """Return these values, with one variable as it was after the first links of its chain."""
        made = copy.copy(self)
        made._chains = {**self._chains, chain.variable: chain}
        return made

    def names(self) -> list[str]:
        """Return the names of all variables, sorted."""
        return self._names

    def look(self, name: str, kind: VarType) -> Held | Unreadable | None:
        """Return the header of a value, or None if there is no such value."""
        chain = self._chains.get(name)
        if chain is None:
            return self._inner.look(name, kind)
        if isinstance(chain, Broken):
            return Unreadable(name, f"the chain of {name!r} is broken: {chain.what}", chain.hint)
        if kind != chain.kind:
            return Unreadable(name, f"it is in a chain of deltas, which holds a {chain.kind.name}")
        path = chain.path(0)
        found = self._inner.look(path, kind)
        if not isinstance(found, Held):
            return found and found._replace(hint=found.hint or RESTORE)
        header = found.header
        shape = tuple(chain.records[0].facts["shape"])
        if (header.dtype.name, header.shape, header.lod) != (chain.dtype, shape, ()):
            what = f"link 0 ({path}) holds {header.dtype.name}{list(header.shape)}, its record says "
            return Unreadable(name, f"{what}{chain.dtype}{list(shape)}: it belongs to another run", RESTORE)
        assert header.offset is not None
        self._offsets[name] = header.offset
        return Held(name, header, None, found.size)

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        """Read values; values in chains are never views of files.

        Raises
        ------
        LoadError
            A link differs from its record.
        FormatError, StorageError
            A file cannot be read, or was replaced after its header was read.
        """
        parts = {at: part for at, want in enumerate(wants) if (part := self._find_part(want)) is not None}
        chains = {part.chain.variable: part.chain for part in parts.values()}
        links = {}
        if any(want.target is not None for want in wants):  # all are checked before anything is overwritten
            links = {name: self._read_links(chain) for name, chain in chains.items()}
        plain = [want for at, want in enumerate(wants) if at not in parts]
        reading = self._inner.read(plain, lazily=lazily)
        whole = self._inner.read([part.want for part in parts.values()])
        for chain in chains.values():
            prefix = chain.path(0) + ": "
            bad = [line.removeprefix(prefix) for line in whole.bad if line.startswith(prefix)]
            if bad:
                raise _make_refusal(self._location, chain, 0, f"is not the one that was saved: {bad[0]}")
        values = iter(reading.values)
        replayed = iter(whole.values)
        merged = [next(replayed if at in parts else values) for at in range(len(wants))]

        def replay_part(at: int) -> None:
            part, value = parts[at], merged[at]
            chain = part.chain
            rows = links.get(chain.variable) or self._stream_links(chain)
            if not isinstance(value, SelectedRows):
                array = value.held_array
                assert array is not None
                for link in rows:
                    start, stop = np.searchsorted(link.row_array, (part.first, part.first + len(array)))
                    places, values = link.row_array[start:stop], link.held_array
                    assert values is not None
                    _set_rows(array, places - part.first if part.first else places, values[start:stop])
                return
            merged[at] = table = replay(value, rows)
            if (shape := table.get_tensor().shape()) != list(chain.shape):
                why = f"leaves a value of {shape}, its record says {list(chain.shape)}"
                raise _make_refusal(self._location, chain, len(chain.records) - 1, why)

        map_in_threads(replay_part, parts)
        return reading._replace(values=merged, bad=whole.bad)

    def _find_part(self, want: Want) -> _Part | None:
        """Return the part to read for a want in a chain, or None for a value in its own file."""
        held = want.held
        chain = self._chains.get(held.name)
        if not isinstance(chain, Chain):
            return None
        header = held.header
        offset = header.offset
        assert offset is not None
        if chain.kind == VarType.SELECTED_ROWS:
            return _Part(chain, 0, want._replace(held=held._replace(name=chain.path(0))))
        row = header.nbytes // header.shape[0] if header.shape[0] else 1
        first = (offset - self._offsets[held.name]) // max(row, 1) + (want.rows[0] if want.rows else 0)
        return _Part(chain, first, want._replace(held=held._replace(name=chain.path(0))))

    def _read_links(self, chain: Chain) -> list[SelectedRows]:
        """Return the rows of all links except the first, in order."""
        return map_in_threads(lambda at: read_link(self._location, chain, at), range(1, len(chain.records)))

    def _stream_links(self, chain: Chain) -> Iterator[SelectedRows]:
        """Yield the rows of each link; their memory is reused for the next link."""
        sizes = [0, *(record.size for record in chain.records[1:])]
        room = np.empty(min(max(sizes), _ROOM) + _ALIGN, np.uint8).data[_ALIGN:]
        for at in range(1, len(chain.records)):
            yield read_link(self._location, chain, at, room)


def read_link(location: Location, chain: Chain, at: int, room: memoryview | None = None) -> SelectedRows:
    """Return the rows of a link; ids and values are stored in ``room`` if it is large enough.

    Raises
    ------
    LoadError
        It differs from its record.
    """
    record = chain.records[at]
    assert record.algorithm is not None
    try:
        with location.open_file(chain.path(at)) as file:
            data: Buffer
            if room is not None and file.size <= len(room):
                data = room[: file.readinto_at(0, room[: file.size])]
            else:
                data = file.read_at(0, max(file.size, record.size))
    except (PaddlelikeError, OSError) as error:
        raise _make_refusal(location, chain, at, f"cannot be read: {error}") from error
    checksum = hashing.hash_bytes(data, record.algorithm)
    if len(data) != record.size or checksum != record.checksum:  # C3
        other = next((k for k, each in enumerate(chain.records) if each.checksum == checksum), None)
        why = f"holds the bytes of link {other}: doubled or out of order"
        if other is None:
            why = f"is not the one that was saved, of {record.size} bytes: damaged, stale or of another run"
        raise _make_refusal(location, chain, at, why)
    try:
        rows = selected_rows.view(data)
    except FormatError as error:
        raise _make_refusal(location, chain, at, f"is not SelectedRows: {error.message}") from error
    ids, values = rows.row_array, rows.held_array
    row = TENSOR_DTYPES[VarType[chain.dtype]].numpy, chain.shape[1:]
    is_table = chain.kind == VarType.SELECTED_ROWS
    rises = (
        is_table or not len(ids) or (ids[0] >= 0 and (ids[1:] > ids[:-1]).all() and ids[-1] < chain.height)
    )
    if (
        values is None
        or (values.dtype, values.shape[1:], rows.height()) != (*row, chain.height)
        or not rises
        or (len(values) > len(ids) if is_table else len(values) != len(ids))
    ):
        raise _make_refusal(location, chain, at, "does not hold rows of the whole value")
    return rows


def _make_refusal(location: Location, chain: Chain, at: int, why: str) -> LoadError:
    path = chain.path(at)
    return LoadError(
        f"nothing was loaded from {location.path}: link {at} of {len(chain.records) - 1} of "
        f"{chain.variable!r} ({path}) {why}",
        hint=RESTORE,
    )


def replay(table: SelectedRows, links: Iterable[SelectedRows]) -> SelectedRows:
    """Return a growing table, or a shard of a table, after replaying its links."""
    ids, whole = table.row_array, table.held_array
    assert whole is not None
    values = whole[: len(ids)]
    for link in links:
        rows = link.held_array
        assert rows is not None
        changed, forgotten = np.split(link.row_array, [len(rows)])
        if len(forgotten):
            places = SelectedRows(ids).find_rows(forgotten)  # C7
            keep = np.ones(len(ids), np.bool_)
            keep[places[places >= 0]] = False
            ids, values = ids[keep], values[keep]
        places = SelectedRows(ids).find_rows(changed)
        there = places >= 0
        _set_rows(values, places[there], rows[there])
        if not there.all():
            ids = np.concatenate([ids, changed[~there]])
            values = np.concatenate([values, rows[~there]])
    from paddlelike.ops.kernels.growing_rows import ANY_ID  # late: few programs have such tables

    if table.height() != ANY_ID:  # a shard: rows that no id uses yet
        values = np.concatenate([values, whole[len(ids) :]])
    return SelectedRows(ids, table.height(), values)


def _set_rows(array: Array, places: Array, values: Array) -> None:
    """Set rows at positions; each row is handled as one element of bytes, which is six times as fast."""
    size = values.nbytes // len(values) if len(values) else 0
    if size and array.flags.c_contiguous and values.flags.c_contiguous:
        np.put(array.reshape(-1).view(f"V{size}"), places, values.reshape(-1).view(f"V{size}"))
    else:
        array[places] = values
