"""Markers: the manifests of directories behind URLs, one for each save, of which the highest number counts.

``DIR.manifest.json.<n>`` is made by a call that fails where there is such a file already, and that is the
commit of the n-th save: of two savers that began with the same marker one comes through, the other is told.
What a reader goes by is never written over, and only lower numbers are removed. ``DIR.manifest.json`` is a
copy for people and tools; it counts where there is no number, as beside a directory that was uploaded.

Besides the files a marker says which of them are still in ``DIR.saving-<n>-<id>/``, from where they move to
their plain names, and which files of an earlier save are still to be removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from paddlelike.errors import FormatError, StorageError
from paddlelike.storage import manifest
from paddlelike.storage.manifest import Manifest, Record
from paddlelike.storage.remote.stores import Store, told

__all__ = ["Marker", "encode", "newest", "numbers", "outdated", "path_of", "read", "staging", "stagings"]

_TRIES: Final = 5  # to read the newest one while others save


class Marker(NamedTuple):
    """A marker that was read; without one the number is 0 and there is no manifest."""

    number: int = 0
    data: bytes = b""
    manifest: Manifest | None = None
    at: Mapping[str, str] = {}  # of files that are not at their plain names: the folder they are in
    gone: tuple[str, ...] = ()  # files that are still to be removed


def path_of(base: str, number: int | None = None) -> str:
    """Where a marker lies; without a number the copy.

    >>> path_of("bucket/model", 3), path_of("bucket/model")
    ('bucket/model.manifest.json.3', 'bucket/model.manifest.json')
    """
    return f"{base}.manifest.json" if number is None else f"{base}.manifest.json.{number}"


def staging(base: str, number: int, token: str) -> str:
    """The folder in which the files of the save ``number`` wait."""
    return f"{base}.saving-{number}-{token}"


def stagings(names: Iterable[str], base: str, number: int) -> list[str]:
    """Of names beside ``base`` the folders of savers that cannot commit any more, now that ``number`` has."""
    above, _, front = base.rpartition("/")
    name = re.compile(re.escape(front) + r"\.saving-(?:(\d+)-)?[0-9a-f]+")
    found = {each: name.fullmatch(each) for each in names}
    return [f"{above}/{each}" for each, match in found.items() if match and int(match[1] or 0) <= number]


def numbers(names: Iterable[str], base: str) -> list[int]:
    """The numbers of the markers among names; -1 is the copy."""
    front = path_of(base).rpartition("/")[2]
    rests = [name[len(front) :] for name in names if name.startswith(front)]
    return sorted(-1 if not rest else int(rest[1:]) for rest in rests if re.fullmatch(r"(\.\d{1,15})?", rest))


def outdated(names: Iterable[str], base: str, number: int) -> list[str]:
    """Of names beside ``base`` the markers before the newest, and those that killed savers left half made."""
    names = list(names)
    front = path_of(base).rpartition("/")[2]
    top = max([*numbers(names, base), number])
    old = {f"{front}.{each}" for each in numbers(names, base) if 0 <= each < top}
    aside = re.compile(
        re.escape(front) + r"\.(\d{1,15})\.[0-9a-f]{8}"
    )  # of stores that move them to their names
    found = {name: aside.fullmatch(name) for name in names}
    return sorted(old) + [name for name, match in found.items() if match and int(match[1]) <= number]


def newest(store: Store, base: str) -> int:
    """The number of the last save; 0 where there is none, or none with a number."""
    return max([*numbers(store.beside(path_of(base)), base), 0])


def read(store: Store, base: str) -> Marker:
    """The marker that counts.

    Raises
    ------
    FormatError
        It is damaged.
    StorageError
        It cannot be read.
    """
    for _ in range(_TRIES):
        with told(path_of(base)):
            known = numbers(store.beside(path_of(base)), base)
            if not known:
                return Marker()
            number = max(known[-1], 0)
            path = path_of(base, number or None)
            try:
                return _parsed(base, number, store.read(path))
            except FileNotFoundError:  # the next save came to its commit, and this one was removed
                continue
            except FormatError as error:
                raise FormatError(f"{path}: {error.message}", hint=error.hint) from error
    raise StorageError(f"{path_of(base)} was written again and again while it was read")


def encode(
    files: Mapping[str, Record],
    *,
    at: Mapping[str, str] | None = None,
    gone: Iterable[str] = (),
    beside: bool = False,
    program: str | None = None,
    state: Any = None,
    part: str | None = None,
) -> bytes:
    """The bytes of a marker."""
    records = dict(files)
    for name, folder in (at or {}).items():
        records[name] = records[name]._replace(facts={**records[name].facts, "at": folder})
    for name in gone:
        records[name] = Record(0, None, (0, 0), {"gone": True})
    return manifest.encode(records, program=program, state=state, part=part, beside=beside)


def _parsed(base: str, number: int, data: bytes) -> Marker:
    found = manifest.decode(data)
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
            raise FormatError(f"it points to {folder}, which is not beside it")
    return Marker(number, data, replace(found, files=files, commit=None), at, tuple(gone))
