"""The next generation of a directory: built in ``DIR.saving/new``, put in place, then cleared away.

After the exchange ``DIR.saving/new`` is the generation before. ``DIR.saving/staged``, a link that names the
inode of the new one, tells the two apart when the saver was killed. Files that others put into the directory
while it was exchanged are moved over before the old generation is removed; ``DIR.saving/dropped`` lists those
that are not to come back.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Sequence
from typing import Final

from paddlelike.errors import FormatError, SaveError, StorageError
from paddlelike.storage import manifest
from paddlelike.storage.local import journal
from paddlelike.storage.local.files import File
from paddlelike.storage.local.retired import forget, remove_folders, remove_tree, rescue, walk
from paddlelike.storage.local.siblings import Siblings
from paddlelike.storage.local.system import exchange, has_mounts, sync_directory
from paddlelike.storage.names import relative_path
from paddlelike.storage.problems import explained

__all__ = ["Generation", "clear"]

_MOST: Final = 1 << 28  # bytes of the list of what was dropped
_OURS: Final = 0o700  # what building needs; the exact mode is set at the end


class Generation:
    """The directory that is going to be.

    Parameters
    ----------
    directory
        The directory that is; it may be missing.
    changed
        The paths of the files that will be in ``new`` and not as they are.
    dropped
        The paths of files in the directory that will not be there any more.
    whole
        Whether the directory is the set; else the set is a few of its files, and it stays where it is.
    """

    def __init__(
        self,
        siblings: Siblings,
        directory: str,
        changed: Sequence[str],
        dropped: Sequence[str] = (),
        *,
        whole: bool,
    ) -> None:
        self._siblings = siblings
        self._directory = directory
        self._changed = dict.fromkeys(changed)
        self._dropped = {path: os.lstat(os.path.join(directory, path)).st_ino for path in dropped}
        self.new = os.path.join(siblings.staging, "new")
        self._modes: dict[str, int] = {}  # of the folders that are twins of others
        self._files: dict[str, int] = {}  # path -> inode, of what is there now
        self._present: int | None = None  # the directory that is, open
        self._spares: dict[str, int] = {}  # the same of the generation before, which is built upon
        self.step = self._choose(whole=whole)
        self._make()

    def _choose(self, *, whole: bool) -> str:
        """How the commit will be done: "rename", "single", "exchange", "journal", or "nothing"."""
        if not self._changed and not self._dropped:
            return "nothing"
        if not os.path.isdir(self._directory):
            return "rename"
        if len(self._changed) == 1 and not self._dropped:
            return "single"
        stays = not whole or _works_inside(self._directory) or has_mounts(self._directory)
        return "journal" if stays else "exchange"

    def _make(self) -> None:
        spare = os.path.join(self._siblings.staging, "spare")
        try:
            os.makedirs(self._siblings.staging, _OURS, exist_ok=True)
            if self.step == "exchange" and os.path.isdir(spare) and not os.path.islink(spare):
                os.rename(spare, self.new)
                self._spares = {path: inode for path, inode, folder in walk(self.new) if not folder}
                self._drop_links()
            else:
                os.mkdir(self.new)
        except OSError as error:
            raise explained(SaveError, f"{self._directory} cannot be made", error) from error
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
        """Of the generation before keep no links: nothing may be written through one."""
        for path in list(self._spares):
            where = os.path.join(self.new, path)
            if os.path.islink(where):
                os.unlink(where)
                del self._spares[path]

    def _twin_folders(self) -> set[str]:
        """Make the folders of the present generation again, with their owners and modes; list its files."""
        made = {""}
        if self.step != "exchange":
            for path in self._changed:
                if os.path.isdir(os.path.join(self._directory, path)):
                    self._check_folder(path)
        try:
            self._twin("")
            if self.step != "exchange":
                return made
            for path, inode, folder in walk(self._directory):
                if folder:
                    self._check_folder(path)
                    self._twin(path)
                    made.add(path)
                else:
                    self._files[path] = inode
        except SaveError:
            raise
        except OSError:  # such as owners that this user cannot give, or another file system below
            self._give_up()
        return made

    def _check_folder(self, path: str) -> None:
        if path in self._changed:
            raise SaveError(
                f"variable {path!r} cannot be saved: {os.path.join(self._directory, path)} is a directory"
            )

    def _twin(self, path: str) -> None:
        source, target = os.path.join(self._directory, path), os.path.join(self.new, path)
        facts = os.stat(source)
        os.makedirs(target, exist_ok=True)
        made = os.stat(target)
        if made.st_dev != facts.st_dev:
            raise OSError("another file system")
        if (made.st_uid, made.st_gid) != (facts.st_uid, facts.st_gid):
            os.chown(target, facts.st_uid, facts.st_gid)
        self._modes[path] = stat.S_IMODE(facts.st_mode)
        os.chmod(target, self._modes[path] | _OURS)
        _copy_attributes(source, target)

    def _give_up(self) -> None:
        if self.step == "exchange":
            self.step = "journal"

    def _drop_spares(self) -> None:
        """Of the generation before keep what can be written over, and what is linked already."""
        changed = self._changed
        for path, inode in list(self._spares.items()):
            where = os.path.join(self.new, path)
            facts = os.lstat(where)
            if path in self._dropped:
                good = False
            elif path in changed:
                good = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1
            else:
                good = self._files.get(path) == inode
            if not good:
                os.unlink(where)
                del self._spares[path]
        folders = {os.path.dirname(path) for path in (*(self._files.keys() - self._dropped.keys()), *changed)}
        for path, _, folder in reversed(list(walk(self.new) if self._spares else [])):
            if folder and path not in self._modes and path not in folders:
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(self.new, path))

    # --- what is in it --------------------------------------------------------------------------------

    def like(self, path: str) -> os.stat_result | None:
        """The facts of the file that ``path`` will replace."""
        if self.step == "rename" or (self.step == "exchange" and path not in self._files):
            return None
        try:
            if self._present is None:
                self._present = os.open(self._directory, os.O_RDONLY)
            facts = os.stat(path, dir_fd=self._present, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return facts if stat.S_ISREG(facts.st_mode) else None

    def is_spare(self, path: str) -> bool:
        """Whether there is a file at ``path`` to be written over."""
        return path in self._spares

    def link_others(self) -> None:
        """Bring in all files that stay as they are."""
        if self.step != "exchange":
            return
        changed = self._changed.keys() | self._dropped.keys()
        old, new = os.open(self._directory, os.O_RDONLY), os.open(self.new, os.O_RDONLY)
        try:
            for path in self._files:
                if path in changed or path in self._spares:
                    continue
                with contextlib.suppress(FileNotFoundError):  # its owner removed it
                    os.link(path, path, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)
            for path in remove_folders(self.new, self._dropped):
                self._modes.pop(path, None)
            for path in sorted(self._modes, reverse=True):
                if self._modes[path] & _OURS != _OURS:
                    os.chmod(os.path.join(self.new, path), self._modes[path])
        except OSError:  # no hard links here, or not of other people's files
            self._give_up()
        finally:
            os.close(old)
            os.close(new)

    def marker(self) -> tuple[str, int] | None:
        """The path and the inode by which one knows that the commit has happened."""
        if self.step == "journal":
            return None
        if self.step == "nothing":
            return ".", os.stat(self._directory).st_ino
        if self.step == "single":
            path = self._changed_one()
            return path, os.lstat(os.path.join(self.new, path)).st_ino
        return ".", os.stat(self.new).st_ino

    # --- the step -------------------------------------------------------------------------------------

    def commit(self, *, with_manifest: bool, sync: bool) -> None:
        """Put the generation in its place.

        Raises
        ------
        SaveError
            It could not be; everything is as it was.
        """
        if self.step == "nothing" or (self.step != "journal" and self._one_step()):
            if sync:
                self._sync()
            return
        self.step = "journal"
        journal.commit(
            self._siblings,
            self._directory,
            list(self._changed),
            list(self._dropped),
            manifest=with_manifest,
            sync=sync,
        )

    def _sync(self) -> None:
        """Put the commit onto the disk."""
        try:
            if self.step == "exchange":
                sync_directory(self._siblings.staging)
            sync_directory(self._siblings.parent)
            sync_directory(self._directory)
        except OSError as error:
            what = (
                f"{self._directory} was saved, but perhaps not to the disk yet, so that a power cut undoes it"
            )
            raise explained(SaveError, what, error) from error

    def _one_step(self) -> bool:
        """Whether the one step of the system was possible."""
        try:
            if self.step == "rename":
                os.rename(self.new, self._directory)
            elif self.step == "single":
                path = self._top(self._changed_one())
                os.rename(os.path.join(self.new, path), os.path.join(self._directory, path))
            else:
                if self._dropped:
                    with open(_dropped(self._siblings), "x", encoding="utf-8") as file:
                        json.dump(self._dropped, file)
                os.symlink(str(os.stat(self.new).st_ino), os.path.join(self._siblings.staging, "staged"))
                exchange(self.new, self._directory)
        except OSError:
            if not os.path.isdir(self._directory):
                raise
            return False
        return True

    def retire(self, *, spare: bool) -> None:
        """After the commit: let go of the generation before, but of nothing that others put into it since."""
        if self._present is not None:
            os.close(self._present)
            self._present = None
        if self.step == "exchange" and os.path.isdir(self.new):
            forget(self.new, self._dropped)
            rescue(self.new, self._directory, self._files, remove=not spare)

    def _changed_one(self) -> str:
        (path,) = self._changed
        return path

    def _top(self, path: str) -> str:
        """``path``, or the first folder on the way to it that the directory does not have."""
        parts = path.split("/")
        for depth in range(1, len(parts)):
            if not os.path.isdir(os.path.join(self._directory, *parts[:depth])):
                return "/".join(parts[:depth])
        return path


def clear(siblings: Siblings, directory: str, *, spare: bool) -> None:
    """Finish what a saver before left half done, and remove what it left lying. The lock is held.

    ``spare``: let the generation before lie, for the next save to be built upon.
    """
    journal.finish(siblings)
    manifest.settle(siblings)
    if not os.path.lexists(siblings.staging):
        return
    if os.path.islink(siblings.staging) or not os.path.isdir(siblings.staging):
        raise SaveError(f"{siblings.staging} is in the way", hint="remove or rename it")
    new, old = os.path.join(siblings.staging, "new"), os.path.join(siblings.staging, "spare")
    if _is_exchanged(siblings.staging, directory) and os.path.isdir(new) and not os.path.islink(new):
        forget(new, _read_dropped(siblings))
        rescue(new, directory, None, remove=False)
        if spare:
            remove_tree(old)
            with contextlib.suppress(OSError):
                os.rename(new, old)
    if not spare:
        remove_tree(siblings.staging)
        return
    for entry in os.scandir(siblings.staging):
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "spare":
                remove_tree(entry.path)
        else:
            os.unlink(entry.path)
    with contextlib.suppress(OSError):
        os.rmdir(siblings.staging)  # nothing is in it


def _dropped(siblings: Siblings) -> str:
    return os.path.join(siblings.staging, "dropped")


def _read_dropped(siblings: Siblings) -> dict[str, int]:
    """What was dropped, by inode; nothing where the list is missing or none of ours."""
    with contextlib.suppress(FormatError, StorageError, ValueError, AttributeError, RecursionError):
        with File(_dropped(siblings)) as file:
            inodes = json.loads(file.read(_MOST).decode())
        return {path: inode for path, inode in inodes.items() if relative_path(path) == path}
    return {}


def _is_exchanged(staging: str, directory: str) -> bool:
    try:
        return os.readlink(os.path.join(staging, "staged")) == str(os.stat(directory).st_ino)
    except OSError:
        return False


def _copy_attributes(source: str, target: str) -> None:
    """Copy extended attributes, such as access lists, where there are any."""
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):  # a file system without them
        for name in os.listxattr(source):
            os.setxattr(target, name, os.getxattr(source, name))


def _works_inside(directory: str) -> bool:
    """Whether this process has its working directory there, which must not be pulled away."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return False
    return here == directory or here.startswith(os.path.join(directory, ""))
