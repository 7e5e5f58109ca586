"""Stores of checkpoints in local directories: list, hold and remove them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager

from paddlelike.errors import SaveError, StorageError
from paddlelike.foundation.locks import opened
from paddlelike.io.checkpoints.store import STEPS, Names
from paddlelike.storage.local import crash_recovery as staged
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.filesystem.owners import ForeignError, check_links, list_believed
from paddlelike.storage.local.filesystem.system import sync_tree
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.local.manifest_file import read_manifest
from paddlelike.storage.manifest import Manifest
from paddlelike.storage.names import MANIFEST
from paddlelike.storage.problems import explain, is_directory, is_there

try:
    import fcntl
except ImportError:  # not a POSIX system: readers are not detected
    fcntl = None  # type: ignore[assignment]


class LocalCheckpointStore:
    """A directory of a local file system. A reader of a checkpoint locks its directory."""

    def __init__(self, root: str, names: Names = STEPS) -> None:
        self.root, self._given = os.path.realpath(root), os.path.abspath(root)
        self._name = re.compile(names.pattern)
        self._left_over = re.compile(rf"\.({names.pattern})\.saving-directory")  # by a killed process
        self._earlier = re.compile(
            rf"({names.pattern})\.manifest\.json"
        )  # of earlier versions of this library

    def path(self, name: str) -> str:
        return os.path.join(self.root, name)

    def paths(self) -> list[str]:
        try:
            names = [name for name in os.listdir(self.root) if self._name.fullmatch(name)]
            # S18
            return [os.path.join(self.root, name) for name in list_believed(self.root, names)]
        except FileNotFoundError:
            return []
        except ForeignError:
            raise
        except OSError as error:
            raise explain(StorageError, f"the checkpoints in {self.root} cannot be listed", error) from error

    def manifest(self, path: str) -> Manifest | None:
        found = read_manifest(path)
        return found if self.is_there(path) else None

    def is_there(self, path: str) -> bool:
        return is_there(path)

    def stamp(self, path: str | None = None) -> object:
        try:
            if path is None:
                facts = os.stat(self.root)
            else:
                facts = os.lstat(os.path.join(path, MANIFEST))
                if is_there(os.path.join(self.root, f".{os.path.basename(path)}.saving-directory")):
                    return None
        except OSError:
            return None
        return facts.st_ino, facts.st_mtime_ns, facts.st_size

    def hold(self, path: str | None) -> AbstractContextManager[bool]:
        return _hold(path)

    def reserve(self, path: str) -> None:
        """Check the links along the path; the lock of the save announces the checkpoint."""
        check_links(self._given, self.root)

    def sync(self, path: str) -> None:
        sync_tree(path)

    def remove(self, path: str) -> None:
        _remove(path)

    def sweep(self) -> None:
        names = set(os.listdir(self.root))
        left = {match[1] for name in names if (match := self._left_over.fullmatch(name))}
        left |= {match[1] for name in names if (match := self._earlier.fullmatch(name))} - names
        for name in left:
            _sweep(os.path.join(self.root, name))

    def recover(self) -> None:
        with contextlib.suppress(OSError):  # for example, this process may change nothing here
            self.sweep()


@contextlib.contextmanager
def _hold(path: str | None) -> Iterator[bool]:
    """Keep other processes from removing a directory; yield whether it exists.

    Raises
    ------
    StorageError
        The system refuses to open it.
    """
    try:
        file = None if path is None else opened(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except (FileNotFoundError, NotADirectoryError):
        file = None
    except OSError as error:
        raise explain(StorageError, f"checkpoint {path} cannot be read", error) from error
    if path is None or file is None:
        yield False
        return
    with file as (fd, _):
        del file
        yield _try_lock(fd, exclusive=False) and _is_at(fd, path)


def _try_lock(fd: int, *, exclusive: bool) -> bool:
    """Try to lock a directory; return whether it is locked. Without support for such locks, return True."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _is_at(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise explain(StorageError, f"checkpoint {path} cannot be read", error) from error


def _remove(path: str) -> None:
    """Remove a checkpoint. If a process reads or writes it, leave it to a later save."""
    layout = Layout.of(path, is_prefix=False)
    with (
        contextlib.suppress(SaveError, OSError),
        Lock(layout.lock, path) as lock,
        opened(path, os.O_RDONLY) as (fd, _),
    ):
        if _try_lock(fd, exclusive=True) and _is_at(fd, path):
            gone = os.path.join(lock.folder, "removed")
            shutil.rmtree(gone, ignore_errors=True)
            os.rename(path, gone)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(layout.earlier_manifest)
            shutil.rmtree(gone, ignore_errors=True)


def _sweep(path: str) -> None:
    """Remove the leftovers of a killed process at the path of a checkpoint."""
    layout = Layout.of(path, is_prefix=False)
    with contextlib.suppress(SaveError, StorageError, OSError), Lock(layout.lock, path) as lock:
        layout.work = lock.folder
        staged.clear(layout, spare=False)
        if not is_directory(path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(layout.earlier_manifest)
