"""A set of files that is written into a directory atomically: all or none, even if the process is killed.

The new version of the directory is built beside it, in the hidden entry of :mod:`.layout`. New files and
their manifest are written there; all other files are hard-linked. Then one system call swaps the two
directories (a new directory or a single file is renamed). A swap is impossible if the directory is a mount
point, if the file system cannot swap or link, or if this process works inside the directory. Then the files
are moved one by one under a journal (:mod:`.journal`), which the next load or save finishes. A link in place
of a file is replaced; a link in place of a needed folder is refused. Nothing is written where a link points
to.

Only ``remove_stale`` deletes files, and only files of the same program's earlier saves. ``durability`` is
what a finished save survives:

- ``"atomic"``: killed processes. After a power cut the directory holds all files of this save, or all of the
  previous save, which stays beside it until this one is on the disk (:mod:`.syncing`).
- ``"process"``: killed processes only. After a power cut files may be damaged; ``verify`` finds such files.
- ``"power"``: also power cuts and system crashes. Everything is on the disk before the commit, and the commit
  before the return. It takes as long as the disk takes to write the files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Final

from paddlelike.errors import PaddlelikeError, SaveError, StorageError
from paddlelike.foundation.warn import warn_user
from paddlelike.storage import hashing
from paddlelike.storage.interfaces import Buffer, Committed, Contents, Path
from paddlelike.storage.local import crash_recovery as staged, earlier, generation, target
from paddlelike.storage.local.filesystem.lock import Lock
from paddlelike.storage.local.filesystem.owners import check_links
from paddlelike.storage.local.filesystem.system import sync_file_system
from paddlelike.storage.local.layout import Layout, resolve
from paddlelike.storage.local.present_manifest import read_part
from paddlelike.storage.local.syncing import sync_beside, wait_for_disk
from paddlelike.storage.local.unchanged import share_file
from paddlelike.storage.local.writing import Piece, write_files
from paddlelike.storage.manifest import Author, Manifest, Record, encode, measure
from paddlelike.storage.names import make_part_name, relative_path
from paddlelike.storage.options import Durability, SaveOptions
from paddlelike.storage.problems import explain, is_there
from paddlelike.storage.verification import find_stale, find_superseded, is_still

_MOST_PARTS: Final = 64  # number of manifests that one continues
_LEAST_KEPT: Final = 2048  # bytes of records; fewer are written again
_FEW: Final = 80


def write_all(
    directory: Path, files: Mapping[str, Iterable[Buffer]], *, durability: Durability = SaveOptions.durability
) -> None:
    """Write every file of ``{name: buffers}`` into ``directory``, or none of them; without a manifest.

    Raises
    ------
    SaveError
        A file cannot be written; the directory is unchanged.
    """
    root = resolve(directory)
    prefix = None
    if len(files) == 1 and os.path.isdir(root) and not os.access(os.path.dirname(root), os.W_OK | os.X_OK):
        prefix = os.path.join(root, *files)  # a single file: the hidden entry may be beside the file
    with Transaction(directory, prefix=prefix, durability=durability, manifest=False) as transaction:
        for name, buffers in files.items():
            transaction.add(name, buffers)


class Transaction:
    """Collects files for a directory; :meth:`commit`, or the end of the ``with``, writes them.

    Parameters
    ----------
    directory
        The directory of the files, created when missing.
    prefix
        The common beginning of the files' paths, if they are a few among others in a directory. The
        manifest is then ``PREFIX.pdmanifest``.
    durability
        The event that the save survives, see above.
    checksum
        The algorithm of the manifest's checksums, or None for no checksums.
    manifest
        Whether to write a manifest. If not, an existing one is removed, since it would describe other files.
    program, part
        The author for the manifest, see :class:`~paddlelike.storage.manifest.Author`.
    state
        Additional state for the manifest, anything that JSON can hold.
    wait
        Seconds to wait for another process that saves into this directory; None for no limit.
    keep_generation
        Leave the replaced files in the hidden entry, to be overwritten by the next save: twice the disk space
        for about half the time.
    remove_stale
        Delete files that the same program wrote in an earlier save and does not write now.

    Raises
    ------
    ValueError
        An option is not one of its choices, or ``prefix`` is not in the directory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with Transaction(f"{home}/model") as transaction:
    ...         transaction.add("fc_0.w_0", [b"header", b"data"])
    ...     print(os.listdir(home), sorted(os.listdir(f"{home}/model")))
    ['model'] ['__manifest__', 'fc_0.w_0']
    """

    def __init__(
        self,
        directory: Path,
        *,
        prefix: Path | None = None,
        durability: Durability = SaveOptions.durability,
        checksum: hashing.Algorithm | None = SaveOptions.checksum,
        manifest: bool = SaveOptions.manifest,
        program: str | None = None,
        part: str | None = None,
        state: Any = None,
        wait: float | None = SaveOptions.wait,
        keep_generation: bool = SaveOptions.keep_generation,
        remove_stale: bool = SaveOptions.remove_stale,
    ) -> None:
        SaveOptions(durability=durability)  # checks it
        if checksum is not None and checksum not in hashing.ALGORITHMS:
            raise ValueError(f"checksum must be one of {list(hashing.ALGORITHMS)} or None, not {checksum!r}")
        self.directory, self._given = resolve(directory), os.path.join(os.getcwd(), directory)
        if prefix is None:
            self._layout = target.choose_layout(self.directory)
        else:
            self._layout = Layout.of(prefix, is_prefix=True)
        if self._layout.directory != self.directory:
            raise ValueError(f"prefix={prefix} is not in {self.directory}")
        self._durability = durability
        self._checksum = checksum
        self._manifest = manifest
        self._manifest_bytes = 0
        self._author = Author(program, part)
        self._state = state
        self._spare = keep_generation
        self._remove_stale = remove_stale
        self._names: dict[str, str] = {}  # path -> name
        self._pieces: dict[str, Piece] = {}
        self._kept: dict[str, Record] = {}
        self._otherwise: dict[str, Contents] = {}  # path -> contents to write if the file is not kept
        self._roots: dict[Path | None, str] = {}
        self._shared: dict[str, tuple[str, Record]] = {}  # path -> directory of the file, and its record
        self._notes: list[str] = []
        self._wait = wait
        self._lock = Lock(self._layout.lock, self._layout.base, wait=wait)

    def reserve(self, *, wait: bool = False) -> bool:
        """Take the lock now, if the directory exists and nobody holds it; return whether it was taken. Files
        that :meth:`keep` finds then stay unchanged until :meth:`commit` or :meth:`release`. With ``wait``,
        wait while the disk writes the previous save.
        """
        if wait:
            wait_for_disk(self._layout)
        with contextlib.suppress(PaddlelikeError, OSError):  # the commit raises the error
            if os.path.isdir(self.directory) and self._lock.is_next() and self._lock.acquire():
                self._layout.work = self._lock.folder
                staged.clear(self._layout, spare=self._spare)
                return True
        self._lock.release()
        return False

    def release(self) -> None:
        """Release the lock of a save that was not committed."""
        self._lock.release()

    def add(self, name: str, buffers: Iterable[Buffer], facts: Mapping[str, Any] | None = None) -> None:
        """Add the file of variable ``name``. The buffers are read at the commit, not copied now.

        ``facts`` go into the manifest: variable, kind, dtype, shape, lod.

        Raises
        ------
        StorageError
            The name cannot be a file, or another variable has it.
        """
        self._pieces[self._new_path(name)] = Piece(buffers, facts or {})

    def keep(
        self, name: str, record: Record, *, base: Path | None = None, otherwise: Contents | None = None
    ) -> bool:
        """Keep the file of ``name`` that was saved as ``record``, without writing it.

        ``record`` is from ``Committed.files`` of an earlier save, or from a manifest. With ``base`` the file
        of that name in the directory ``base`` is shared: by reflink, else by hard link, else by a copy. (A
        program that writes into a hard-linked file changes both directories; this package replaces files.)

        Another save may replace the file before this save has the lock (:meth:`reserve`), or the file in
        ``base`` at any time. Then the buffers and facts that ``otherwise`` returns are written, as by
        :meth:`add`; without ``otherwise`` the commit fails. With ``otherwise``, only the commit checks the
        file in place.

        Returns
        -------
        False if that file does not exist or was replaced: then :meth:`add` it.

        Raises
        ------
        StorageError
            The name cannot be a file, or another variable has it; or an interrupted save into ``base`` cannot
            be finished.
        """
        root = self._recover(base)
        path = relative_path(name)
        if (otherwise is None or root != self.directory) and not is_still(os.path.join(root, path), record):
            return False
        self._new_path(name)
        if record.author != self._author:
            record = record._replace(author=self._author)
        if root == self.directory:
            self._kept[path] = record
        else:
            self._shared[path] = (os.path.join(root, path), record)
        if otherwise is not None:
            self._otherwise[path] = otherwise
        return True

    def commit(self) -> Committed:
        """Write all files and move them into the directory.

        Raises
        ------
        SaveError
            A file cannot be written; the error says which, why, and whether the save took place.
        """
        if not self._names:
            return Committed(self.directory, {})
        try:
            wait_for_disk(self._layout)
            check_links(self._given, self.directory)
            target.check_folders(self.directory, self._names)
            target.prepare_target(self._layout)
            # S2
            with self._lock:
                self._layout.work = self._lock.folder
                if (inside := self._layout.get_inside()) is not None:  # this user may not write beside it
                    with Lock(inside.lock, inside.base, wait=self._wait) as lock:
                        inside.work = lock.folder
                        staged.clear(inside, spare=False)
                if self._layout.is_inside:
                    self._notes.append(target.describe_inside(self._layout))
                done = self._commit_locked(self._lock)
            if self._layout.is_inside:
                warn_user(target.describe_inside(self._layout))
            return done
        except StorageError as error:
            raise SaveError(f"{error.message}; nothing was saved", hint=error.hint) from error
        except OSError as error:
            if isinstance(error, PaddlelikeError):
                raise
            raise explain(
                SaveError, f"{self.directory} cannot be written, and nothing was saved", error
            ) from error
        finally:
            self._lock.release()

    def _commit_locked(self, lock: Lock) -> Committed:
        staged.clear(self._layout, spare=self._spare)
        finish = None
        try:
            records, stale, removed, finish = self._commit()
        except (OSError, PaddlelikeError) as error:
            target.check_own_folder(self._layout, error)
            raise
        finally:
            with contextlib.suppress(OSError, PaddlelikeError):  # the next save cleans up
                if finish is None and not lock.is_lost():
                    staged.clear(self._layout, spare=self._spare)
        written = [records[path].size for path in self._pieces]
        if finish is not None:
            sync_beside(self._layout, lock, finish, sum(written))
        if lock.waited:
            self._notes.append(lock.waited)
        return Committed(
            self.directory,
            {name: records[path] for path, name in self._names.items()},
            written=len(written),
            nbytes=sum(written),
            kept=len(self._kept) + len(self._shared),
            stale=tuple(stale),
            removed=tuple(removed),
            notes=tuple(self._notes),
            manifest_bytes=self._manifest_bytes,
        )

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()

    # Before anything is written

    def _recover(self, base: Path | None) -> str:
        """Finish the last save of the directory that a kept file is in, and return it."""
        if base not in self._roots:
            layout = self._layout if base is None else Layout.of(base, is_prefix=False)
            staged.recover(layout)
            self._roots[base] = layout.directory
        return self._roots[base]

    def _new_path(self, name: str) -> str:
        path = relative_path(name)
        if path in self._names:
            raise StorageError(f"variables {self._names[path]!r} and {name!r} would be the same file")
        if self._layout.is_prefix and not self._layout.owns(path):
            raise StorageError(
                f"the name of {name!r} does not begin with {os.path.basename(self._layout.base)!r}"
            )
        self._names[path] = name
        return path

    # The save, with the lock held

    def _commit(self) -> tuple[dict[str, Record], list[str], list[str], Callable[[], None] | None]:
        """Return the records of this save's files, the stale files, the removed files, and a callback.

        The callback runs once the commit is on the disk. It is None when nothing waits for that.
        """
        layout = self._layout
        front = os.path.join(self.directory, "")
        for path, record in list(self._kept.items()):
            # S8
            if is_still(front + path, record):
                continue
            if path not in self._otherwise:
                raise SaveError(f"{path} was changed by somebody else during the save", hint="save again")
            del self._kept[path]
            self._pieces[path] = Piece(*self._otherwise[path]())
        before = self._before()
        others = self._other_records(before)
        saved = self._list_facts()
        superseded = find_superseded(others, saved)
        others = {path: record for path, record in others.items() if path not in superseded}
        stale = sorted(find_stale(others, self._author))
        dropped = superseded + (stale if self._remove_stale else [])
        chained = {str(facts.get("variable")) for facts in saved if "link" in facts}
        for variable in chained.difference(dropped):
            # C1, for files without a readable manifest
            if is_there(path := os.path.join(layout.directory, variable)):
                what = f"{variable!r} cannot be saved as a chain of deltas: {path} may be of another program"
                raise SaveError(what, hint="remove that file, or save without delta=")
        if not self._manifest and is_there(layout.manifest):
            dropped.append(layout.manifest_name)
        changed = sorted([*self._pieces, *self._shared])
        continued, part = self._find_continued(before)
        dropped += earlier.list_parts(self.directory, continued)
        if part is not None:
            changed.append(part)
        if self._manifest:
            changed.append(layout.manifest_name)  # as the last one
        with generation.Generation(layout, changed, dropped) as plan:
            if part is not None:
                plan.copy_manifest(part)
            return self._carry_out(plan, before, continued, others, stale, dropped)

    def _carry_out(
        self,
        plan: generation.Generation,
        before: Manifest | None,
        continued: Manifest | None,
        others: Mapping[str, Record],
        stale: list[str],
        dropped: Collection[str],
    ) -> tuple[dict[str, Record], list[str], list[str], Callable[[], None] | None]:
        """Write and commit the new version; see :meth:`_commit`."""
        import secrets  # late: it takes long

        layout = self._layout
        records = self._write(plan, self._pieces, self._checksum)
        records |= self._share(plan) | self._kept
        token = None
        if self._manifest:
            token = secrets.token_hex(8)
            others = {path: record for path, record in others.items() if path not in dropped}
            data = encode(
                others | records,
                author=self._author,
                is_prefix=layout.is_prefix,
                state=self._new_state(before),
                token=token,
                before=continued,
            )
            self._manifest_bytes = len(data)
            self._write(plan, {layout.manifest_name: Piece([data], {})}, None)
        plan.link_others()
        # S17
        atomic = self._durability == "atomic" and plan.step != "rename"
        keep = atomic and plan.step == "exchange" and token is not None and self._checksum is not None
        sync = atomic or self._durability == "power"
        plan.note_staged(token, records, self._shared, keep=keep)
        # S15
        if sync and not keep:
            sync_file_system(plan.new)
        self._lock.check()
        plan.commit(sync=sync, keep=keep)

        def finish() -> None:
            earlier.remove_old_manifest(layout)
            plan.retire(spare=self._spare)
            if waits:
                staged.clear(layout, spare=self._spare, synced=True)

        waits = keep and plan.step == "exchange"  # unless under a journal
        if waits:
            plan.move_late()
        else:
            finish()
        removed = stale if self._remove_stale else []
        return records, [] if removed else stale, removed, finish if waits else None

    def _find_continued(self, before: Manifest | None) -> tuple[Manifest | None, str | None]:
        """Return the manifest that the new one continues, or None, and the new path of the current one. A
        manifest is continued with chains of deltas, where a save changes few of many records. If there are
        many manifests, a save continues the first of them and drops the current one.
        """
        facts = self._list_facts() if self._manifest and is_there(self._layout.manifest) else []
        if not any("link" in each for each in facts):
            return None, None
        if before is None:  # all its files are in this save
            before, _ = earlier.read_manifest(self._layout, ())
        if before is None or before.digest is None or self._layout.is_prefix:
            return None, None
        is_present = len(before.parts) < _MOST_PARTS
        found = before if is_present else read_part(self._layout, before.parts[0])
        others = (path for path in found.files if path not in self._pieces)
        kept = [found.files[path] for path in others if found.files[path] == before.files.get(path)]
        if len(kept) < _FEW and measure(kept) <= _LEAST_KEPT:
            return None, None
        return found, make_part_name(len(found.parts)) if is_present else None

    def _list_facts(self) -> list[Mapping[str, Any]]:
        """Return the manifest entries for the files of this save."""
        kept = [*self._kept.values(), *(record for _, record in self._shared.values())]
        return [piece.facts for piece in self._pieces.values()] + [record.facts for record in kept]

    def _share(self, plan: generation.Generation) -> dict[str, Record]:
        """Share files with the base; write those that another save has replaced in the base."""
        records, replaced, clone = {}, {}, True
        for path, (source, record) in list(self._shared.items()):
            where = os.path.join(plan.new, path)
            if plan.is_spare(path):
                os.unlink(where)
            try:
                records[path] = share_file(source, where, record, clone=clone)
                clone = clone and records[path] is not record
            except (SaveError, FileNotFoundError):
                if path not in self._otherwise:
                    raise
                del self._shared[path]
                replaced[path] = Piece(*self._otherwise[path]())
        self._pieces |= replaced
        return records | self._write(plan, replaced, self._checksum)

    def _write(
        self, plan: generation.Generation, pieces: Mapping[str, Piece], checksum: str | None
    ) -> dict[str, Record]:
        if plan.step != "rename":
            pieces = {
                path: piece._replace(like=plan.like(path), over=plan.is_spare(path))
                for path, piece in pieces.items()
            }
        return write_files(plan.new, pieces, checksum, author=self._author, shown=self.directory)

    def _before(self) -> Manifest | None:
        """Return the current manifest if it describes files that this save does not write."""
        before, note = earlier.read_manifest(self._layout, self._names)
        if note is not None and self._manifest:
            self._notes.append(note)
        return before

    def _other_records(self, before: Manifest | None) -> dict[str, Record]:
        """Return the records of files that stay and are unchanged since their save."""
        # S9
        found, replaced = earlier.find_records(self.directory, before, self._names)
        if replaced and self._manifest:
            more = f" and {len(replaced) - 8} more" if len(replaced) > 8 else ""
            self._notes.append(
                f"no longer in the manifest, since others replaced them: {', '.join(replaced[:8])}{more}"
            )
        return found

    def _new_state(self, before: Manifest | None) -> object:
        """Return the state for the manifest: this save's state, or the state that another program stored."""
        if self._state is None and before is not None and before.program != self._author.program:
            return before.state
        return self._state
