"""Markers: the manifests of directories behind URLs, one per save; the highest number is the newest.

``DIR.manifest.json.<n>`` is created by a call that fails if the file exists. This commits the n-th save: of
two saves that began with the same marker, one succeeds and the other raises an error. A marker is never
overwritten, and only lower numbers are removed. ``DIR/__manifest__`` is a copy in the local form, for copies
of the directory. It is also the manifest of a directory without a marker, such as an uploaded one.

Besides the files, a marker lists the files that are still in ``DIR.saving-<n>-<id>/``, from where they move
to their plain names, and the files of an earlier save that are still to be removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage import manifest
from paddlelike.storage.manifest import NOBODY, Author, Manifest, Record
from paddlelike.storage.names import MANIFEST, is_manifest
from paddlelike.storage.remote.base import Info, Store, translate_errors

_TRIES: Final = 5  # attempts to read the newest one while others save


class Marker(NamedTuple):
    """A marker that was read. Its number is 0 for a directory without markers; the manifest may be None."""

    number: int = 0
    data: bytes = b""
    manifest: Manifest | None = None
    at: Mapping[str, str] = {}  # folders of the files that are not yet at their plain names
    gone: tuple[str, ...] = ()  # files that are still to be removed


def make_copy_path(base: str, *, is_prefix: bool) -> str:
    """Return the path of the manifest inside the directory, or of the manifest of files with a prefix.

    >>> make_copy_path("bucket/model", is_prefix=False), make_copy_path("bucket/net", is_prefix=True)
    ('bucket/model/__manifest__', 'bucket/net.pdmanifest')
    """
    return f"{base}.pdmanifest" if is_prefix else f"{base}/{MANIFEST}"


def make_path(base: str, number: int | None = None) -> str:
    """Return the path of a marker, or without a number the path of the copy that earlier versions wrote.

    >>> make_path("bucket/model", 3), make_path("bucket/model")
    ('bucket/model.manifest.json.3', 'bucket/model.manifest.json')
    """
    return f"{base}.manifest.json" if number is None else f"{base}.manifest.json.{number}"


def make_staging(base: str, number: int, token: str) -> str:
    """Return the folder in which the files of save ``number`` are staged."""
    return f"{base}.saving-{number}-{token}"


def list_stagings(names: Iterable[str], base: str, number: int) -> list[str]:
    """Return, among names beside ``base``, the folders of saves that cannot be committed after ``number``."""
    above, _, front = base.rpartition("/")
    name = re.compile(re.escape(front) + r"\.saving-(?:(\d+)-)?[0-9a-f]+")
    found = {each: name.fullmatch(each) for each in names}
    return [f"{above}/{each}" for each, match in found.items() if match and int(match[1] or 0) <= number]


def list_numbers(names: Iterable[str], base: str) -> list[int]:
    """Return the numbers of the markers among names, sorted; -1 is the copy of earlier versions."""
    front = make_path(base).rpartition("/")[2]
    rests = [name[len(front) :] for name in names if name.startswith(front)]
    return sorted(-1 if not rest else int(rest[1:]) for rest in rests if re.fullmatch(r"(\.\d{1,15})?", rest))


def list_stale(names: Iterable[str], base: str, number: int) -> list[str]:
    """Return, among names beside ``base``, the markers before the newest one and those truncated by a
    kill.
    """
    names = list(names)
    front = make_path(base).rpartition("/")[2]
    top = max([*list_numbers(names, base), number])
    old = {f"{front}.{each}" for each in list_numbers(names, base) if 0 <= each < top}
    old |= {front for each in list_numbers(names, base) if each == -1 and number}
    # in stores that move files to their names
    aside = re.compile(re.escape(front) + r"\.(\d{1,15})\.[0-9a-f]{8}")
    found = {name: aside.fullmatch(name) for name in names}
    return sorted(old) + [name for name, match in found.items() if match and int(match[1]) <= number]


def find_newest(store: Store, base: str) -> int:
    """Return the number of the last save, 0 without a marker."""
    return max([*list_numbers(store.list_prefix(make_path(base)), base), 0])


def read(store: Store, base: str, *, is_prefix: bool) -> Marker:
    """Return the newest marker, or one made from the manifest inside the directory if there is none. A
    truncated marker was being written when its process was killed, in a store without atomic writes. It
    committed nothing, or its content is also in the manifest inside the directory.

    Raises
    ------
    FormatError
        The marker is damaged.
    StorageError
        It cannot be read.
    """
    missing: object = None
    for _ in range(_TRIES):
        with translate_errors(make_path(base)):
            names = store.list_prefix(base)
            known = list_numbers(names, base)
            top = max([*known, 0])
            copy = make_copy_path(base, is_prefix=is_prefix)
            try:
                for path in _list_places(store, base, copy, names, known):
                    data, info = store.read(path), names.get(path.rpartition("/")[2])
                    if info is not None and len(data) < info.size:
                        raise ConnectionError(f"{len(data)} of {info.size} bytes were read")
                    # S12
                    if top and not manifest.is_complete(data):
                        continue
                    return _parse(store, base, top, data)
            except FileNotFoundError as error:  # the next save committed and removed this one
                missing = error.filename or error
                continue
            except FormatError as error:
                raise FormatError(f"{path}: {error.message}", hint=error.hint) from error
            return Marker(top)
    raise StorageError(
        f"the manifest of {base} lacks {missing}, or was saved again and again while it was read",
        hint=f"load when no other process saves there; if it fails again, {manifest.RESTORE}",
    )


def _list_places(
    store: Store, base: str, copy: str, names: Mapping[str, object], known: Sequence[int]
) -> Iterator[str]:
    """Yield possible paths of the manifest, the newest marker first; later ones are used only if it is
    truncated.
    """
    markers = [make_path(base, number) for number in reversed(known) if number > 0]
    yield from markers[:1]
    if _exists(store, copy, names):
        yield copy
    elif known == [-1]:
        yield make_path(base)
    yield from markers[1:]


def _exists(store: Store, path: str, names: Mapping[str, object]) -> bool:
    """Return whether a file exists; for ``names`` beside the directory no further call is needed."""
    folder, _, name = path.rpartition("/")
    if name in names or folder.rpartition("/")[2] not in names:
        return name in names
    return store.list_prefix(path).get(name) is not None


def encode(
    files: Mapping[str, Record],
    *,
    at: Mapping[str, str] | None = None,
    gone: Iterable[str] = (),
    is_prefix: bool = False,
    author: Author = NOBODY,
    state: Any = None,
) -> bytes:
    """Return the bytes of a marker."""
    records = dict(files)
    for name, folder in (at or {}).items():
        records[name] = records[name]._replace(facts={**records[name].facts, "at": folder})
    for name in gone:
        records[name] = Record(0, None, (0, 0), {"gone": True})
    return manifest.encode_json(records, author=author, state=state, is_prefix=is_prefix)


def _parse(store: Store, base: str, number: int, data: bytes) -> Marker:
    found = manifest.decode(data, lambda path: store.read(f"{base}/{path}"))
    files, at, gone = {}, {}, []
    for name, record in found.files.items():
        if "gone" in record.facts:
            gone.append(name)
            continue
        if "at" in record.facts:
            at[name] = str(record.facts["at"])
            record = record._replace(facts={k: v for k, v in record.facts.items() if k != "at"})
        files[name] = record
    for folder in set(at.values()):
        if not folder.startswith(f"{base}.saving-") or "/" in folder[len(base) :] or ".." in folder:
            raise FormatError(f"it points to {folder}, which is not a staging folder of this directory")
    return Marker(number, data, replace(found, files=files), at, tuple(gone))


class RemoteRoot:
    """The location of a remote directory: its store, its path in the store, and its markers.

    Parameters
    ----------
    base
        The common beginning of the files' paths, if they are only some of the directory's files.
    """

    def __init__(self, store: Store, url: str, root: str, base: str | None = None) -> None:
        self.path = url.rstrip("/")
        self.store = store
        self.root = root
        self.base = root if base is None else base  # beginning of the names of markers

    @property
    def is_prefix(self) -> bool:
        """Whether names of files must begin with ``base``."""
        return self.base != self.root

    @property
    def copy(self) -> str:
        """The path of the manifest inside the directory."""
        return make_copy_path(self.base, is_prefix=self.is_prefix)

    def read_marker(self) -> Marker:
        """Return the newest marker.

        Raises
        ------
        FormatError
            The marker is damaged.
        """
        found = read(self.store, self.base, is_prefix=self.is_prefix)
        if found.manifest is not None and found.manifest.is_prefix != self.is_prefix:
            return Marker(found.number)  # another save's: files whose prefix is this directory's name
        return found

    def present(self) -> dict[str, Info]:
        """Return the files with plain names, without the manifest."""
        if not self.is_prefix:
            found = self.store.find(self.root).items()
            return {name: info for name, info in found if not is_manifest(name)}
        named = self.store.list_prefix(self.base).items()
        helpers = (make_path(self.base).rpartition("/")[2], self.copy.rpartition("/")[2])
        return {name: info for name, info in named if info is not None and not name.startswith(helpers)}
