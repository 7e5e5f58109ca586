"""The file of a journal: the steps of a commit in several steps, as JSON."""

from __future__ import annotations

import os
from typing import Any, Final, NamedTuple

from paddlelike.errors import StorageError
from paddlelike.storage.hashing import hash_bytes
from paddlelike.storage.local.filesystem.opening import open_regular, unreadable
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.names import check_path
from paddlelike.storage.problems import is_there

_FORMAT: Final = 2
_DIGEST: Final = b', "digest": "'
_MOST: Final = 1 << 28  # bytes: a million paths
_FOREIGN: Final = "remove it if it is not yours; the files in the directory are as they are"

Identity = tuple[int, int, int]  # inode, size, mtime in nanoseconds


class Target(NamedTuple):
    """A file that the commit replaces or removes."""

    path: str
    old: Identity | None  # None: there was no file
    new: Identity | None  # None: there will be no file


class Journal(NamedTuple):
    """The steps of a commit."""

    direction: str  # "forward", or "back" to the old files
    targets: list[Target]
    folders: list[str]  # that did not exist
    sync: bool


def write_journal(path: str, journal: Journal) -> None:
    """Write a journal into a new file on the disk, which gets its name afterwards.

    Raises
    ------
    OSError
        It cannot be written.
    """
    import json  # late: it takes long

    text = json.dumps({"format": _FORMAT, **journal._asdict()})[:-1]
    with open(path, "x", encoding="utf-8") as file:
        file.write(text + _DIGEST.decode() + f'{hash_bytes(text.encode())}"}}')
        file.flush()
        # S16
        os.fsync(file.fileno())


def read_journal(layout: Layout) -> Journal | None:
    """Return the journal, or None if no save was committed. It may name only files of the directory. An empty
    or truncated journal counts as none: in earlier versions a power cut could leave a name without bytes.

    Raises
    ------
    StorageError
        It has another format, names other files, or cannot be read.
    """
    import json  # late: it takes long

    if not is_there(layout.journal):
        return None
    try:
        opened, facts = open_regular(layout.journal, own=True)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError) and not os.path.islink(layout.journal):
            return None  # another process has finished the save
        raise
    try:
        with opened as (fd, _), open(fd, "rb", closefd=False) as file:
            if facts.st_size > _MOST:
                raise StorageError(
                    f"{layout.journal} is not the journal of a save ({facts.st_size} bytes)", hint=_FOREIGN
                )
            data = file.read(facts.st_size)
    except OSError as error:
        raise unreadable(layout.journal, error) from error
    if _is_torn(data):
        return None
    try:
        text, mark, digest = data.rpartition(_DIGEST)  # earlier versions wrote none
        if mark and digest != f'{hash_bytes(text)}"}}'.encode():
            raise ValueError("its digest does not match")
        return _parse(json.loads(data.decode()), layout)
    except (ValueError, KeyError, TypeError, RecursionError, StorageError) as error:
        raise StorageError(
            f"{layout.journal} is not the journal of a save ({error!r:.200})", hint=_FOREIGN
        ) from error


def _is_torn(data: bytes) -> bool:
    """Return whether these bytes are empty or a truncated journal."""
    written = data.rstrip(b"\0")
    begin = b'{"format"'
    return begin.startswith(written) or (written.startswith(begin) and not written.endswith(b"}"))


def _parse(held: Any, layout: Layout) -> Journal:
    if held["format"] != _FORMAT or held["direction"] not in ("forward", "back"):
        raise ValueError(f"format {held['format']!r:.50}, direction {held['direction']!r:.50}")
    for key, kind in (("sync", bool), ("targets", list), ("folders", list)):
        if not isinstance(held[key], kind):
            raise TypeError(f"{key} is {held[key]!r:.50}")
    targets = [Target(path, _parse_identity(old), _parse_identity(new)) for path, old, new in held["targets"]]
    for path in [*(target.path for target in targets), *held["folders"]]:
        if not isinstance(path, str) or check_path(path) != path:
            raise ValueError(f"{path!r:.50} is not the path of a file")
        if not layout.owns(path):
            raise ValueError(f"{path!r:.50} is a file of somebody else")
    return Journal(held["direction"], targets, held["folders"], held["sync"])


def _parse_identity(held: Any) -> Identity | None:
    if held is None:
        return None
    inode, size, mtime = held
    if not all(type(each) is int for each in (inode, size, mtime)):
        raise TypeError(f"{held!r:.50} is not an identity")
    return inode, size, mtime
