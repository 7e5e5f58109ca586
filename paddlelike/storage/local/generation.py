"""The next version of a directory: built beside it and swapped in; the previous version is removed.

It is built in ``new/`` of the hidden entry (see :mod:`.layout`). After the swap ``new/`` is the previous
version; :mod:`.crash_recovery` tells the two apart after a kill.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final

from paddlelike.errors import SaveError
from paddlelike.foundation.locks import OpenFile, opened
from paddlelike.storage.local import journal
from paddlelike.storage.local.crash_recovery import write_staged
from paddlelike.storage.local.filesystem.retired import remove_folders, rescue, walk
from paddlelike.storage.local.filesystem.system import exchange, has_mounts, sync_directory
from paddlelike.storage.local.layout import Layout
from paddlelike.storage.manifest import Record, make_stamp
from paddlelike.storage.problems import explain, is_directory

_OURS: Final = 0o700  # mode while building; the exact mode is set at the end


class Generation:
    """The new version of a directory, before it is swapped in.

    Parameters
    ----------
    changed
        The paths of the files that are written, the manifest included.
    dropped
        The paths of files in the directory that are to be removed.
    """

    def __init__(self, layout: Layout, changed: Sequence[str], dropped: Sequence[str] = ()) -> None:
        self._layout = layout
        self._directory = layout.directory
        self._changed = dict.fromkeys(changed)
        self._dropped = dict.fromkeys(dropped)
        self.new = os.path.join(layout.work, "new")
        self._modes: dict[str, int] = {}  # of copied folders
        self._files: dict[str, int] = {}  # path -> inode, of the present version
        self._present: OpenFile | None = None  # the present version, open
        self._linked: dict[str, tuple[int, int]] = {}  # path -> stamp, of changed files: older ones
        self._begun = 0  # before all other files of the new version, by the clock that dates files
        self._spares: dict[str, int] = {}  # path -> inode, of the previous version, which is reused
        self.step = self._choose()
        self._make()

    def _choose(self) -> str:
        """Return how the commit will be done: "rename", "single", "exchange", "journal", or "nothing"."""
        if not self._changed and not self._dropped:
            return "nothing"
        if not is_directory(self._directory):
            return "rename"
        if len(self._changed) == 1 and not self._dropped:
            return "single"
        stays = (
            self._layout.is_prefix
            or self._layout.is_inside
            or self._layout.work != self._layout.staging
            or _works_inside(self._directory)
            or has_mounts(self._directory)
        )
        return "journal" if stays else "exchange"

    def _make(self) -> None:
        spare = os.path.join(self._layout.staging, "spare")
        try:
            if self.step == "exchange" and is_directory(spare, follow=False):
                os.rename(spare, self.new)
                os.utime(self.new)
                self._spares = {path: inode for path, inode, is_folder in walk(self.new) if not is_folder}
                self._drop_links()
            else:
                os.mkdir(self.new)
        except OSError as error:
            raise explain(SaveError, f"{self._directory} cannot be saved", error) from error
        if self.step == "rename":
            folders: set[str] = set()
        else:
            folders = self._twin_folders()
        for folder in sorted(
            {os.path.dirname(path) for path in self._changed if "/" in path} - folders - {""}
        ):
            os.makedirs(os.path.join(self.new, folder), exist_ok=True)
        self._drop_spares()

    def _drop_links(self) -> None:
        """Remove the links of the previous version, so that nothing is written through a link."""
        for path in list(self._spares):
            where = os.path.join(self.new, path)
            if os.path.islink(where):
                os.unlink(where)
                del self._spares[path]

    def _twin_folders(self) -> set[str]:
        """Create the folders of the current version again, with their owners and modes; list its files."""
        folders = {""}
        if self.step != "exchange":
            for path in self._changed:
                if is_directory(os.path.join(self._directory, path)):
                    self._check_folder(path)
        try:
            self._twin("")
            if self.step != "exchange":
                return folders
            for path, inode, is_folder in walk(self._directory):
                if is_folder:
                    self._check_folder(path)
                    self._twin(path)
                    folders.add(path)
                else:
                    self._files[path] = inode
        except SaveError:
            raise
        except OSError:  # for example, an owner that this user cannot set, or another file system below
            self._use_journal()
        return folders

    def _check_folder(self, path: str) -> None:
        if path in self._changed:
            raise SaveError(
                f"variable {path!r} cannot be saved: {os.path.join(self._directory, path)} is a directory",
                hint="rename the variable (ParamAttr(name=...)), or move the directory away",
            )

    def _twin(self, path: str) -> None:
        source, target = os.path.join(self._directory, path), os.path.join(self.new, path)
        facts = os.stat(source)
        os.makedirs(target, exist_ok=True)
        own = os.stat(target)
        self._begun = self._begun or own.st_mtime_ns
        if own.st_dev != facts.st_dev:
            raise OSError("another file system")
        if (own.st_uid, own.st_gid) != (facts.st_uid, facts.st_gid):
            os.chown(target, facts.st_uid, facts.st_gid)
        self._modes[path] = stat.S_IMODE(facts.st_mode)
        os.chmod(target, self._modes[path] | _OURS)
        _copy_attributes(source, target)

    def _use_journal(self) -> None:
        if self.step == "exchange":
            self.step = "journal"

    def _drop_spares(self) -> None:
        """Keep only files of the previous version that can be overwritten or are already linked."""
        if not self._spares:
            return
        changed = self._changed
        for path, inode in list(self._spares.items()):
            where = os.path.join(self.new, path)
            facts = os.lstat(where)
            if path in self._dropped:
                good = False
            elif path in changed:
                good = stat.S_ISREG(facts.st_mode)
            else:
                good = self._files.get(path) == inode
            if not good:
                os.unlink(where)
                del self._spares[path]
        folders = {os.path.dirname(path) for path in (*(self._files.keys() - self._dropped.keys()), *changed)}
        for path, _, is_folder in reversed(list(walk(self.new))):
            if is_folder and path not in self._modes and path not in folders:
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(self.new, path))

    def __enter__(self) -> Generation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the descriptors for writing and committing files."""
        self._present = None

    # Its files

    def like(self, path: str) -> os.stat_result | None:
        """Return the result of ``stat`` for the file that ``path`` will replace, or None for a new file."""
        if self.step == "rename" or (self.step == "exchange" and path not in self._files):
            return None
        try:
            if self._present is None:
                self._present = opened(self._directory, os.O_RDONLY)
            facts = os.stat(path, dir_fd=self._present.args[0], follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return facts if stat.S_ISREG(facts.st_mode) else None

    def is_spare(self, path: str) -> bool:
        """Return whether ``path`` holds a file to overwrite."""
        return path in self._spares

    def copy_manifest(self, path: str) -> None:
        """Put the current manifest at another path in the new version, as a link if possible."""
        target = os.path.join(self.new, path)
        if self._spares.pop(path, None) is not None:
            os.unlink(target)
        try:
            os.link(self._layout.manifest, target)
            self._linked[path] = make_stamp(os.lstat(target))
        except OSError:
            shutil.copyfile(self._layout.manifest, target)

    def link_others(self) -> None:
        """Link all unchanged files."""
        if self.step != "exchange":
            return
        changed = self._changed.keys() | self._dropped.keys()
        try:
            with opened(self._directory, os.O_RDONLY) as (old, _), opened(self.new, os.O_RDONLY) as (new, _):
                for path in sorted(self._files.keys() - changed - self._spares.keys()):
                    # S3
                    with contextlib.suppress(FileNotFoundError):  # its owner removed it
                        os.link(path, path, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)
            for path in remove_folders(self.new, self._dropped):
                self._modes.pop(path, None)
            for path in sorted(self._modes, reverse=True):
                if self._modes[path] & _OURS != _OURS:
                    os.chmod(os.path.join(self.new, path), self._modes[path])
        except OSError:  # no hard links here, or none to other users' files
            self._use_journal()

    def note_staged(
        self, token: str | None, records: Mapping[str, Record], shared: Iterable[str], *, keep: bool
    ) -> None:
        """Write ``staged``: the identity of the new version, and the files of the current one.

        ``shared`` are the files shared with another directory. With ``keep`` the current version stays beside
        the directory after the commit.
        """
        if self.step != "exchange":
            return
        written = self._linked | {path: records[path].stamp for path in shared}
        if token is None:
            written = {path: records[path].stamp for path in self._changed if path in records}
        dropped = self._dropped if keep else None
        write_staged(self._layout, token, written, self._files, dropped, begun=self._begun)

    # The commit

    def commit(self, *, sync: bool, keep: bool) -> None:
        """Replace the current version by the new one, and sync it if no generation is kept.

        Raises
        ------
        SaveError
            The commit failed and nothing changed; or it succeeded, but the disk refused it.
        """
        if self.step == "exchange":  # a reused directory is a new version for its readers
            now = time.time_ns()
            os.utime(self.new, ns=(now, now))
        if self.step == "nothing" or (self.step != "journal" and self._swap()):
            if sync and not keep:
                self._sync()
            return
        self.step = "journal"
        journal.commit(self._layout, list(self._changed), list(self._dropped), sync=sync)

    def _sync(self) -> None:
        """Sync the commit to the disk."""
        try:
            if self.step == "exchange":
                sync_directory(self._layout.staging)
            sync_directory(self._layout.parent)
            sync_directory(self._directory)
            for folder in sorted({os.path.dirname(path) for path in self._changed} - {""}):
                sync_directory(os.path.join(self._directory, folder))
        except OSError as error:
            what = f"{self._directory} was saved, but perhaps not to the disk yet: a power cut may undo it"
            raise explain(SaveError, what, error) from error

    def _swap(self) -> bool:
        """Put the new version in place by one system call; return whether that was possible."""
        try:
            if self.step == "rename":
                os.rename(self.new, self._directory)
            elif self.step == "single":
                (changed,) = self._changed
                path = self._top(changed)
                os.rename(os.path.join(self.new, path), os.path.join(self._directory, path))
            else:
                # S1
                exchange(self.new, self._directory)
        except OSError as error:
            if os.path.isdir(self._directory):
                return False
            if self.step == "rename":
                raise
            raise SaveError(
                f"{self._directory} was removed by somebody during the save", hint="save again"
            ) from error
        return True

    def move_late(self) -> None:
        """Move files that others added to the old version during the swap."""
        rescue(self.new, self._directory, self._files, remove=False)

    def retire(self, *, spare: bool) -> None:
        """Remove the old version after the commit, except files that others added since.

        The next save removes what remains.
        """
        if self.step == "exchange" and os.path.isdir(self.new):
            rescue(self.new, self._directory, self._files, remove=not spare)
            if not spare:
                with contextlib.suppress(OSError):  # for example, others have added files since
                    os.rmdir(self.new)

    def _top(self, path: str) -> str:
        """Return ``path``, or the first folder along it that the directory lacks."""
        parts = path.split("/")
        for depth in range(1, len(parts)):
            if not is_directory(os.path.join(self._directory, *parts[:depth])):
                return "/".join(parts[:depth])
        return path


def _copy_attributes(source: str, target: str) -> None:
    """Copy extended attributes, such as access lists, where there are any."""
    with contextlib.suppress(OSError, AttributeError):  # not supported by the file system or Python
        for name in os.listxattr(source):
            os.setxattr(target, name, os.getxattr(source, name))


def _works_inside(directory: str) -> bool:
    """Return whether this process works in the directory or below it, so that it must not be swapped."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return False
    return here == directory or here.startswith(os.path.join(directory, ""))
