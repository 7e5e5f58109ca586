"""All-or-nothing saves into directories behind URLs, by markers (see :mod:`.marker`).

A save writes the changed files into ``DIR.saving-<n>-<id>/`` and commits by creating marker n, which lists
them. Afterwards the files move to their plain names in ``DIR/``. Meanwhile, or after a kill, readers look in
both places.

A directory without a marker, such as an uploaded one, is read as it is. Of two saves at the same time one
creates the marker; the other raises an error and leaves nothing visible. The next committed save removes the
leftovers of killed processes: folders with its number or a lower one, since such saves can no longer commit.

In a store without cheap renames a move is a copy inside the store (on S3's servers, many files at once).
Files are not written to their plain names directly, since two saves would mix there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from paddlelike.errors import SaveError, StorageError
from paddlelike.foundation.progress import advance_progress, show_progress
from paddlelike.storage import hashing
from paddlelike.storage.interfaces import Buffer, Committed, Contents, Path
from paddlelike.storage.manifest import Author, Record, encode
from paddlelike.storage.names import is_remote, relative_path
from paddlelike.storage.options import SaveOptions
from paddlelike.storage.remote import marker
from paddlelike.storage.remote.base import Info, translate_errors
from paddlelike.storage.remote.finishing import finish_committed, move_into_place, split_path
from paddlelike.storage.remote.marker import Marker, RemoteRoot
from paddlelike.storage.verification import find_stale, find_superseded

_HASHED: Final = 1 << 20  # bytes that are hashed and then sent at a time


class RemoteTransaction:
    """Collects files for a directory of a store; :meth:`commit` writes them."""

    def __init__(
        self,
        where: RemoteRoot,
        options: SaveOptions,
        author: Author,
        state: Any,
        locate: Callable[[str], RemoteRoot],
    ) -> None:
        self._location = where
        self._store = where.store
        self._options = options
        self._checksum = options.checksum
        self._author = author
        self._state = state
        self._locate = locate  # for the directory with shared files
        self._pieces: dict[str, tuple[Iterable[Buffer], Mapping[str, Any]]] = {}
        self._kept: dict[str, Record] = {}
        self._shared: dict[str, tuple[str, Record]] = {}  # path -> its folder
        self._bases: dict[str, RemoteRoot | None] = {}
        self._listings: dict[str, dict[str, Info]] = {}

    def add(self, name: str, buffers: Iterable[Buffer], facts: Mapping[str, Any] | None = None) -> None:
        """Add the file of variable ``name``. The buffers are read at the commit, not copied now.

        Raises
        ------
        StorageError
            The name cannot be a file, or another variable has it.
        """
        self._pieces[self._new_path(name)] = buffers, facts or {}

    def reserve(self, *, wait: bool = False) -> bool:
        """Do nothing: without locks, only one of two simultaneous saves gets the marker."""
        return True

    def release(self) -> None:
        """Do nothing."""

    def keep(
        self, name: str, record: Record, *, base: Path | None = None, otherwise: Contents | None = None
    ) -> bool:
        """Keep the file of ``name`` that was saved as ``record``; return False if it is missing.

        ``otherwise`` is not used, since a store has no locks: the second save to commit fails, and its error
        says to save again.

        Raises
        ------
        StorageError
            The store cannot be reached, or the name cannot be a file.
        """
        other = self._location if base is None else self._base(os.fspath(base))
        if other is None:
            return False
        if other.root not in self._listings:
            with translate_errors(other.path):
                self._listings[other.root] = other.store.find(other.root)
        path = relative_path(name)
        info = self._listings[other.root].get(path)
        if not _is_still(record, info):
            return False
        path = self._new_path(name)
        record = record._replace(author=self._author)
        if other.root == self._location.root:
            self._kept[path] = record
        else:
            self._shared[path] = other.root, record
        return True

    def commit(self) -> Committed:
        """Write all files and create the marker that lists them.

        Raises
        ------
        SaveError
            The save failed; the directory is unchanged.
        """
        where = self._location
        if not (self._pieces or self._kept or self._shared):
            return Committed(where.path, {})
        try:
            with translate_errors(where.path):
                records, stale, removed = self._commit()
        except StorageError as error:
            reason = error.message if error.__cause__ is None else error.__cause__
            raise SaveError(f"{where.path} cannot be written: {reason}", hint=error.hint) from error
        written = [records[path].size for path in self._pieces]
        mine = {path: records[path] for path in (*self._pieces, *self._shared, *self._kept)}
        return Committed(
            where.path,
            mine,
            written=len(written),
            nbytes=sum(written),
            kept=len(mine) - len(written),
            stale=stale,
            removed=removed,
        )

    def _commit(self) -> tuple[dict[str, Record], tuple[str, ...], tuple[str, ...]]:
        """Return the records of all files, the stale files, and the removed stale files."""
        where, store = self._location, self._store
        before = finish_committed(where, where.read_marker())
        present = where.present()
        others = _others(before, present)
        self._check_kept(present)
        mine = {*self._pieces, *self._kept, *self._shared}
        left = {path: record for path, record in others.items() if path not in mine}
        stale = tuple(
            path for path in find_stale(left, self._author) if _is_still(left[path], present.get(path))
        )
        kept = [*self._kept.values(), *(record for _, record in self._shared.values())]
        facts = [facts for _, facts in self._pieces.values()] + [record.facts for record in kept]
        superseded = tuple(find_superseded(left, facts))
        stale = tuple(path for path in stale if path not in superseded)
        gone = superseded + (stale if self._options.remove_stale else ())
        last = before.manifest
        if self._state is None and last is not None and last.program != self._author.program:
            self._state = last.state  # the other program's
        number = before.number + 1
        folder = marker.make_staging(where.base, number, secrets.token_hex(4))
        changed = [*self._pieces, *self._shared]
        safe = True  # for removing written files
        try:
            records = self._write(folder) | self._kept
            files = {path: record for path, record in left.items() if path not in gone} | records
            at = dict.fromkeys(changed, folder)
            if not at.keys() <= (store.find(folder).keys() if at else set()):
                if marker.find_newest(store, where.base) >= number:
                    raise self._conflict_error()
                raise SaveError(f"{folder} was removed by somebody during the save", hint="save again")
            data = self._encode(files, at, gone)
            safe = False
            mark = marker.make_path(where.base, number)
            # S12
            if not self._create(mark, data):
                safe = True
                raise self._conflict_error()
            if self._find_newest(mark) > number:  # another save removed it
                store.remove(*split_path(mark))
                safe = True
                raise self._conflict_error()
        except BaseException as error:
            with contextlib.suppress(Exception):
                # otherwise the marker may exist, or appear later
                if safe or (isinstance(error, PermissionError) and not store.list_prefix(mark)):
                    store.remove(folder, changed)
            raise
        files = self._finish(Marker(number), files, at, gone)
        removed = stale if self._options.remove_stale else ()
        return {path: files[path] for path in mine}, () if removed else stale, removed

    def _create(self, mark: str, data: bytes) -> bool:
        """Create the marker; return False if another save has created it. If the response is lost, look it
        up.

        Raises
        ------
        SaveError
            The store does not say whether it has the marker.
        """
        try:
            return self._store.create(mark, data)
        except Exception as error:
            try:
                found = self._store.read(mark)
                if found != data and data.startswith(found):
                    raise error from None  # truncated, or not yet whole
                return found == data
            except FileNotFoundError:
                raise error from None  # it does not exist
            except Exception as second:
                if second is error or isinstance(error, PermissionError):
                    raise
                raise SaveError(
                    f"{self._location.path} may hold this save or the one before: the store failed while "
                    f"{mark}, which commits it, was written: {str(error) or type(error).__name__}",
                    hint="load it to see, or save again",
                ) from error

    def _find_newest(self, mark: str) -> int:
        """Return the number of the newest marker, after this save's marker was written to ``mark``."""
        try:
            return marker.find_newest(self._store, self._location.base)
        except Exception as error:
            raise SaveError(
                f"{self._location.path} was saved, unless another process saved at the same time: {mark} was "
                f"written, but then the store failed: {str(error) or type(error).__name__}",
                hint="load it to see, or save again",
            ) from error

    def _check_kept(self, present: Mapping[str, Info]) -> None:
        for path, record in self._kept.items():
            if not _is_still(record, present.get(path)):
                raise SaveError(
                    f"{self._location.path}/{path} was changed by somebody else during the save",
                    hint="save again",
                )

    def _conflict_error(self) -> SaveError:
        return SaveError(
            f"{self._location.path} was saved by somebody else at the same time; it holds what they saved",
            hint="save again, or into another directory",
        )

    def _write(self, folder: str) -> dict[str, Record]:
        """Write the changed files into a folder. Their records get stamps later."""
        hashed = {path: _Hashed(buffers, self._checksum) for path, (buffers, _) in self._pieces.items()}
        if hashed:
            with show_progress(f"writing {self._location.path}"):
                self._store.write(folder, hashed)
        for source in {root for root, _ in self._shared.values()}:
            self._store.copy(source, folder, [p for p, (root, _) in self._shared.items() if root == source])
        facts = {path: piece[1] for path, piece in self._pieces.items()}
        records = {
            path: Record(one.size, one.checksum, (0, 0), facts[path], one.pieces, self._author, one.parts)
            for path, one in hashed.items()
        }
        shared = {path: record._replace(stamp=(0, 0)) for path, (_, record) in self._shared.items()}
        return records | shared

    def _finish(
        self, of: Marker, files: dict[str, Record], at: Mapping[str, str], gone: Iterable[str]
    ) -> dict[str, Record]:
        """Move files to their plain names and record their stamps; the next save completes moves that
        failed.
        """
        with contextlib.suppress(Exception):
            return move_into_place(self._location, of, files, at, gone, self._encode_final)
        return files

    def _encode(
        self, files: Mapping[str, Record], at: Mapping[str, str] | None = None, gone: Iterable[str] = ()
    ) -> bytes:
        is_prefix = self._location.is_prefix
        return marker.encode(
            files, at=at, gone=gone, is_prefix=is_prefix, author=self._author, state=self._state
        )

    def _encode_final(self, files: Mapping[str, Record]) -> tuple[bytes, bytes | None]:
        """Return the final marker and the manifest for the directory."""
        if not self._options.manifest:
            return self._encode(files), None
        return self._encode(files), encode(
            files, author=self._author, is_prefix=self._location.is_prefix, state=self._state
        )

    def _base(self, path: str) -> RemoteRoot | None:
        """Return the directory with which to share files, or None if it is in another store."""
        if path not in self._bases:
            other = self._locate(path) if is_remote(path) else None
            is_near = other is not None and other.store.is_same(self._store)
            self._bases[path] = other if is_near else None
        return self._bases[path]

    def _new_path(self, name: str) -> str:
        path = relative_path(name)
        if path in self._pieces or path in self._kept or path in self._shared:
            raise StorageError(f"variable {name!r} would be the same file as another one")
        return path


class _Hashed:
    """Buffers in pieces, hashed while they are sent."""

    def __init__(self, buffers: Iterable[Buffer], algorithm: str | None) -> None:
        self._buffers = buffers
        self._algorithm = algorithm
        self.size = 0
        self.checksum: str | None = None
        self.pieces: tuple[str, ...] = ()
        self.parts = ""

    def __iter__(self) -> Iterator[Buffer]:
        hasher = None if self._algorithm is None else hashing.new_hasher(self._algorithm)
        self.size = 0  # again, after a failure
        for buffer in self._buffers:
            view = memoryview(buffer).cast("B")
            for at in range(0, len(view), _HASHED):
                piece = view[at : at + _HASHED]
                if hasher is not None:
                    hasher.update(piece)
                self.size += len(piece)
                yield piece
                advance_progress(len(piece))
        if hasher is not None:
            self.checksum, self.pieces, self.parts = hashing.finish(hasher, str(self._algorithm))


def _others(before: Marker, present: Mapping[str, Info]) -> dict[str, Record]:
    """Return the earlier files that belong to the directory."""
    if before.manifest is None:
        return {path: Record(info.size, None, info.stamp) for path, info in present.items()}
    return {path: record for path, record in before.manifest.files.items() if path in present}


def _is_still(record: Record, info: Info | None) -> bool:
    return info is not None and (info.size, info.stamp) == (record.size, record.stamp)
