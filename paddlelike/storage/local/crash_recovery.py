"""Recognize and clean up the leftovers of a killed save beside the directory.

The new version of a directory is built in ``new/`` (:mod:`.generation`), which holds the previous version
after the swap. ``staged`` identifies the new version by the random token in its manifest or, without a
manifest, by the inodes and times of its files. ``staged`` also lists the files of the previous version. Files
that others added during the swap are not listed; they are moved over before the rest is removed.

With ``durability="atomic"`` the previous version stays there until the new one is on the disk
(:mod:`.syncing`), and ``staged`` identifies it, too. If no process waits for the disk, the process or the
power failed, and the files are compared with their checksums. If they differ, the previous version is
restored, but not over files that another program wrote since. Files that are missing on a file system that
stayed mounted were removed on purpose.
"""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from paddlelike.errors import FormatError, SaveError, StorageError
from paddlelike.foundation.locks import opened
from paddlelike.foundation.warn import warn_user
from paddlelike.storage import hashing, verification
from paddlelike.storage.local import journal
from paddlelike.storage.local.filesystem.file import File
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.filesystem.owners import ForeignError, check_own
from paddlelike.storage.local.filesystem.retired import remove_tree, rescue, walk
from paddlelike.storage.local.filesystem.system import (
    drop_cache,
    exchange,
    identify_mount,
    sync_directory,
    sync_file_system,
)
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.local.present_manifest import compare_with_record, read_at
from paddlelike.storage.manifest import Record
from paddlelike.storage.names import MANIFEST, check_path
from paddlelike.storage.problems import explain, is_directory, is_file, is_system_error, is_there

_MOST: Final = 1 << 28  # bytes of ``staged``
_WAIT: Final = 600.0  # seconds for another process that compares the files after a power cut
_PAUSE: Final = 0.02  # seconds between two looks


def recover(layout: Layout) -> None:
    """Finish an interrupted save.

    Raises
    ------
    StorageError
        It cannot be finished by this process; the message says why.
    """
    if (inside := layout.get_inside()) is not None:
        journal.recover(inside)
    journal.recover(layout)
    path = os.path.join(layout.staging, "staged")
    try:
        staged = _read_staged(layout) if is_there(path) else None
    except ForeignError:
        return  # another user's: readers compare files with their checksums
    if staged is None or staged.before is None:
        return  # either version in place is complete, or on its way to the disk
    start = time.monotonic()
    lock = Lock(layout.lock, layout.base)
    while time.monotonic() - start < _WAIT:
        has_lock_file = is_there(layout.lock)  # present while the save continues, unless somebody removed it
        if not is_there(path):
            return
        try:
            is_ours = lock.acquire(create=not has_lock_file)
        except SaveError:
            return  # not writable: readers compare files with their checksums
        if is_ours:
            layout.work = lock.folder
            try:
                clear(layout, spare=is_directory(os.path.join(layout.staging, "spare")))
            finally:
                lock.release()
            return
        if not is_there(os.path.join(layout.staging, "comparing")):
            return  # the save itself continues
        time.sleep(_PAUSE)


def write_staged(
    layout: Layout,
    token: str | None,
    written: Mapping[str, tuple[int, int]],
    files: Mapping[str, int],
    dropped: Iterable[str] | None = None,
    *,
    begun: int = 0,
) -> None:
    """Write ``staged``: the token of the new version or its files' stamps, and the files of the current
    version. ``dropped`` are the files that only the previous version has, if that stays until the new one is
    on the disk; ``staged`` is then written to the disk, with its name. ``begun`` is a time, by the clock that
    dates the files, before all files of the new version except ``written``, which are linked from earlier
    saves.

    Raises
    ------
    OSError
        It cannot be written.
    """
    import json  # late: it takes long

    before = None if dropped is None else _identify(layout.directory, files)
    held = {"token": token, "written": written, "files": files, "before": before, "begun": begun}
    path = os.path.join(layout.staging, "staged")
    with open(path, "xb") as file:
        held |= {"dropped": list(dropped or ()), "mount": identify_mount(path)}
        # A directory with chains has many files of like names, and each save lists them.
        file.write(zlib.compress(json.dumps(held).encode()))
        if before is not None:
            file.flush()
            # S17
            os.fsync(file.fileno())
            sync_directory(layout.staging)
            sync_directory(layout.parent)


def clear(layout: Layout, *, spare: bool, synced: bool = False) -> None:
    """Finish or remove the leftovers of a killed process. The caller holds the lock.

    ``spare`` keeps the previous version for the next save. ``synced`` says whether the new version is on the
    disk.

    Raises
    ------
    StorageError, SaveError
        A commit in several steps cannot be finished.
    """
    journal.finish(layout)
    new, old = os.path.join(layout.staging, "new"), os.path.join(layout.staging, "spare")
    staged = _read_staged(layout)
    for each in (new, old):
        check_own(each, beside=layout.directory)
    if staged is not None and is_directory(new, follow=False) and (synced or _settle(layout, staged, new)):
        rescue(new, layout.directory, _list_known(staged, new), remove=False)
        if spare:
            remove_tree(old)
            with contextlib.suppress(OSError):
                os.rename(new, old)
    with _raise_system_errors(layout):
        for path in _list_others(layout) if layout.work != layout.staging else ():
            with contextlib.suppress(OSError):  # such as: another process has taken over the lock
                # S19
                os.rename(path, os.path.join(layout.work, f"gone-{os.path.basename(path)}"))
        for path in _list_others(layout, layout.work):
            if not (spare and path == old and is_directory(path, follow=False)):
                remove_tree(path)


def _list_others(layout: Layout, folder: str | None = None) -> list[str]:
    """Return the contents of the hidden entry, or of a folder in it, except the lock and the holder's
    folder.
    """
    folder = folder or layout.staging
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    return [path for path in paths if path not in (layout.lock, layout.work)]


class _Staged(NamedTuple):
    """The marks of a new version, and the files of the previous version."""

    token: str | None
    written: dict[str, Any]  # path -> stamp: without a token of all files, else of those linked
    files: dict[str, int]  # path -> inode
    before: object  # identity of the previous version, see _identify; None if not needed
    dropped: frozenset[str]  # files that only the previous version has
    begun: int  # a time before all files of the new version
    time: int  # time of writing, after them
    is_mounted_since: bool  # tells whether the power failed since


def _read_staged(layout: Layout) -> _Staged | None:
    """Return the staged state, or None if there is none or it is damaged. Raises StorageError."""
    import json  # late: it takes long

    path = os.path.join(layout.staging, "staged")
    check_own(layout.staging)
    with (
        _raise_system_errors(layout),
        contextlib.suppress(FileNotFoundError, FormatError, ValueError, AttributeError),
        contextlib.suppress(KeyError, TypeError, RecursionError, zlib.error),
    ):
        with File(path, own=True) as file:
            data = file.read(_MOST)
            held = json.loads(data if data[:1] == b"{" else zlib.decompressobj().decompress(data, _MOST))
            facts = os.lstat(path)
            mount = identify_mount(path)
        written = {path: tuple(stamp) for path, stamp in held["written"].items() if check_path(path) == path}
        files = {path: inode for path, inode in held["files"].items() if type(inode) is int}
        token = held["token"]
        dropped = frozenset(map(str, held.get("dropped") or ()))
        token = token if isinstance(token, str) else None
        begun = held.get("begun", 0)
        begun = begun if type(begun) is int else 0
        mounted = mount is not None and mount == held.get("mount")
        return _Staged(token, written, files, held.get("before"), dropped, begun, facts.st_mtime_ns, mounted)
    return None


def _list_known(staged: _Staged, new: str) -> dict[str, int]:
    """Return the files of the previous version by inode; on a copied disk only dropped files have a known
    inode. A file that others wrote in place of a known file is newer.
    """
    present = {}
    for path in staged.files:
        with contextlib.suppress(OSError):  # removed since
            present[path] = os.lstat(os.path.join(new, path))
    if any(facts.st_ino == staged.files[path] for path, facts in present.items()):
        return staged.files  # no copy
    older = {path: facts.st_ino for path, facts in present.items() if facts.st_mtime_ns < staged.time}
    none = dict.fromkeys(staged.files, -1)  # by now the inodes may be those of other files
    return none | {path: inode for path, inode in older.items() if path in staged.dropped}


def _identify(directory: str, files: Iterable[str]) -> object:
    """Return the identity of a directory's version: the checksum of its manifest, or its files."""
    path = os.path.join(directory, MANIFEST)
    if is_file(path, follow=False):
        with File(path) as file:
            return hashing.hash_file(file, "xxh3_128").text
    stamps = {}
    for name in files:
        facts = os.lstat(os.path.join(directory, name))
        stamps[name] = [facts.st_size, facts.st_mtime_ns]
    return stamps


def _is_before(directory: str, staged: _Staged) -> bool:
    """Return whether a directory is the previous version. Raises StorageError, OSError."""
    files = {path for path, _, is_folder in walk(directory) if not is_folder}
    return staged.files.keys() <= files and _identify(directory, files) == staged.before


def _settle(layout: Layout, staged: _Staged, new: str) -> bool:
    """Return whether ``new`` is the previous version and no longer needed.

    Raises
    ------
    StorageError
        The system refuses to read it, or to put it back.
    """
    if staged.before is None or not is_directory(layout.directory):
        return _is_swapped(layout, staged)
    comparing = os.path.join(layout.staging, "comparing")  # readers wait
    try:
        new_file = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        with opened(comparing, new_file, 0o644), _raise_system_errors(layout):
            if _is_before(layout.directory, staged):
                return False
            if _is_swapped(layout, staged):
                sync_file_system(layout.directory)
                sync_directory(layout.staging)
                sync_directory(layout.parent)
                if _is_whole(layout, staged):
                    return True
            elif staged.is_mounted_since:
                return False
            if not _is_before(new, staged) or _has_newer(layout.directory, new, staged):
                return _is_swapped(layout, staged)
        # S17
        exchange(new, layout.directory)
        sync_directory(layout.staging)
        sync_directory(layout.parent)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        what = f"the remains of {layout.directory} after a power cut cannot be cleaned up"
        raise explain(StorageError, what, error) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(comparing)
    warn_user(
        f"the last save into {layout.directory} is damaged: the power failed, or its process was killed and "
        "files were changed, before it was on the disk. "
        "The files of the save before it were restored"
    )
    return False


def _is_whole(layout: Layout, staged: _Staged) -> bool:
    """Return whether the disk has all files of the new version as saved. Raises StorageError, OSError."""
    manifest = read_at(layout)
    present = {path for path, _, is_folder in walk(layout.directory) if not is_folder}
    stay = staged.files.keys() - staged.dropped
    if manifest is None or not (staged.is_mounted_since or stay <= present):
        return False

    def compare(name: str, record: Record) -> tuple[str, str]:
        path = os.path.join(layout.directory, name)
        drop_cache(path)  # bytes that the disk refused may still be in memory, and look written
        return compare_with_record(path, record)

    found = verification.compare_files(layout.base, manifest, (), compare)
    return not ((found.missing and not staged.is_mounted_since) or found.cut or found.changed)


def _has_newer(directory: str, old: str, staged: _Staged) -> bool:
    """Return whether somebody wrote a file of a directory after the save, by a clock that may differ. ``old``
    is the previous version, with the times of the files that were kept.
    """
    for path in (path for path, _, is_folder in walk(directory) if not is_folder):
        written = os.lstat(os.path.join(directory, path)).st_mtime_ns
        is_linked = staged.written.get(path, ())[1:] == (written,)
        if not is_linked and (written > staged.time or written < staged.begun):
            with contextlib.suppress(FileNotFoundError):
                if os.lstat(os.path.join(old, path)).st_mtime_ns == written:
                    continue
            return True
    return False


def _is_swapped(layout: Layout, staged: _Staged) -> bool:
    """Return whether the directory is the new version. Raises StorageError."""
    if staged.token is not None:
        with _raise_system_errors(layout), contextlib.suppress(FormatError):
            manifest = read_at(layout)
            # S11
            return manifest is not None and manifest.token == staged.token
        return False
    for path, stamp in staged.written.items():
        with contextlib.suppress(OSError):
            facts = os.lstat(os.path.join(layout.directory, path))
            if (facts.st_ino, facts.st_mtime_ns) == stamp:
                return True
    return False


@contextlib.contextmanager
def _raise_system_errors(layout: Layout) -> Iterator[None]:
    """Ignore a missing file, but raise when the system refuses to read one.

    The file decides whether the old or the new version is removed.
    """
    try:
        yield
    except OSError as error:
        if is_system_error(error):
            what = f"the remains of a killed save beside {layout.base} cannot be cleaned up"
            raise explain(StorageError, what, error) from error
        if not isinstance(error, StorageError):
            raise
