"""Tables that are sharded by id: ``__lookup_table__/<table>_<i>`` has the rows with ``id % servers == i``.

A shard is a file of SelectedRows: the ids met so far, and as many rows as the server may ever keep. Rows
without an id hold initial values. Any number of servers can continue with a table. The same number of servers
read their own files; with another number, each server searches all shards for its ids. From a whole table,
written by a single process, server i of n takes every n-th row. A single process joins the shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from paddlelike.core import TENSOR_DTYPES, Array, LoDTensor, SelectedRows, VarType, global_scope, memory
from paddlelike.core.rows import unique_rows
from paddlelike.distributed.placement import TABLE_FOLDER, Slice, shard_name
from paddlelike.errors import LoadError
from paddlelike.formats.entry import Entry
from paddlelike.formats.paddle import lod_tensor
from paddlelike.formats.paddle.selected_rows import IDS_OFFSET
from paddlelike.io.contents.allocation import get_offset
from paddlelike.io.contents.interface import Contents, Held, Reading, Unreadable, Want
from paddlelike.io.contents.read import view_bytes
from paddlelike.storage.location import Location
from paddlelike.storage.manifest import Manifest, Record

Choice = Callable[[Array], Array]

_CHUNK: Final = 4 << 20  # bytes searched at a time


class _Selection(NamedTuple):
    """A value whose rows come from the files of other values."""

    files: tuple[Held, ...]
    mine: Choice  # selects from ids
    one: Slice | None  # the index of the resulting shard; None: the whole table


class Shards:
    """The tables of a directory.

    Parameters
    ----------
    where
        The directory.
    contents
        The same directory, as the source of headers.
    manifest
        The directory's manifest, which says how many shards the last save wrote, or None.
    for_training
        Whether rows that no trainer has used get initial values; otherwise they are zero.
    """

    def __init__(
        self, where: Location, contents: Contents, manifest: Manifest | None, *, for_training: bool = True
    ) -> None:
        self._for_training = for_training
        self._where = where
        self._contents = contents
        self._selections: dict[str, _Selection] = {}
        self._manifest = manifest
        self._own: dict[str, Slice] = {}  # files that are read as they are
        self._bad: list[str] = []
        self._replayed: tuple[str, LoDTensor | SelectedRows] | None = None

    def look(self, one: Slice) -> Held | Unreadable | None:
        """Return the value of ``one``, the rows of server ``one.first_row`` of ``one.stride``, or None if it
        is missing.
        """
        whole = self._contents.look(one.origin, VarType.LOD_TENSOR)
        parts = self._parts(one.origin, one.whole[0], whole)
        if isinstance(parts, Unreadable):
            return parts
        server, servers = one.first_row, one.stride
        if len(parts) == servers and parts[server].header.shape == one.shape:
            self._own[parts[server].name] = one
            return parts[server]
        if parts:
            return find_misfit(parts[0], one.shape, one.dtype) or self._take(parts, one)
        if not isinstance(whole, Held):
            return whole
        header = whole.header
        if (header.dtype, header.shape) != (one.dtype, one.whole):
            keep = f"the servers keep shards of {one.dtype.name}{list(one.whole)}"
            what = f"file {whole.name} holds {header.dtype.name}{list(header.shape)}, {keep}"
            return Unreadable(whole.name, what)
        return self._take([whole], one)

    def look_whole(
        self, table: str, shape: tuple[int, ...], whole: Held | Unreadable | None
    ) -> Held | Unreadable | None:
        """Return a table of that shape: from the file ``whole``, or from its shards if they are newer."""
        parts = self._parts(table, shape[0] if shape else 0, whole)
        if isinstance(parts, Unreadable):
            return parts
        if not parts:
            return whole
        name, dtype = parts[0].name, parts[0].header.dtype
        self._selections[name] = _Selection(tuple(parts), np.ones_like, None)
        return find_misfit(parts[0], shape, dtype) or Held(name, Entry(name, dtype, shape))

    def read(self, wants: Sequence[Want], *, lazily: bool = False) -> Reading:
        """Read values; the rows of tables are selected from the files that contain them."""
        plain = [want for want in wants if want.held.name not in self._selections]
        chosen = [self._selections[want.held.name] for want in wants if want.held.name in self._selections]
        files = [held for one in chosen for held in one.files if self._where.has(held.name)]
        reading = self._contents.read([*plain, *map(_compare_alone, files)], lazily=lazily)
        values = iter(reading.values)
        found = [
            self._select(want.held) if want.held.name in self._selections else next(values) for want in wants
        ]
        for want, value in zip(wants, found, strict=True):
            if (one := self._own.get(want.held.name)) is not None:
                assert isinstance(value, SelectedRows)
                self._check_ids(want.held, value.row_array, one.first_row, one.stride)
        return reading._replace(values=found, bad=list(dict.fromkeys([*reading.bad, *self._bad])))

    # Headers

    def _parts(self, table: str, height: int, whole: object) -> list[Held] | Unreadable:
        """Return the shards of the last save; none if that save wrote the whole table or nothing.

        A save by fewer servers leaves shards of an earlier save in place.
        """
        newer = "shards" if whole is None else self._newer_form(table)
        if newer == "whole":
            return []
        count = next((one.facts.get("shards") for one in self._list_records(shard_name(table, 0))), None)
        parts: list[Held] = []
        while len(parts) != count:
            name = shard_name(table, len(parts))
            found = self._contents.look(name, VarType.SELECTED_ROWS)
            if isinstance(found, Unreadable):
                return found
            if found is None:
                has_room = count is None and sum(one.header.shape[0] for one in parts) >= height
                if has_room or (not parts and (newer is None or count is None)):
                    break
                saved = f"{count} shards were saved" if count else f"the others have less than {height} rows"
                what = f"there is no such file, and {saved}: is a shard missing?"
                return Unreadable(name, what, is_missing=True)
            parts.append(found)
        if len(forms := {(one.header.dtype.name, one.header.shape[1:]) for one in parts}) > 1:
            return Unreadable(parts[0].name, f"the shards hold rows of several kinds: {sorted(forms)}")
        if parts and newer is None:
            what = f"there are both a file {table} and shards of it ({parts[0].name}, ...)"
            hint = "remove the older of the two: one process saves a whole table, servers save shards"
            return Unreadable(table, what, hint)
        return parts

    def _newer_form(self, table: str) -> Literal["whole", "shards"] | None:
        """Return whether the last save wrote the whole table or its shards; None if that is unknown."""
        if self._manifest is None:
            return None
        last = self._manifest.author.program
        forms = [self._list_records(name) for name in (table, shard_name(table, 0))]
        by_last = [any(one.author.program == last for one in records) for records in forms]
        if not all(forms) or by_last[0] == by_last[1]:
            return None
        return "whole" if by_last[0] else "shards"

    def _list_records(self, name: str) -> list[Record]:
        """Return the manifest's records of a value: the record of its file, or of each link of its chain."""
        files = {} if self._manifest is None else self._manifest.files
        return [one for one in files.values() if one.facts.get("variable") == name]

    def _take(self, files: list[Held], one: Slice) -> Held:
        server, servers = one.first_row, one.stride
        name = files[0].name
        self._selections[name] = _Selection(tuple(files), lambda ids: ids % servers == server, one)
        return Held(name, Entry(name, one.dtype, one.shape, height=one.shape[0]))

    # Values

    def _select(self, held: Held) -> LoDTensor | SelectedRows:
        taken = self._selections[held.name]
        found = self._whole(held, taken) if taken.one is None else self._shard(taken.one, taken)
        self._replayed = None
        return found

    def _shard(self, one: Slice, taken: _Selection) -> SelectedRows:
        """Return the rows of one server by rising id; further rows keep the values of the scope."""
        array = self._initial_values(one.name, one.shape, one.dtype)
        found = [ids[taken.mine(ids)] for ids in self._ids(taken)]
        ids = np.sort(np.concatenate(found))
        if len(ids) > len(array):
            raise LoadError(
                f"{len(ids)} rows of table {one.origin!r} belong to {one.endpoint}, which has room for "
                f"{len(array)}",
                hint="does the table have as many rows as when it was saved?",
            )
        met = self._fill(
            array, taken, lambda some: np.where(taken.mine(some), np.searchsorted(ids, some), -1)
        )
        if met != len(ids):
            raise LoadError(
                f"table {one.origin!r}: some ids are in two shards", hint="load a save that holds every shard"
            )
        self._require_initial_values(one.name, met, len(array))
        return SelectedRows(ids, one.shape[0], array)

    def _whole(self, held: Held, taken: _Selection) -> LoDTensor:
        header = held.header
        table = held.name.removeprefix(TABLE_FOLDER + "/").removesuffix("_0")
        array = self._initial_values(table, header.shape, header.dtype)
        met = self._fill(array, taken, lambda some: some)
        self._require_initial_values(table, met, len(array))
        return LoDTensor(array)

    def _initial_values(self, name: str, shape: tuple[int, ...], dtype: VarType) -> Array:
        """Return new memory with the values of the variable in the scope, or zeros."""
        array = memory.empty(shape, TENSOR_DTYPES[dtype].numpy)
        holder = global_scope().find_var(name)
        value = None if holder is None else getattr(holder.value, "held_array", None)
        self._has_initial = value is not None and value.shape == shape
        array[...] = value if self._has_initial else 0
        return array

    def _require_initial_values(self, name: str, met: int, room: int) -> None:
        if met < room and self._for_training and not self._has_initial:
            raise LoadError(
                f"{met} rows of {name!r} were saved, the other {room - met} have no initial values",
                hint="run the startup program first",
            )

    def _ids(self, taken: _Selection) -> Iterator[Array]:
        """Return the ids of every file. Raises LoadError for a shard with ids of another shard."""
        for shard, held in enumerate(taken.files):
            header = held.header
            if header.height is None:
                yield np.arange(header.shape[0])
                continue
            chained = self._replay(held)
            if chained is None:
                with self._where.open_file(held.name) as file:
                    ids = np.frombuffer(file.read_at(IDS_OFFSET, 8 * header.row_count), "<i8")
            else:
                assert isinstance(chained, SelectedRows)
                ids = chained.row_array
            self._check_ids(held, ids, shard, len(taken.files))
            yield ids.astype(np.int64)

    def _check_ids(self, held: Held, ids: Array, shard: int, shards: int) -> None:
        """Raise LoadError for a shard with ids of another shard, or beyond the height of the table."""
        room = held.header.shape[0]
        if len(ids) > room or np.any(ids % shards != shard) or np.any((ids < 0) | (ids >= shards * room)):
            what = f"{self._where.path}/{held.name} is not shard {shard} of {shards}"
            raise LoadError(f"{what}: it has ids of other shards", hint="load a save that holds every shard")

    def _fill(self, array: Array, taken: _Selection, places: Choice) -> int:
        """Copy rows to the indexes that ``places`` returns, except -1; return the number of copied rows."""
        count = 0
        for held, ids in zip(taken.files, self._ids(taken), strict=True):
            where = places(ids)
            if where.size and where.max() >= len(array):
                raise LoadError(
                    f"{held.name} holds row {int(where.max())}, but the table has {len(array)} rows"
                )
            for first, rows in self._read_rows(held, len(ids)):
                some = where[first : first + len(rows)]
                array[some[some >= 0]] = rows[some >= 0]
            count += len(unique_rows(where[where >= 0]))
        return count

    def _read_rows(self, held: Held, count: int) -> Iterator[tuple[int, Array]]:
        """Return the first ``count`` rows of a value in pieces: the index of the first row, and the rows."""
        chained = self._replay(held)
        if chained is not None:
            yield 0, np.asarray(chained.held_array)[:count]
            return
        header = held.header
        dtype = TENSOR_DTYPES[header.dtype].numpy
        width = int(np.prod(header.shape[1:], dtype=np.int64)) * dtype.itemsize
        most = max(_CHUNK // max(width, 1), 1)
        with self._where.open_file(held.name) as file:
            for first in range(0, count, most):
                rows = np.empty((min(most, count - first), *header.shape[1:]), dtype)
                if file.readinto_at(get_offset(header) + first * width, view_bytes(rows)) != rows.nbytes:
                    raise LoadError(f"{held.name} became shorter while it was read")
                yield first, lod_tensor.to_native(rows)

    def _replay(self, held: Held) -> LoDTensor | SelectedRows | None:
        """Return the whole value of a chain of deltas; None if the value has a file of its own."""
        if self._where.has(held.name):
            return None
        if self._replayed is None or self._replayed[0] != held.name:
            self._replayed = None  # one shard at a time is in memory
            reading = self._contents.read([Want(held)])
            self._bad += reading.bad
            self._replayed = held.name, reading.values[0]
        return self._replayed[1]


def _compare_alone(held: Held) -> Want:
    """Return a request that reads no elements of a file but verifies the file."""
    return Want(held._replace(header=held.header._replace(shape=(0,), nbytes=0, height=0, row_count=0)))


def find_misfit(part: Held, shape: tuple[int, ...], dtype: VarType) -> Unreadable | None:
    """Return why a file does not hold rows of a table of that shape, or None."""
    header = part.header
    if header.dtype == dtype and header.shape[1:] == shape[1:]:
        return None
    has, keeps = (f"{d.name}{list(s[1:])}" for d, s in ((header.dtype, header.shape), (dtype, shape)))
    return Unreadable(part.name, f"file {part.name} holds rows of {has}, expected {keeps}")
