"""One storage transaction of a save: files of unchanged variables are kept, the others are written."""

from __future__ import annotations

import functools
import os
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from paddlelike.core import LoDTensor, ScopeVariable
from paddlelike.errors import SaveError
from paddlelike.formats.paddle import lod_tensor, selected_rows
from paddlelike.formats.paddle.directory import encode_value
from paddlelike.formats.sources import Buffer
from paddlelike.io.incremental import get_state, ledger
from paddlelike.io.partition import GatheredFile
from paddlelike.io.report import Moved, SaveReport
from paddlelike.io.save.chains import LEAST, ChainWriter, Origin
from paddlelike.io.save.copies import Copies
from paddlelike.io.save.encoded import Item, check_value, describe_combined, describe_item, encode_combined
from paddlelike.storage.interfaces import Contents
from paddlelike.storage.location import Location, Writing, is_remote, locate
from paddlelike.storage.manifest import Record
from paddlelike.storage.options import DEFAULT_OPTIONS, SaveOptions

_SERIES: Final = 15  # turns between two writes of a file; odd, since every second save may share it


class Writer:
    """Collects the variables of a save into one location and writes them in one transaction.

    Parameters
    ----------
    where
        The directory.
    program
        The fingerprint of the program, for the manifest.
    state
        Additional state for the manifest, anything that JSON can hold.
    part
        The name of this selection of variables for the manifest, such as "params".
    turn
        The index of this save in its series. Each file is written again in one of 15 turns, even if its value
        has not changed, so that undetected damage to a shared file is not passed on for ever.
    writing
        A transaction that the caller commits; everything is written, no file is kept.
    """

    def __init__(
        self,
        where: Location,
        options: SaveOptions = DEFAULT_OPTIONS,
        *,
        program: str | None = None,
        state: Any = None,
        part: str | None = None,
        turn: int | None = None,
        writing: Writing | None = None,
    ) -> None:
        self.where = where
        self._turn = turn
        self._options = options
        self._is_whole = writing is None
        self._writing = writing or where.begin(options, program=program, state=state, part=part)
        self._singles: dict[str, Item] = {}
        self._combined: dict[str, list[Item]] = {}
        self._gathered: Sequence[GatheredFile] = ()
        self._moved: dict[str, Moved] = {}
        self._origins: dict[str | None, list[Origin]] = {}
        self._heads: dict[str, str] = {}  # the last links of variables in chains
        self._may_keep = True  # files in place
        self._chains: ChainWriter | None = None  # for saves with deltas
        self._held: dict[str, tuple[Iterable[Buffer], dict[str, Any]]] | None = None

    def add(self, file: str, item: Item) -> None:
        """Save a variable in its own file; a later call replaces the value.

        Raises
        ------
        SaveError
            Another variable has this file.
        """
        other = self._singles.setdefault(file, item)
        if other is item:
            return
        if other.name != item.name:
            raise SaveError(
                f"variables {other.name!r} and {item.name!r} cannot be saved: both would be {file!r}",
                hint="rename one of them (ParamAttr(name=...)), or use filename= for one file",
            )
        self._singles[file] = item

    def add_combined(self, file: str, items: Sequence[Item]) -> None:
        """Save variables in one file, in this order."""
        self._combined[file] = list(items)

    def add_gathered(self, gathered: Sequence[GatheredFile]) -> None:
        """Save files whose bytes come from other processes."""
        self._gathered = gathered

    def prepare(self, copies: Copies | None = None) -> None:
        """Decide which files are kept, and pass the others to the transaction.

        The arrays are read at the commit. ``copies`` holds the current values of files to write, and of kept
        files that another save can replace before the commit.

        Raises
        ------
        SaveError
            A combined file cannot hold a variable.
        StorageError
            Two files would have the same path.
        """
        delta = bool(self._options.delta)
        is_sure = (copies is None and not delta) or self._writing.reserve(wait=delta)
        self._may_keep = is_sure or not delta
        self._held = {} if copies is not None and not is_sure and self.where.exists() else None
        # Now, because a training step during the commit may replace the arrays.
        items = [*self._singles.values(), *(item for items in self._combined.values() for item in items)]
        self._moved = {item.name: item.moved for item in items}
        self._moved |= {one.name: one.moved for one in self._gathered}
        changed = self._singles
        if any(origin.known for origin in self._list_origins(None)):
            changed = {file: item for file, item in changed.items() if not self._is_kept(file, item)}
        if self._options.delta and self._is_whole:
            self._chains = ChainWriter(
                self._writing, self._list_origins(None), is_base=self._options.delta == "base"
            )
        singles, links = self._place(changed)
        combined = {f: items for f, items in self._combined.items() if not self._are_kept(f, items)}
        whole = {file: _encode_single(item) for file, item in singles.items()}
        whole |= {file: _encode_several(items) for file, items in combined.items()}
        contents: list[Iterable[Buffer]] = [buffers for buffers, _ in whole.values()]
        if copies is not None:
            kept = self._encode_kept(whole) if self._held is not None else {}
            contents = copies.hold([buffers for buffers, _ in (*whole.values(), *kept.values())])
            for (file, (_, facts)), held in zip(kept.items(), contents[len(whole) :], strict=True):
                self._held[file] = held, facts  # type: ignore[index]
            del contents[len(whole) :]
            self._singles = {file: _let_go(item) for file, item in self._singles.items()}
            self._combined = {file: [_let_go(one) for one in items] for file, items in self._combined.items()}
        for (file, (_, facts)), buffers in zip(whole.items(), contents, strict=True):
            self._writing.add(file, buffers, links.get(file, facts))
        for one in self._gathered:
            self._add_gathered(one)

    def _encode_kept(self, written: Collection[str]) -> dict[str, tuple[list[Buffer], dict[str, Any]]]:
        """Return the contents of the kept files, as this save would write them."""
        kept = {file: _encode_single(item) for file, item in self._singles.items() if file not in written}
        return kept | {f: _encode_several(items) for f, items in self._combined.items() if f not in written}

    def _make_again(
        self, file: str, encode: Callable[[], tuple[list[Buffer], dict[str, Any]]]
    ) -> Contents | None:
        """Return a function that encodes a kept file if another save replaces it before the commit."""
        if self._options.blocking:
            return encode
        return None if self._held is None else functools.partial(self._held.__getitem__, file)

    def release(self) -> None:
        """Let other saves begin if this one was not committed."""
        self._writing.release()

    def commit(self, begin: float) -> SaveReport:
        """Write everything and record it in the ledger; ``begin`` is when the save began.

        Raises
        ------
        SaveError
            A file cannot be written; the directory is unchanged.
        """
        done = self._writing.commit()
        if self._singles or not self._combined:
            saved = [
                (item.holder, item.state, done.files[self._heads.get(file, file)])
                for file, item in self._singles.items()
            ]
            ledger.note_saved(self.where, None, saved)
        for file, items in self._combined.items():
            saved = [(item.holder, item.state, done.files[file]) for item in items]
            ledger.note_saved(self.where, file, saved)
        return SaveReport(
            target=self.target,
            saved=self._moved,
            seconds=time.perf_counter() - begin,
            written=done.written,
            written_bytes=done.nbytes,
            manifest_bytes=done.manifest_bytes,
            kept=done.kept,
            stale=done.stale,
            removed=done.removed,
            notes=done.notes,
        )

    @property
    def target(self) -> str:
        """The directory, or the combined file if nothing else is saved."""
        alone = not self._singles and len(self._combined) == 1
        return os.path.join(self.where.path, *self._combined) if alone else self.where.path

    def _place(self, items: Mapping[str, Item]) -> tuple[dict[str, Item], dict[str, dict[str, Any]]]:
        """Return the variables to write whole, by file, and the manifest entries of those that begin a
        chain.
        """
        whole: dict[str, Item] = {}
        links: dict[str, dict[str, Any]] = {}
        if self._chains is None:
            return dict(items), links
        for file, item in items.items():
            place = None
            if file == item.name:
                place = self._chains.place(item, {}, shares=not self._is_due(file))
            if place is None:
                whole[file] = item
                continue
            self._heads[file] = place.path
            if place.facts is not None:
                whole[place.path], links[place.path] = item, place.facts
        return whole, links

    def _add_gathered(self, one: GatheredFile) -> None:
        """Pass a file of other processes to the transaction; for a chain, only changed rows.

        Meanwhile the whole value is in memory; if it begins a chain, it stays there until the commit.
        """
        if self._chains is not None and one.pull is not None and one.moved.nbytes >= LEAST:
            read = selected_rows.read if "height" in one.facts else lod_tensor.read
            holder = ScopeVariable(one.name)
            holder.set_value(read(one.pull()))
            item = Item(one.name, holder, check_value(one.name, holder.value), get_state(holder))
            place = self._chains.place(item, one.facts, shares=not self._is_due(one.name))
            if place is not None:
                if place.facts is not None:
                    self._writing.add(place.path, encode_value(item.value), place.facts)
                return
        self._writing.add(one.name, one.buffers, one.facts)

    def _is_kept(self, file: str, item: Item) -> bool:
        """Return whether the file of an unchanged variable is kept, or shared with the base."""
        for known, _, base in self._list_origins(None):
            if base is not None and self._is_due(file):
                continue
            record = known.find_saved(item.holder)
            if record is None or "link" in record.facts:
                record = known.find_loaded(item.holder, file)
                if record is None or record.facts != describe_item(item):
                    continue
            again = self._make_again(file, functools.partial(_encode_single, item))
            if self._has_checksum(record) and self._writing.keep(file, record, base=base, otherwise=again):
                return True
        return False

    def _are_kept(self, file: str, items: list[Item]) -> bool:
        """Return whether a combined file is kept, because all its variables are unchanged."""
        for known, _, base in self._list_origins(file):
            if base is not None and self._is_due(file):
                continue
            records = [known.find_saved(item.holder) for item in items]
            record = records[0]
            if record is None or not self._has_checksum(record):
                continue
            if any(other is not record for other in records) or record.facts != describe_combined(items):
                continue
            again = self._make_again(file, functools.partial(_encode_several, items))
            if self._writing.keep(file, record, base=base, otherwise=again):
                return True
        return False

    def _list_origins(self, filename: str | None) -> list[Origin]:
        """Return the directory and the base of the save, with their entries in the ledger."""
        found = self._origins.get(filename)
        if found is None:
            found = self._origins[filename] = []
            if self._is_whole:
                if self._may_keep:
                    found.append(Origin(ledger.known(self.where, filename), self.where, None))
                base = self._options.base
                if base is not None and is_remote(base) == is_remote(self.where.path):
                    other = locate(base)
                    found.append(Origin(ledger.known(other, filename), other, other.path))
        return found

    def _is_due(self, file: str) -> bool:
        """Return whether this save writes a file again although it is unchanged: each file once in
        ``_SERIES`` turns.
        """
        if self._turn is None:
            return False
        return (self._turn + zlib.crc32(file.encode("utf-8", "surrogatepass"))) % _SERIES == 0

    def _has_checksum(self, record: Record) -> bool:
        """Return whether a file has a checksum of the requested algorithm."""
        checksum = self._options.checksum
        if checksum is None:
            return True
        return record.checksum is not None and record.checksum.startswith(checksum)


def _let_go(item: Item) -> Item:
    """Return a variable without its value, so that its memory can be released."""
    return item._replace(value=LoDTensor())


def _encode_single(item: Item) -> tuple[list[Buffer], dict[str, Any]]:
    """Return the file of a variable and its facts."""
    return encode_value(item.value), describe_item(item)


def _encode_several(items: Sequence[Item]) -> tuple[list[Buffer], dict[str, Any]]:
    """Return a combined file and its facts. Raises SaveError where it cannot hold one of them."""
    return encode_combined(items), describe_combined(items)
