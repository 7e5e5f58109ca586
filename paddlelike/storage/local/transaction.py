"""A set of files that is written into a directory as one: all of them, or none, whatever kills the writer.

The new generation of the directory is built beside it, in ``DIR.saving/new``: the new files are written
there, all others, saved earlier or other people's, are hard-linked. Then the two directories change places
in one step of the system (a new directory: one rename; a single file: one rename). Where that cannot be,
because the directory is a mount point, or the file system has no such step or no hard links, or this process
works inside the directory, the files are moved one by one under a journal (see ``storage.journal``) that the
next load or save follows to its end. Nothing foreign is ever inside the directory. A link in it is replaced
as a file is; one in place of a folder that is needed is refused: nothing is written where a link leads to.

``durability`` says what a save that returned survives:

- ``"process"``: the death of this process and of all others, at any instant. After a power cut the files are
  what the file system makes of them; ``manifest.verify`` tells.
- ``"power"``: also a power cut and a crash of the system: everything is on the disk before the commit, and
  the commit before the return. It costs as long as the disk takes to write the files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from paddlelike.errors import FormatError, SaveError, StorageError
from paddlelike.storage import hashing, manifest
from paddlelike.storage.local import generation, journal
from paddlelike.storage.local.files import Path
from paddlelike.storage.local.lock import Lock
from paddlelike.storage.local.retired import has_others
from paddlelike.storage.local.siblings import Siblings
from paddlelike.storage.local.system import reflink, sync_file_system
from paddlelike.storage.local.writing import Buffer, Piece, write_files
from paddlelike.storage.manifest import Record
from paddlelike.storage.names import relative_path
from paddlelike.storage.options import Durability, SaveOptions
from paddlelike.storage.parts import Part, joined, outdated, remaining
from paddlelike.storage.problems import explained

__all__ = ["Committed", "Transaction", "write_all"]

_READ_ONLY: Final = os.strerror(errno.EROFS)


@dataclass(frozen=True)
class Committed:
    """What a transaction saved: a record for each file, written and kept ones; and how much was written."""

    directory: str
    files: dict[str, Record]
    written: int = 0  # files
    nbytes: int = 0  # bytes in them
    kept: int = 0  # files that were not written again
    removed: tuple[str, ...] = ()  # files of an earlier save of the same part


def write_all(directory: Path, files: Mapping[str, Iterable[Buffer]]) -> None:
    """Write every file of ``{name: buffers}`` into ``directory``, or none of them; without a manifest."""
    root = os.path.realpath(os.fspath(directory) or ".")
    beside = None
    if len(files) == 1 and os.path.isdir(root) and not os.access(os.path.dirname(root), os.W_OK | os.X_OK):
        beside = os.path.join(root, *files)  # a file by itself: its helpers may lie beside it
    with Transaction(directory, beside=beside, manifest=False) as transaction:
        for name, buffers in files.items():
            transaction.add(name, buffers)


class Transaction:
    """Collects files for a directory; :meth:`commit`, or the end of the ``with``, writes them.

    Parameters
    ----------
    directory
        Where the files go. It is made when missing.
    beside
        For a few files in a directory of other things: the path that their names begin with. The helpers of
        the save then lie beside the files (``PATH.lock``, ``PATH.manifest.json``), not beside the directory.
    durability
        What the save survives, see above.
    checksum
        How the files' checksums for the manifest are made; None: not at all.
    manifest
        Write one. Without it, one that is there is removed, since it would not be true any more.
    program
        The fingerprint of the program, for the manifest.
    state
        More for the manifest, whatever JSON can say.
    wait
        Seconds to wait for another saver of this directory; None: as long as it takes.
    part
        What the files are, see ``storage.parts``: files of an earlier save of the same part that are not
        among them are removed in the same step.
    keep_generation
        Leave the replaced files in ``DIR.saving``, to be written over by the next save: twice the disk, and
        saving over a save costs half.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with Transaction(f"{home}/model") as transaction:
    ...         transaction.add("fc_0.w_0", [b"header", b"data"])
    ...     print(sorted(os.listdir(home)), os.listdir(f"{home}/model"))
    ['model', 'model.manifest.json'] ['fc_0.w_0']
    """

    def __init__(
        self,
        directory: Path,
        *,
        beside: Path | None = None,
        durability: Durability = SaveOptions.durability,
        checksum: hashing.Algorithm | None = SaveOptions.checksum,
        manifest: bool = True,
        program: str | None = None,
        state: Any = None,
        wait: float | None = SaveOptions.wait,
        keep_generation: bool = SaveOptions.keep_generation,
        part: Part | None = None,
    ) -> None:
        if durability not in ("process", "power"):
            raise ValueError(f'durability is "process" or "power", not {durability!r}')
        if checksum is not None and checksum not in hashing.ALGORITHMS:
            raise ValueError(f"checksum is one of {list(hashing.ALGORITHMS)} or None, not {checksum!r}")
        self.directory = os.path.realpath(os.fspath(directory) or ".")
        self._siblings = Siblings.of(self.directory if beside is None else beside)
        if beside is not None and self._siblings.parent != self.directory:
            raise ValueError(f"beside={beside} does not lie in {self.directory}")
        self._whole = beside is None  # the directory is the set
        self._power = durability == "power"
        self._checksum = checksum
        self._manifest = manifest
        self._program = program
        self._state = state
        self._wait = wait
        self._spare = keep_generation
        self._part = part
        self._names: dict[str, str] = {}  # path -> name
        self._pieces: dict[str, Piece] = {}
        self._kept: dict[str, Record] = {}
        self._roots: dict[Path | None, str] = {}
        self._shared: dict[str, tuple[str, Record]] = {}  # path -> where the file is, and what it is

    def add(self, name: str, buffers: Iterable[Buffer], facts: Mapping[str, Any] | None = None) -> None:
        """Add the file of variable ``name``. The buffers are read at the commit, not copied now.

        ``facts`` go into the manifest: variable, kind, dtype, shape, lod.

        Raises
        ------
        StorageError
            When the name cannot be a file, or is the file of another variable already.
        """
        self._pieces[self._new_path(name)] = Piece(buffers, facts or {})

    def keep(self, name: str, record: Record, *, base: Path | None = None) -> bool:
        """Let the file of ``name`` be the one that was saved as ``record``, without writing it.

        ``record`` is from :attr:`Committed.files` of an earlier save, or from ``manifest.read``. Without
        ``base`` the file is the one in place; with it, the one of that name in the directory ``base``, which
        then is shared by the two directories: by reflink, else as a hard link, which only programs that
        replace files respect (this one does; one that writes into them changes both), else copied.

        Returns
        -------
        False when that file is not there or is not the one that was saved any more: then :meth:`add` it.
        """
        root = self._recovered(base)
        path = relative_path(name)
        source = os.path.join(root, path)
        if not _is_still(source, record):
            return False
        self._new_path(name)
        if root == self.directory:
            self._kept[path] = record
        else:
            self._shared[path] = (source, record)
        return True

    def commit(self) -> Committed:
        """Write all files and move them into the directory.

        Returns
        -------
        What was saved, file by file.

        Raises
        ------
        SaveError
            With the file and the reason; the directory is as it was.
        """
        if not self._names:
            return Committed(self.directory, {})
        self._check_clashes()
        self._prepare()
        siblings = self._siblings
        with Lock(siblings.lock, siblings.base, wait=self._wait):
            generation.clear(siblings, self.directory, spare=self._spare)
            try:
                records, dropped = self._commit()
            except OSError as error:
                if isinstance(error, StorageError):
                    raise
                raise explained(SaveError, f"{self.directory} cannot be written", error) from error
            finally:
                with contextlib.suppress(OSError):  # whatever is left, the next save clears away
                    generation.clear(siblings, self.directory, spare=self._spare)
        written = [records[path].size for path in self._pieces]
        named = {self._names[path]: records[path] for path in self._names}
        kept = len(self._kept) + len(self._shared)
        return Committed(self.directory, named, len(written), sum(written), kept, tuple(dropped))

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit()

    # --- before anything is written -------------------------------------------------------------------

    def _recovered(self, base: Path | None) -> str:
        """The directory a kept file is in, whose last save is whole."""
        if base not in self._roots:
            root = self.directory if base is None else os.path.realpath(os.fspath(base))
            journal.recover(self._siblings.base if base is None else root)
            self._roots[base] = root
        return self._roots[base]

    def _new_path(self, name: str) -> str:
        path = relative_path(name)
        if path in self._names:
            raise StorageError(f"variables {self._names[path]!r} and {name!r} would be the same file")
        if not self._whole and not self._siblings.is_beside(path):
            raise StorageError(
                f"{name!r} is saved by itself: its name begins with {os.path.basename(self._siblings.base)!r}"
            )
        self._names[path] = name
        return path

    def _check_clashes(self) -> None:
        seen: set[str] = set()
        for path, name in self._names.items():
            folder = os.path.dirname(path)
            while folder and folder not in seen:
                seen.add(folder)
                if folder in self._names:
                    raise SaveError(
                        f"variable {self._names[folder]!r} is a file where {name!r} needs a directory",
                        hint="rename one of them, or use filename= for one file of all",
                    )
                self._check_folder(os.path.join(self.directory, folder), name)
                folder = os.path.dirname(folder)

    def _check_folder(self, folder: str, name: str) -> None:
        """What lies inside the directory is written, and nothing that a link in it leads to."""
        if os.path.islink(folder):
            raise SaveError(
                f"variable {name!r} cannot be saved: {folder} is a link to {os.readlink(folder)!r}",
                hint="make it a directory, or let the whole model lie where the link leads to",
            )
        if os.path.lexists(folder) and not os.path.isdir(folder):
            raise SaveError(f"variable {name!r} cannot be saved: {folder} is a file, not a directory")

    def _prepare(self) -> None:
        """Make the parent; refuse what cannot become a directory to save into."""
        directory, parent = self.directory, self._siblings.parent
        if os.path.lexists(directory) and not os.path.isdir(directory):
            raise SaveError(f"{directory} is a file; a directory is needed to save into")
        try:
            os.makedirs(parent, exist_ok=True)
        except OSError as error:
            raise explained(SaveError, f"{directory} cannot be made", error) from error
        for folder in (directory, parent):
            if os.path.isdir(folder) and _is_read_only(folder):
                raise explained(SaveError, f"{directory} cannot be written", OSError(errno.EROFS, _READ_ONLY))
        if os.path.isdir(directory) and not _may_write(directory):
            raise SaveError(
                f"{directory} cannot be written: this user may not write there",
                hint="choose another directory",
            )
        if not _may_write(parent):
            raise SaveError(
                f"{directory} cannot be saved as one: {parent}, where it lies, cannot be written",
                hint=f"save into a directory below it, such as {os.path.join(directory, 'model')}",
            )

    # --- the save, with the lock held -----------------------------------------------------------------

    def _commit(self) -> tuple[dict[str, Record], list[str]]:
        for path, record in self._kept.items():
            if not _is_still(os.path.join(self.directory, path), record):
                raise SaveError(f"{path} was changed by somebody else during the save", hint="save again")
        changed = sorted([*self._pieces, *self._shared])
        before = self._before()
        dropped = [
            path
            for path in outdated(before, self._names, self._part)
            if _is_still(os.path.join(self.directory, path), before[path])
        ]
        plan = generation.Generation(self._siblings, self.directory, changed, dropped, whole=self._whole)
        pieces = self._pieces
        if plan.step != "rename":
            pieces = {
                path: piece._replace(like=plan.like(path), over=plan.is_spare(path))
                for path, piece in pieces.items()
            }
        records = write_files(plan.new, pieces, self._checksum, shown=self.directory)
        for path, (source, record) in self._shared.items():
            records[path] = _share(source, os.path.join(plan.new, path), record)
        records |= self._kept
        plan.link_others()
        self._write_manifest(plan, records, before, dropped)
        if self._power:
            sync_file_system(plan.new)
        plan.commit(with_manifest=self._manifest, sync=self._power)
        if self._manifest:
            with contextlib.suppress(OSError):  # where it is, it is as good
                os.replace(self._siblings.next, self._siblings.manifest)
        plan.retire(spare=self._spare)
        return records, dropped

    def _before(self) -> dict[str, Record]:
        """What the manifest says of the files that are there, if there are others than those of this save."""
        if self._manifest and has_others(self.directory, self._names):
            with contextlib.suppress(StorageError, FormatError):  # one that cannot be read says nothing
                found = manifest.read(self._siblings.base)
                return {} if found is None else found.files
        return {}

    def _write_manifest(
        self,
        plan: generation.Generation,
        records: dict[str, Record],
        before: dict[str, Record],
        dropped: list[str],
    ) -> None:
        """Put the manifest beside the one that is; a reader takes it from the moment of the commit on."""
        if not self._manifest:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._siblings.manifest)
            return
        files = {
            path: record
            for path, record in remaining(before, records, self._part)
            if path not in dropped and os.path.lexists(os.path.join(self.directory, path))
        }
        files.update(joined(records, before, self._part))
        data = manifest.encode(
            files,
            program=self._program,
            commit=plan.marker(),
            beside=not self._whole,
            state=self._state,
            part=None if self._part is None else self._part.name,
        )
        with open(self._siblings.next, "wb") as file:
            file.write(data)


def _share(source: str, target: str, record: Record) -> Record:
    """Make ``target`` the same file as ``source``, at the least cost there is."""
    if os.path.lexists(target):  # a spare
        os.unlink(target)
    facts = os.stat(source)
    if not reflink(source, target):
        try:
            if facts.st_uid != os.geteuid():
                raise PermissionError
            os.link(source, target, follow_symlinks=False)
        except OSError:  # another file system, or one without hard links
            shutil.copyfile(source, target)
    if not record.is_still(facts):
        raise SaveError(f"{source} was changed by somebody else during the save", hint="save again")
    return record._replace(stamp=manifest.stamp_of(os.stat(target)))


def _is_still(path: str, record: Record) -> bool:
    try:
        return record.is_still(os.lstat(path))
    except OSError:
        return False


def _is_read_only(directory: str) -> bool:
    return hasattr(os, "statvfs") and bool(os.statvfs(directory).f_flag & os.ST_RDONLY)


def _may_write(directory: str) -> bool:
    effective = os.access in os.supports_effective_ids
    return os.access(directory, os.W_OK | os.X_OK, effective_ids=effective)
