"""The part of a variable that a save with ``delta=`` writes: nothing, the rows that changed, or all of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array, LoDTensor, SelectedRows, VarType
from paddlelike.core.row_changes import find_written_rows, watch_rows
from paddlelike.errors import PaddlelikeError, SaveError
from paddlelike.formats.paddle import selected_rows
from paddlelike.io.contents.interface import Contents, Held, Value, Want
from paddlelike.io.deltas.chain import Chain, describe_link, list_chains, make_path
from paddlelike.io.deltas.contents import ChainedContents, open_directory, read_link
from paddlelike.io.incremental import Known
from paddlelike.io.save.encoded import Item, describe_item
from paddlelike.ops.kernels.growing_rows import ANY_ID, GrowingRows
from paddlelike.storage.location import Location, Writing

#: Bytes of a table; smaller tables are written whole.
LEAST: Final = 64 << 10
_FAN: Final = 128  # number of links of one level that are folded into one of the next level
_MOST_LINKS: Final = 256  # most links of a chain, so that a load opens few files
_SHARE: Final = 0.5  # share of the whole value's bytes that all links together may take
_GAIN: Final = 0.75  # share of that after folding
_BLOCK: Final = 8 << 20  # bytes that are compared at a time


class Origin(NamedTuple):
    """A directory with chains that a save may continue.

    Attributes
    ----------
    base
        Its path, or None for the directory of the save.
    """

    known: Known
    location: Location
    base: str | None


class Place(NamedTuple):
    """Where a save writes a variable.

    Attributes
    ----------
    path
        The file that the ledger records for it: the last link.
    facts
        The facts of the whole value in this file when it is still to be written; None otherwise.
    """

    path: str
    facts: dict[str, Any] | None


class ChainWriter:
    """The chains of one save.

    When the chain ends in 128 links of one level, these and the new link are folded into one, as in a
    log-structured store. So a changed row is written once more in 128 saves, and a load opens few files. All
    links are folded when there are more than 256, or when they have more than half the bytes of the whole
    value. If folding saves too little, the variable is written whole, as the first link of a new chain.

    Parameters
    ----------
    origins
        The origins, in the order in which they are tried.
    is_base
        Fold the links since the last base (level 0) into one of level 1. A chain that cannot be read is
        replaced by a new one.
    """

    def __init__(self, writing: Writing, origins: Sequence[Origin], *, is_base: bool) -> None:
        self._writing = writing
        self._origins = tuple(origins)
        self._is_base = is_base
        self._chains: dict[int, dict[str, Chain]] = {}
        self._contents: dict[int, Contents] = {}

    def place(self, item: Item, more: Mapping[str, Any], *, shares: bool = True) -> Place | None:
        """Choose the destination of a variable, and pass a link with a copy of its rows to the transaction.

        Return None for a variable in a file of its own name. Only with ``shares`` is a chain of a base
        continued. ``more`` are further facts for each link. ``shards`` says that the table is sharded by id,
        with room for more rows.
        """
        value, array = item.value, item.array
        is_table = isinstance(value, SelectedRows) and (value.height() == ANY_ID or "shards" in more)
        if not (is_table or (type(value) is LoDTensor and not value._lod)) or array.nbytes < LEAST:
            return None
        if array.ndim < 2 or not array.flags.c_contiguous or not len(array):
            return None
        facts = {**more, **describe_item(item)}
        head = self._continue(item, facts, shares=shares)
        if isinstance(value, LoDTensor):
            watch_rows(value)
        if head is not None:
            return Place(head, None)
        run = secrets.token_hex(4)
        return Place(make_path(item.name, run, 0), facts | {"link": describe_link(run, None)})

    def _continue(self, item: Item, facts: Mapping[str, Any], *, shares: bool) -> str | None:
        """Continue a chain of the variable; return the path of its last link, or None if there is none."""
        for index, origin in enumerate(self._origins):
            if origin.base is not None and not shares:
                continue
            chain = self._list_chains(index).get(item.name)
            if chain is None or not _fits(chain, facts):
                continue
            link = self._make_link(item, chain, index)
            found = None if link is None else self._fold(item, chain, link, index)
            if found is None:
                continue
            chain, link, level = found
            if not self._keep(chain, origin):
                continue
            if not len(link.row_array):
                return chain.paths[-1]
            path = chain.path(len(chain.records))
            described = {**facts, "shape": [len(np.asarray(link.held_array)), *chain.shape[1:]]}
            described |= {"kind": "selected_rows", "height": chain.height}
            if chain.kind == VarType.SELECTED_ROWS:
                described["rows"] = len(item.array)
            place = describe_link(chain.run, chain) | ({"level": level} if level else {})
            self._writing.add(path, selected_rows.encode(link), described | {"link": place})
            return path
        return None

    def _keep(self, chain: Chain, origin: Origin) -> bool:
        """Keep the files of a chain. Return False if the files were copied and differ from their records.

        Raises
        ------
        SaveError
            A link was replaced since.
        """
        for at, (path, record) in enumerate(zip(chain.paths, chain.records, strict=True)):
            if self._writing.keep(path, record, base=origin.base):  # C4
                continue
            if not at:
                return False
            raise SaveError(
                f"nothing was saved: link {at} of {chain.variable!r} ({origin.location.path}/{path}) is not "
                "the one that was saved",
                hint="a save without delta= writes whole values; the next one with it begins new chains",
            )
        return True

    def _list_chains(self, index: int) -> dict[str, Chain]:
        found = self._chains.get(index)
        if found is None:
            chains = list_chains(self._origins[index].location)
            found = {name: chain for name, chain in chains.items() if isinstance(chain, Chain)}
            self._chains[index] = found
        return found

    def _make_link(self, item: Item, chain: Chain, index: int) -> SelectedRows | None:
        """Return the changes since the last link, or None if they are unknown."""
        value = item.value
        if isinstance(value, LoDTensor):
            rows = self._find_rows(item, value, chain, index)
            return None if rows is None else SelectedRows(rows, len(item.array), item.array[rows])
        saved = self._read(chain, index)
        return _compare_with(item, saved) if isinstance(saved, SelectedRows) else None

    def _fold(
        self, item: Item, chain: Chain, link: SelectedRows, index: int
    ) -> tuple[Chain, SelectedRows, int] | None:
        """Return the kept part of a chain, the next link and its level, or None to write everything."""
        levels = [record.facts["link"].get("level", 0) for record in chain.records[1:]]
        keep, level = _choose_fold(levels, least=int(self._is_base))
        if not len(link.row_array) and not (self._is_base and keep < len(chain.records)):
            return chain, link, 0
        most = _SHARE * item.array.nbytes
        if keep <= _MOST_LINKS and _sum_bytes(chain, link) <= most:  # C5
            folded = None
            if keep < len(chain.records):
                folded = self._make_folded(item, chain, keep, link, index)
            is_short = len(chain.records) <= _MOST_LINKS
            if folded is None and is_short and not (self._is_base and keep < len(chain.records)):
                return chain, link, 0
            if folded is not None:
                return (*folded, level)
        folded = self._make_folded(item, chain, 1, link, index)
        if folded is None or _sum_bytes(*folded) > _GAIN * most:
            return None
        return (*folded, level + 1)

    def _make_folded(
        self, item: Item, chain: Chain, keep: int, link: SelectedRows, index: int
    ) -> tuple[Chain, SelectedRows] | None:
        """Return the first links of a chain, and one link that replaces all others and ``link``.

        Return None if a link cannot be read, or if its rows cannot be combined.
        """
        short = chain._replace(records=chain.records[:keep])
        location = self._origins[index].location
        if not isinstance(item.value, LoDTensor):
            folded = self._make_link(item, short, index)
            return None if folded is None else (short, folded)
        try:
            links = [read_link(location, chain, at) for at in range(keep, len(chain.records))]
        except (PaddlelikeError, OSError):
            return None
        changed = np.unique(np.concatenate([one.row_array for one in [*links, link]]))
        return short, SelectedRows(changed, len(item.array), item.array[changed])

    def _find_rows(self, item: Item, value: LoDTensor, chain: Chain, index: int) -> Array | None:
        """Return the rows in which a variable differs from its chain, in rising order, or None if unknown."""
        state = self._origins[index].known.find_state(item.holder, chain.head)
        if state is not None and state.array() is item.array:  # C6
            past = item.holder.version - value.version
            rows = find_written_rows(value, state.version - past)
            if rows is not None:
                return rows
        saved = self._read(chain, index)
        return None if saved is None or saved.held_array is None else _compare(item.array, saved.held_array)

    def _read(self, chain: Chain, index: int) -> Value | None:
        """Return the value of a chain, or None if it cannot be read or differs from its records."""
        try:
            contents = self._open(index)
            if isinstance(contents, ChainedContents):
                contents = contents.cut(chain)
            held = contents.look(chain.variable, chain.kind)
            if not isinstance(held, Held):
                return None
            return contents.read([Want(held)]).values[0]
        except (PaddlelikeError, OSError):
            return None

    def _open(self, index: int) -> Contents:
        """Return the values of a directory, which is listed once for all its chains."""
        found = self._contents.get(index)
        if found is None:
            location = self._origins[index].location
            manifest = location.manifest()
            found = open_directory(location, None if manifest is None else manifest.files, complete=False)
            self._contents[index] = found
        return found


def _fits(chain: Chain, facts: Mapping[str, Any]) -> bool:
    """Return whether a variable with these facts has the type and shape of a chain."""
    base = chain.records[0].facts
    count = 1 if "height" in facts else 0  # dims that may change
    keys = ("dtype", "kind", "height", "shards")
    same = [facts.get(key) for key in keys] == [base.get(key) for key in keys]
    return same and list(facts["shape"])[count:] == list(base["shape"])[count:]


def _choose_fold(levels: Sequence[int], *, least: int = 0) -> tuple[int, int]:
    """Return the number of links to keep, the whole value included, and the level of the next link.

    >>> _choose_fold([]), _choose_fold([0] * 126), _choose_fold([0] * 127)
    ((1, 0), (127, 0), (1, 1))
    >>> _choose_fold([1] * 126 + [0] * 127), _choose_fold([1] * 127 + [0] * 127)
    ((127, 1), (1, 2))

    All links of levels below ``least`` are folded:

    >>> _choose_fold([1, 1, 0, 0, 0], least=1)
    (3, 1)
    """
    end, level = len(levels), 0
    while True:
        begin = end
        while begin and levels[begin - 1] == level:
            begin -= 1
        if level >= least and end - begin + 1 < _FAN:
            return end + 1, level
        end, level = begin, level + 1


def _sum_bytes(chain: Chain, link: SelectedRows) -> int:
    """Return the bytes of all links but the whole value."""
    links = sum(record.size for record in chain.records[1:])
    return links + link.row_array.nbytes + np.asarray(link.held_array).nbytes


def _compare_with(item: Item, saved: SelectedRows) -> SelectedRows | None:
    """Return the link from the saved value of a table to its current value, or None if no link can express
    it.
    """
    value = item.value
    assert isinstance(value, SelectedRows)
    table = SelectedRows(value.row_array, value.height(), item.array)
    if table.height() != ANY_ID:
        return _compare_shards(table, saved)
    if not isinstance(value, GrowingRows):  # tables of servers or a store: the order has no meaning
        table = _order_as(table, saved)
    return _compare_tables(table, saved)


def _order_as(table: SelectedRows, saved: SelectedRows) -> SelectedRows:
    """Return a table with the earlier saved rows first, in their saved order."""
    places = table.find_rows(saved.row_array)
    known = places[places >= 0]
    new = np.ones(len(table.row_array), np.bool_)
    new[known] = False
    order = np.concatenate([known, np.flatnonzero(new)])
    return SelectedRows(table.row_array[order], table.height(), np.asarray(table.held_array)[order])


def _compare_tables(table: SelectedRows, saved: SelectedRows) -> SelectedRows:
    """Return the link between two states of a growing table: changed rows, new rows, and removed ids."""
    ids, values, old = table.row_array, table.held_array, saved.held_array
    assert values is not None
    assert old is not None
    gone = np.zeros(len(old), np.bool_)
    stay = len(old)  # old rows in their order, then the others
    if not np.array_equal(ids[:stay], saved.row_array):
        places = saved.find_rows(ids)
        moved = np.flatnonzero((places < 0) | (np.diff(places, prepend=-1) <= 0))
        stay = moved[0] if len(moved) else len(ids)
        gone[:] = True
        gone[places[:stay]] = False
        old = old[places[:stay]]
    changed = _compare(values[:stay], old) if stay else np.empty(0, np.int64)
    rows = np.concatenate([changed, np.arange(stay, len(ids))])
    return SelectedRows(np.concatenate([ids[rows], saved.row_array[gone]]), table.height(), values[rows])


def _compare_shards(table: SelectedRows, saved: SelectedRows) -> SelectedRows | None:
    """Return the link between two states of a shard, or None if ids were removed or its capacity changed."""
    ids, values, old = table.row_array, np.asarray(table.held_array), np.asarray(saved.held_array)
    known = len(saved.row_array)
    changed = _compare(values, old)
    if not np.array_equal(ids[:known], saved.row_array) or (len(changed) and changed[-1] >= len(ids)):
        return None
    rows = np.concatenate([changed[changed < known], np.arange(known, len(ids))])
    return SelectedRows(ids[rows], table.height(), values[rows])


def _compare(array: Array, saved: Array) -> Array:
    """Return the rows whose bytes differ."""
    size = array.nbytes // len(array)
    unit = next(unit for unit in (8, 4, 2, 1) if size % unit == 0)
    new, old = (each.reshape(len(array), -1).view(f"u{unit}") for each in (array, saved))
    step = max(_BLOCK // size, 1)
    found = [
        np.flatnonzero((new[at : at + step] != old[at : at + step]).any(axis=1)) + at
        for at in range(0, len(array), step)
    ]
    return np.concatenate(found)
