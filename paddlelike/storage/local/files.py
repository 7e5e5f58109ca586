"""Files of a local directory, opened for reading, one or many at once."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from paddlelike.errors import StorageError
from paddlelike.storage.interfaces import Path
from paddlelike.storage.local.filesystem.file import File
from paddlelike.storage.local.filesystem.opening import READING, unreadable
from paddlelike.storage.local.layout import INSIDE, Layout
from paddlelike.storage.names import MANIFEST, is_manifest, relative_path
from paddlelike.storage.problems import is_directory, is_there
from paddlelike.storage.threads import run_in_threads

__all__ = ["LARGE", "File", "list_names", "open_file", "read_all", "read_front", "recover"]

T = TypeVar("T")

LARGE: Final = 1 << 20  # bytes; smaller pieces of work are slower in another thread
_TRIES: Final = 5  # attempts to read a directory that others save at the same time


def recover(directory: Path) -> None:
    """Finish a save into ``directory`` whose process was killed in the middle of a commit.

    Raises
    ------
    StorageError
        It cannot be finished by this process; the message says why.
    """
    finish_save(Layout.of(directory, is_prefix=False))


def finish_save(layout: Layout) -> None:
    """Finish an interrupted save. If nothing is left over, this costs three ``stat`` calls.

    Raises
    ------
    StorageError
        It cannot be finished by this process; the message says why.
    """
    traces = layout.journal, os.path.join(layout.staging, "staged")
    if layout.get_inside() is not None or any(map(is_there, traces)):
        from paddlelike.storage.local import crash_recovery  # late: nearly always nothing is left over

        crash_recovery.recover(layout)


def open_file(directory: Path, name: str) -> File:
    """Open the file of variable ``name`` in ``directory``.

    Raises
    ------
    StorageError
        The name is refused (see ``storage.names``), or the file cannot be opened.
    """
    return File(os.path.join(directory, relative_path(name)))


def read_front(path: str, size: int) -> bytes:
    """Return the first ``size`` bytes of a file, or the whole file, in the fewest calls.

    Raises
    ------
    StorageError
        It cannot be read, or is not a regular file.
    """
    first, again = itertools.tee(map(os.open, (path,), (READING,)))
    try:
        # in one call, so that no interrupt leaves it open
        data, _ = next(zip(map(os.pread, first, (size,), (0,)), map(os.close, again)))  # noqa: B905
        # devices return any amount, pipes and sockets have no positions
        if 0 < len(data) < size or stat.S_ISREG(os.stat(path).st_mode):
            return bytes(data)
    except BaseException as error:
        list(map(os.close, again))
        if not isinstance(error, (OSError, ValueError, AttributeError)):  # without pread
            raise
    with File(path) as file:  # it finds the reason
        return file.read_at(0, size)


def read_all(directory: Path, names: Iterable[str], read: Callable[[str, File], T]) -> dict[str, T]:
    """Return ``{name: read(name, file)}`` for the files of ``names``; large files several at once.

    ``read`` is called from several threads for different files. The first error ends the reading. All files
    belong to one save: if another save is committed meanwhile, they are read again.

    Raises
    ------
    StorageError
        A file cannot be read, or the directory was replaced each time it was read.
    """
    names, layout = list(names), Layout.of(directory, is_prefix=False)
    for _ in range(_TRIES):
        finish_save(layout)
        before = stamp(layout)
        try:
            values = _read_once(directory, names, read)
        except StorageError:
            if stamp(layout) == before:
                raise
        else:
            if stamp(layout) == before:
                # S10
                return values
    raise StorageError(f"{os.fspath(directory)} was saved again and again while it was read")


def stamp(layout: Layout) -> object:
    """Return a value that changes when files are saved, or None without a directory.

    While files are moved one by one, every call returns another value.
    """
    try:
        facts = os.stat(layout.directory)
        found: object = facts.st_dev, facts.st_ino, facts.st_mtime_ns
        if layout.is_prefix:
            found = _list_stamps(layout)
    except OSError:
        return None
    # S10
    return object() if any(map(_is_moving, (layout, layout.get_inside()))) else found


def _is_moving(layout: Layout | None) -> bool:
    """Return whether a save is moving its files. A truncated journal of an earlier version moves none."""
    if layout is None or not is_there(layout.journal):
        return False
    from paddlelike.storage.local.journal_file import read_journal  # late: nearly always there is none

    try:
        return read_journal(layout) is not None
    except StorageError:
        return True


def _list_stamps(layout: Layout) -> list[tuple[int, int]]:
    with os.scandir(layout.directory) as entries:
        facts = [each.stat() for each in entries if layout.owns(each.name) and each.is_file()]
    return sorted((each.st_ino, each.st_mtime_ns) for each in facts)


def _read_once(directory: Path, names: list[str], read: Callable[[str, File], T]) -> dict[str, T]:
    paths = {name: os.path.join(directory, relative_path(name)) for name in names}
    values: dict[str, T] = {}
    large = []

    def read_one(name: str) -> T:
        with File(paths[name]) as file:
            return read(name, file)

    for name, path in paths.items():
        with File(path) as file:
            if file.size < LARGE:
                values[name] = read(name, file)
            else:
                large.append(name)  # opened again
    read_later = run_in_threads([lambda name=name: read_one(name) for name in large])  # type: ignore[misc]
    values.update(zip(large, read_later, strict=True))
    return {name: values[name] for name in names}


def list_names(directory: Path, *, linked_folders: bool = False) -> list[str]:
    """Return the names of all files in ``directory`` and below except manifests, sorted; "/" between parts.

    Links to files are included. Linked folders are not entered, as in Paddle; with ``linked_folders`` they
    are listed like files.

    Raises
    ------
    StorageError
        There is no such directory, or it cannot be read.
    """
    root = os.fspath(directory) or "."
    recover(root)
    if not is_directory(root):
        raise StorageError(f"there is no directory {root}")
    found: list[str] = []
    folders = [""]  # folders to list, with "/" at the end
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    name = entry.name
                    if name == INSIDE and not folder:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{name}/")
                    elif name.startswith(MANIFEST) and (name == MANIFEST or is_manifest(folder + name)):
                        continue
                    elif linked_folders or not (entry.is_symlink() and is_directory(entry.path)):
                        found.append(folder + name)
        except OSError as error:
            raise unreadable(root, error) from error
    return sorted(found)
