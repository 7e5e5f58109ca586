"""Checkpoints behind URLs, where there are no locks.

A checkpoint is removed in two steps. First its markers are removed, so that it is no longer listed, and a
note ``step-<n>.removed`` is written. Its files are removed at the next save, when readers have probably
finished.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator

from paddlelike.errors import PaddlelikeError
from paddlelike.io.checkpoints.store import STEPS, Names
from paddlelike.storage.manifest import Manifest
from paddlelike.storage.remote.base import translate_errors
from paddlelike.storage.remote.directory import RemoteDirectory, locate


class RemoteCheckpointStore:
    """A directory of checkpoints in a remote store."""

    def __init__(self, url: str, names: Names = STEPS) -> None:
        where = locate(url)
        self._prefix = names.prefix
        self._marker = re.compile(rf"({names.pattern})\.(manifest\.json(?:\.\d+)?|removed)")
        self._staging = re.compile(rf"({names.pattern})\.saving-\d+-[0-9a-f]+")
        self.root = where.path
        self._store = where.store
        self._folder = where.root
        self._suspects: dict[str, object] = {}  # maybe stale staging folders, and their files

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def paths(self) -> list[str]:
        found = self._list_kinds()
        return [f"{self.root}/{name}" for name, kinds in found.items() if kinds - {"removed"}]

    def manifest(self, path: str) -> Manifest | None:
        return locate(path).read_marker().manifest

    def is_there(self, path: str) -> bool:
        return bool(locate(path).present())

    def stamp(self, path: str | None = None) -> object:  # noqa: ARG002
        return None  # stores do not say when a folder changed

    @contextlib.contextmanager
    def hold(self, path: str | None) -> Iterator[bool]:
        """Yield whether a checkpoint exists; it is kept at least until the save after the next."""
        yield path is not None and self.manifest(path) is not None

    def reserve(self, path: str) -> None:
        """Delete the files of a removed checkpoint at this path, and the record of its removal."""
        name = path.rpartition("/")[2]
        with translate_errors(path):
            if "removed" in self._list_kinds(name).get(name, ()):
                self._clear(locate(path), name)

    def sync(self, path: str) -> None:
        """Do nothing: a store keeps what it has accepted."""

    def remove(self, path: str) -> None:
        where = locate(path)
        name = path.rpartition("/")[2]
        with contextlib.suppress(PaddlelikeError), translate_errors(path):
            self._store.put(f"{where.base}.removed", b"")
            markers = self._list_kinds(name)[name] - {"removed"}
            self._store.remove(self._folder, [f"{name}.{kind}" for kind in markers])
            self._suspects[name] = None  # its files are deleted at the next sweep

    def sweep(self) -> None:
        with contextlib.suppress(PaddlelikeError), translate_errors(self.root):
            listed = self._store.list_prefix(f"{self._folder}/{self._prefix}")
            for name, kinds in self._group_kinds(listed).items():
                if "removed" in kinds and self._suspects.pop(name, name) is not None:
                    self._clear(locate(f"{self.root}/{name}"), name, only_note=len(kinds) > 1)
            names = [name for name in listed if self._staging.fullmatch(name)]
            stagings = {name: self._store.find(f"{self._folder}/{name}") for name in names}
            for name, files in stagings.items():
                if self._suspects.get(name) == files:  # unchanged since the last save
                    self._store.remove(f"{self._folder}/{name}", list(files))
            self._suspects |= stagings

    def recover(self) -> None:
        """Do nothing: without locks, only files unchanged during a whole save are surely leftovers."""

    def _list_kinds(self, begin: str | None = None) -> dict[str, set[str]]:
        with translate_errors(self.root):
            begin = self._prefix if begin is None else begin
            return self._group_kinds(self._store.list_prefix(f"{self._folder}/{begin}"))

    def _clear(self, where: RemoteDirectory, name: str, *, only_note: bool = False) -> None:
        if not only_note:
            self._store.remove(where.root, list(self._store.find(where.root)))
        self._store.remove(self._folder, [f"{name}.removed"])

    def _group_kinds(self, names: Iterable[str]) -> dict[str, set[str]]:
        """Return the kinds of files beside each checkpoint: markers, and the record of its removal."""
        found: dict[str, set[str]] = {}
        for name in names:
            match = self._marker.fullmatch(name)
            if match:
                found.setdefault(match[1], set()).add(match[2])
        return found
