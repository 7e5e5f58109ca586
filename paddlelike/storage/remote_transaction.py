"""All-or-nothing saves into directories behind URLs, by a marker.

The marker is the manifest, ``DIR.manifest.json``: it lists the files that count. A save puts what changed
into ``DIR.saving-<id>/`` and then replaces the marker by one that says so (``"at"``): that is the commit.
Afterwards the files move to their plain names in ``DIR/``, and the marker is written once more. Whoever
reads meanwhile, or after a saver was killed on its way, finds a file in the one place or in the other. Where
nothing was before, the files go to their plain names at once, under a marker that lists nothing yet.

A directory without a marker, such as one that Fluid saved and somebody uploaded, counts as it is. A saver
that is killed before its commit leaves a ``DIR.saving-<id>/`` that nobody reads and anybody may remove. Two
savers at the same time: the second notices it at its commit, but for the instant between look and write.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from paddlelike.errors import SaveError, StorageError
from paddlelike.storage import hashing, manifest
from paddlelike.storage.local import Path
from paddlelike.storage.manifest import Manifest, Record
from paddlelike.storage.names import relative_path
from paddlelike.storage.stores import Info, told
from paddlelike.storage.transaction import Committed
from paddlelike.storage.writing import Buffer

if TYPE_CHECKING:
    from paddlelike.storage.remote import RemotePlace

__all__ = ["RemoteTransaction", "without_places"]

_HASHED: Final = 1 << 20  # bytes that are hashed, then sent


def without_places(found: Manifest) -> Manifest:
    """A marker without what is said of places."""
    files = {
        path: record._replace(facts={key: value for key, value in record.facts.items() if key != "at"})
        for path, record in found.files.items()
    }
    return Manifest(files, found.program, found.library, found.time, None, False, found.state)


class RemoteTransaction:
    """Collects files for a directory of a store; :meth:`commit` writes them, see the top of this file."""

    def __init__(
        self, where: RemotePlace, checksum: hashing.Algorithm | None, program: str | None, state: Any
    ) -> None:
        self._place = where
        self._store = where.store
        self._checksum = checksum
        self._program = program
        self._state = state
        self._pieces: dict[str, tuple[Iterable[Buffer], Mapping[str, Any]]] = {}
        self._kept: dict[str, Record] = {}
        self._shared: dict[str, tuple[str, Record]] = {}  # path -> the folder it is in
        self._bases: dict[str, RemotePlace | None] = {}
        self._listings: dict[str, dict[str, Info]] = {}

    def add(self, name: str, buffers: Iterable[Buffer], facts: Mapping[str, Any] | None = None) -> None:
        """Add the file of variable ``name``. The buffers are read at the commit, not copied now."""
        self._pieces[self._new_path(name)] = buffers, facts or {}

    def keep(self, name: str, record: Record, *, base: Path | None = None) -> bool:
        """Let the file of ``name`` be the one that was saved as ``record``; False: it is not there."""
        other = self._place if base is None else self._base(os.fspath(base))
        if other is None:
            return False
        if other.root not in self._listings:
            with told(other.path):
                self._listings[other.root] = other.store.find(other.root)
        path = relative_path(name)
        info = self._listings[other.root].get(path)
        if info is None or info.size != record.size or info.stamp != record.stamp:
            return False
        path = self._new_path(name)
        if other.root == self._place.root:
            self._kept[path] = record
        else:
            self._shared[path] = other.root, record
        return True

    def commit(self) -> Committed:
        """Write all files and let the marker list them.

        Raises
        ------
        SaveError
            With the reason; the directory is as it was.
        """
        where, store = self._place, self._store
        if not (self._pieces or self._kept or self._shared):
            return Committed(where.path, {})
        folder = f"{where.root}.saving-{secrets.token_hex(4)}"
        changed = [*self._pieces, *self._shared]
        try:
            with told(where.path):
                data, before = where.read_marker()
                if before is not None and where.staged(before):
                    _settle(where, before)
                    data, before = where.read_marker()
                present = store.find(where.root)
                others = _others(before, present)
                if not present and not others:
                    folder = where.root
                    data = self._encoded({})
                    store.put(where.marker, data)
                try:
                    records = self._write(folder)
                    if where.read_marker()[0] != data:
                        raise SaveError(
                            f"{where.path} was saved by somebody else at the same time; nothing was changed",
                            hint="save again, or into another directory",
                        )
                    at = {} if folder == where.root else {"at": folder}
                    listed = {path: _with(record, at) for path, record in records.items()}
                    store.put(where.marker, self._encoded(others | self._kept | listed))
                except BaseException:
                    with contextlib.suppress(Exception):
                        store.remove(folder, changed)
                        if folder == where.root and before is None:
                            above, _, name = where.marker.rpartition("/")
                            store.remove(above, [name])
                    raise
                records = self._finish(folder, changed, records, others)
        except StorageError as error:
            reason = error.message if error.__cause__ is None else error.__cause__
            raise SaveError(f"{where.path} cannot be written: {reason}", hint=error.hint) from error
        written = [records[path].size for path in self._pieces]
        mine = {path: records[path] for path in changed} | self._kept
        return Committed(where.path, mine, len(written), sum(written), len(mine) - len(written))

    def _write(self, folder: str) -> dict[str, Record]:
        """Put what changed into a folder; the stamps of the records are not known yet."""
        hashed = {path: _Hashed(buffers, self._checksum) for path, (buffers, _) in self._pieces.items()}
        if hashed:
            self._store.write(folder, hashed)
        for source in {root for root, _ in self._shared.values()}:
            self._store.copy(source, folder, [p for p, (root, _) in self._shared.items() if root == source])
        records = {
            path: Record(hashed[path].size, hashed[path].checksum, (0, 0), facts)
            for path, (_, facts) in self._pieces.items()
        }
        shared = {path: record._replace(stamp=(0, 0)) for path, (_, record) in self._shared.items()}
        return records | shared

    def _finish(
        self, folder: str, changed: list[str], records: dict[str, Record], others: dict[str, Record]
    ) -> dict[str, Record]:
        """After the commit: plain names and stamps. What cannot be done now is done by the next save."""
        where = self._place
        with contextlib.suppress(Exception):
            if folder != where.root:
                self._store.move(folder, where.root, changed)
            present = self._store.find(where.root)
            records = {
                path: record._replace(stamp=present[path].stamp) if path in present else record
                for path, record in records.items()
            }
            self._store.put(where.marker, self._encoded(others | self._kept | records))
        return records

    def _encoded(self, files: Mapping[str, Record]) -> bytes:
        return manifest.encode(files, program=self._program, state=self._state)

    def _base(self, path: str) -> RemotePlace | None:
        """The directory to share with; None where it is in another store."""
        from paddlelike.storage import places

        if path not in self._bases:
            other = places.place(path)
            here = isinstance(other, type(self._place)) and other.store.same(self._store)
            self._bases[path] = other if here else None  # type: ignore[assignment]
        return self._bases[path]

    def _new_path(self, name: str) -> str:
        path = relative_path(name)
        if path in self._pieces or path in self._kept or path in self._shared:
            raise StorageError(f"variable {name!r} would be the same file as another one")
        return path


class _Hashed:
    """Buffers in pieces, which are hashed as they go by."""

    def __init__(self, buffers: Iterable[Buffer], algorithm: str | None) -> None:
        self._buffers = buffers
        self._algorithm = algorithm
        self.size = 0
        self.checksum: str | None = None

    def __iter__(self) -> Iterator[Buffer]:
        hasher = None if self._algorithm is None else hashing.hasher(self._algorithm)
        self.size = 0  # a second time, where the first one failed
        for buffer in self._buffers:
            view = memoryview(buffer).cast("B")
            for at in range(0, len(view), _HASHED):
                piece = view[at : at + _HASHED]
                if hasher is not None:
                    hasher.update(piece)
                self.size += len(piece)
                yield piece
        if hasher is not None:
            self.checksum = f"{self._algorithm}:{hasher.hexdigest()}"


def _settle(where: RemotePlace, found: Manifest) -> None:
    """Move the files of a save that was killed after its commit."""
    for folder in where.staged(found):
        mine = {name for name, record in found.files.items() if record.facts.get("at") == folder}
        where.store.move(folder, where.root, sorted(mine & where.store.find(folder).keys()))
    data = manifest.encode(without_places(found).files, program=found.program, state=found.state)
    where.store.put(where.marker, data)


def _others(before: Manifest | None, present: Mapping[str, Info]) -> dict[str, Record]:
    """The files that were there before and count."""
    if before is None:
        return {path: Record(info.size, None, info.stamp) for path, info in present.items()}
    return {path: record for path, record in before.files.items() if path in present}


def _with(record: Record, more: Mapping[str, Any]) -> Record:
    return record._replace(facts={**record.facts, **more}) if more else record
