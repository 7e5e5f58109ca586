"""The end of a remote save after its commit: files are moved to their plain names, and leftovers removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from paddlelike.errors import StorageError
from paddlelike.storage.manifest import Record, encode
from paddlelike.storage.remote import marker
from paddlelike.storage.remote.marker import Marker, RemoteRoot


def finish_committed(where: RemoteRoot, found: Marker) -> Marker:
    """Finish a save that was killed after its commit, and return the marker.

    Raises
    ------
    StorageError
        A file of that save is missing.
    """
    if found.manifest is None or not (found.at or found.gone):
        return found

    of = found.manifest

    def contents(files: Mapping[str, Record]) -> tuple[bytes, bytes | None]:
        return (
            marker.encode(files, is_prefix=of.is_prefix, author=of.author, state=of.state),
            encode(files, is_prefix=of.is_prefix, author=of.author, state=of.state),
        )

    files = move_into_place(where, found, found.manifest.files, found.at, found.gone, contents)
    return found._replace(manifest=replace(found.manifest, files=files), at={}, gone=())


def move_into_place(
    where: RemoteRoot,
    of: Marker,
    files: dict[str, Record],
    at: Mapping[str, str],
    gone: Iterable[str],
    contents: Callable[[Mapping[str, Record]], tuple[bytes, bytes | None]],
) -> dict[str, Record]:
    """Move files to their plain names, remove stale ones, write the final marker, clean up.

    Raises
    ------
    StorageError
        A file that was saved is missing.
    """
    store = where.store
    for folder in set(at.values()):
        store.move(folder, where.root, sorted(name for name in at if at[name] == folder))
    store.remove(where.root, list(gone))
    present = where.present()
    missing = sorted(at.keys() - present.keys())
    if missing:
        raise StorageError(
            f"{where.path}/{missing[0]} is missing, though it was saved",
            hint="somebody removed it, or the store lists files late: save again",
        )
    files = {
        path: record._replace(stamp=present[path].stamp) if path in at else record
        for path, record in files.items()
    }
    data, copy = contents(files)
    if copy is not None:  # before the marker, which it replaces if the process is killed below
        store.put(where.copy, copy)
    else:
        store.remove(*split_path(where.copy))
    if of.number:
        store.put(marker.make_path(where.base, of.number), data)
    above = where.base.rpartition("/")[0]
    names = store.list_prefix(where.base + ".")
    store.remove(above, marker.list_stale(names, where.base, of.number))
    for folder in marker.list_stagings(names, where.base, of.number):
        store.remove(folder, [])
    return files


def split_path(path: str) -> tuple[str, list[str]]:
    """Return the folder of a path, and a list of its name, as ``Store.remove`` takes them."""
    above, _, name = path.rpartition("/")
    return above, [name]
