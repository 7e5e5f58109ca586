"""Checkpoints of a training: a directory for each saved step, complete or absent; old ones are removed.

``root/step-00000012`` holds the persistables after step 12; its manifest, beside it, holds the step, the
metric, the state of the random generator and the state passed by the user. A checkpoint exists from the
moment its directory is renamed into place, so the leftovers of a killed process are never mistaken for one.
"""

from __future__ import annotations

import bisect
import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from paddlelike.core import global_scope
from paddlelike.errors import FormatError, LoadError, MissingFileError, SaveError, StorageError
from paddlelike.executor.run import Executor
from paddlelike.foundation.docstrings import describe_like
from paddlelike.foundation.keyword_options import show_options
from paddlelike.foundation.warn import warn_user
from paddlelike.io import asynchronous
from paddlelike.io.calls import check_executor, get_program, get_program_persistable_vars
from paddlelike.io.checkpoints.checkpoint import Checkpoint, decode_checkpoint, encode_entry
from paddlelike.io.checkpoints.local_store import LocalCheckpointStore
from paddlelike.io.checkpoints.store import STEPS, CheckpointStore, Names
from paddlelike.io.incremental import ledger
from paddlelike.io.load.load import load_persistables
from paddlelike.io.report import SaveReport
from paddlelike.io.save.chosen import SaveRequest, save_chosen
from paddlelike.storage.location import is_remote, locate
from paddlelike.storage.options import SaveKeywords, SaveOptions
from paddlelike.storage.problems import is_system_error

if TYPE_CHECKING:
    from paddlelike.framework.typing import ProgramLike


Listing = list[Checkpoint]


@describe_like(SaveOptions)
class Checkpoints:
    """The checkpoints in a directory.

    Several processes may read them while one saves: a checkpoint that is being read is not removed. The file
    of an unchanged value is shared with the checkpoint before the previous one, never with the previous one,
    and is written again at every 15th save. So damage to one file never spoils two consecutive checkpoints.

    Parameters
    ----------
    root
        The directory; made when missing. Other files in it do not change. It may be a URL such as
        ``s3://bucket/run``; readers cannot be detected there, so the files of a removed checkpoint stay until
        the next save.
    keep_last
        The number of newest checkpoints to keep; None for all.
    keep_best
        The number of checkpoints with the best metric to keep as well.
    every
        Steps between two checkpoints: :meth:`save` does nothing at a step that is not a multiple of it.
    best
        Whether the best metric is the "smallest" or the "largest".

    Raises
    ------
    ValueError
        A count is too small, or an option has a value outside its choices.
    TypeError
        An option is unknown.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 2]), 1))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> with tempfile.TemporaryDirectory() as root:
    ...     checkpoints = fluid.io.Checkpoints(root, keep_last=2)
    ...     for step in range(1, 5):
    ...         _ = checkpoints.save(exe, fluid.default_main_program(), step, state={"epoch": 0})
    ...     print([checkpoint.step for checkpoint in checkpoints.list()])
    ...     print(checkpoints.restore(exe, fluid.default_main_program()))
    [3, 4]
    {'epoch': 0, 'step': 4}
    """

    @show_options(SaveOptions)
    def __init__(
        self,
        root: str | os.PathLike[str],
        keep_last: int | None = 5,
        keep_best: int = 0,
        every: int = 1,
        *,
        best: Literal["smallest", "largest"] = "smallest",
        **options: Unpack[SaveKeywords],
    ) -> None:
        limits = ("keep_last", keep_last, 1), ("keep_best", keep_best, 0), ("every", every, 1)
        for name, value, least in limits:
            if value is not None and value < least:
                raise ValueError(f"Checkpoints: {name} must be at least {least}, not {value}")
        if best not in ("smallest", "largest"):
            raise ValueError(f'Checkpoints: best is "smallest" or "largest", not {best!r}')
        self._checkpoints = _open_store(root, self._get_names())
        self.root = self._checkpoints.root
        self._keep_last = keep_last
        self._keep_best = keep_best
        self._every = every
        self._sign = 1.0 if best == "smallest" else -1.0
        self._options = SaveOptions.from_keywords(options, "Checkpoints")
        self._last: list[str] = []  # the last two checkpoints that were saved or restored here
        self._count = 0  # of saves
        self._known: dict[str, tuple[object, Checkpoint]] = {}  # by path, with the manifest's stamp
        self._found: Listing = []  # all checkpoints of the last look, in order
        self._stamp: object = None  # of the directory after the last look, or None if unknown
        self._looked = 0  # the number of saves at the last look

    def save(
        self,
        executor: Executor,
        program: ProgramLike | None,
        step: int,
        metric: float | None = None,
        state: Mapping[str, Any] | None = None,
        *,
        force: bool = False,
    ) -> SaveReport | asynchronous.PendingSave | None:
        """Save the persistables of ``program`` as the checkpoint after ``step`` steps, and remove old ones.

        Parameters
        ----------
        metric
            The value by which :meth:`best` and ``keep_best`` rank.
        state
            A dict of arrays and of values that JSON can represent, such as the epoch; :meth:`restore` returns
            it.
        force
            Save also at a step that is not a multiple of ``every``.

        Returns
        -------
        The result of :func:`~paddlelike.io.save.save_persistables`; None at a step that is not saved.

        Raises
        ------
        SaveError
            The checkpoint could not be saved, and the earlier ones are unchanged; or it was saved, but older
            ones could not be removed. The message says which.
        TypeError
            ``executor`` is not an Executor, or JSON cannot represent ``state``.
        ValueError
            ``step`` is negative.
        """
        check_executor(executor, "Checkpoints.save")
        if step < 0:
            raise ValueError(f"Checkpoints.save: step is 0 or more, not {step}")
        if step % self._every and not force:
            return None
        entry = encode_entry(step, metric, global_scope().generator.state, state)
        return self._save_as(_name_step(step), entry, executor, program)

    def _get_names(self) -> Names:
        """Return the names of checkpoints in the directory."""
        return STEPS

    def _save_as(
        self, name: str, entry: dict[str, Any], executor: Executor, program: ProgramLike | None
    ) -> SaveReport | asynchronous.PendingSave:
        """Save the checkpoint of that name, then remove old ones."""
        asynchronous.check_pending()
        program = get_program(program)
        path = self._checkpoints.path(name)
        self._checkpoints.reserve(path)
        options = self._options
        holding = contextlib.ExitStack()  # holds the base until the save has ended
        base = self._choose_base()
        if base not in (None, path) and holding.enter_context(self._checkpoints.hold(base)):
            options = replace(options, base=base)
        self._count += 1
        is_alone = self._stamp is not None and self._checkpoints.stamp() == self._stamp

        def finish() -> None:
            self._last = [*(one for one in self._last if one != path), path][-2:]
            try:
                looks = not is_alone or self._count - self._looked >= _LOOK
                if looks:
                    self._look()
                else:
                    self._note(path)
                self._tidy(entry["step"])
                if looks:
                    self._checkpoints.sweep()
                self._stamp = self._checkpoints.stamp()
            except (OSError, StorageError) as error:
                raise SaveError(
                    f"checkpoint {path} was saved, but older ones cannot be listed or removed: {error}",
                    hint="restore it as it is: the checkpoint is complete",
                ) from error

        request = SaveRequest(
            program,
            get_program_persistable_vars(program),
            locate(path),
            state={"checkpoint": entry},
            options=options,
            turn=self._count,
        )
        return save_chosen(executor, request, holding=holding, after_commit=finish)

    def _choose_base(self) -> str | None:
        """Return the checkpoint with which unchanged files are shared, the last but one.

        Neighbours never share a file, so one damaged bit leaves every second checkpoint whole.
        """
        has_neighbour = self._keep_last != 1 or self._keep_best > 0
        if has_neighbour and not is_remote(self.root):  # behind URLs it is copied
            return self._last[-2] if len(self._last) > 1 else None
        return self._last[-1] if self._last else None

    def list(self) -> Listing:
        """Return all complete checkpoints, sorted by step; each damaged one is left out with a warning.

        Raises
        ------
        StorageError
            The system refuses to read one of them, so whether it is complete is unknown.
        """
        return self._list_whole(self._read)

    def _list_whole(self, read: Callable[[str], Checkpoint | None]) -> Listing:
        found, damaged = self._list(read)
        for path, what in damaged.items():
            warn_user(f"checkpoint {path} is damaged, and is not listed: {what}")
        return found

    def latest(self) -> Checkpoint | None:
        """Return the checkpoint of the highest step, or None without checkpoints."""
        found = self.list()
        return found[-1] if found else None

    def best(self) -> Checkpoint | None:
        """Return the checkpoint with the best metric (the latest of several), or None without metrics."""
        ranked = self._rank(self.list())
        return ranked[0] if ranked else None

    def restore(
        self, executor: Executor, program: ProgramLike | None = None, step: int | None = None
    ) -> dict[str, Any] | None:
        """Load a checkpoint into the current scope, including the state of its random generator.

        Without ``step``, load the latest undamaged one, with a warning for each damaged one.

        Returns
        -------
        The user's state with the entry ``"step"``; None before the first checkpoint.

        Raises
        ------
        LoadError
            The checkpoint does not fit the program, or no checkpoint has that step, or all are damaged.
        StorageError
            The system refuses to read one, so whether it is complete is unknown.
        """
        self._recover()
        found, damaged = self._list()
        candidates = found[::-1]
        if step is not None:
            path = self._checkpoints.path(_name_step(step))
            damaged = {each: what for each, what in damaged.items() if each == path}
            candidates = [checkpoint for checkpoint in candidates if checkpoint.step == step]
            if not candidates and not damaged:
                raise MissingFileError(
                    f"there is no checkpoint of step {step} in {self.root}",
                    hint=f"choose a step with a checkpoint: {[checkpoint.step for checkpoint in found]}",
                )
        return self._restore_first(candidates, executor, program, only=step is not None, damaged=damaged)

    def _recover(self) -> None:
        """Wait for saves of this process, and remove the leftovers of killed ones."""
        asynchronous.wait_for_pending()
        self._checkpoints.recover()

    def _restore_first(
        self,
        candidates: Listing,
        executor: Executor,
        program: ProgramLike | None,
        *,
        only: bool,
        check: Callable[[Checkpoint], None] | None = None,
        damaged: Mapping[str, str],
    ) -> dict[str, Any] | None:
        """Load the first checkpoint that is not damaged; return the user's state with the ``"step"``.

        With ``only``, a damaged checkpoint is an error. ``check`` raises for a checkpoint that must not be
        loaded. ``damaged`` are the damaged checkpoints with their problems; for each, a warning names the
        checkpoint that is loaded instead.
        """
        damaged = dict(damaged)
        for checkpoint in candidates:
            with self._checkpoints.hold(checkpoint.path) as exists:
                if not exists:
                    damaged[checkpoint.path] = "another process removed it meanwhile: restore again"
                    continue
                if check is not None:
                    check(checkpoint)
                try:
                    load_persistables(executor, checkpoint.path, program)
                except (LoadError, FormatError, StorageError):
                    damage = _describe_damage(checkpoint.path)
                    if only or not damage:
                        raise
                    damaged[checkpoint.path] = damage
                    continue
            if checkpoint.random is not None:
                global_scope().generator.state = checkpoint.random
            self._last = [checkpoint.path]
            for path, damage in damaged.items():
                warn_user(f"checkpoint {path} is damaged; {checkpoint.path} is loaded: {damage}")
            return {**checkpoint.state, "step": checkpoint.step}
        if damaged:
            lines = [f"{path}: {damage}" for path, damage in damaged.items()]
            raise LoadError(
                f"no checkpoint in {self.root} can be loaded:\n  " + "\n  ".join(lines),
                hint="remove the damaged directories to start over",
            )
        return None

    @contextlib.contextmanager
    def reading(self, checkpoint: Checkpoint) -> Iterator[str]:
        """Yield the path of a checkpoint; no process removes it inside the ``with`` block.

        Raises
        ------
        MissingFileError
            The checkpoint was already removed.
        """
        with self._checkpoints.hold(checkpoint.path) as exists:
            if not exists:
                raise MissingFileError(f"checkpoint {checkpoint.path} was removed", hint="ask latest() again")
            yield checkpoint.path

    def _list(self, read: Callable[[str], Checkpoint | None] | None = None) -> tuple[Listing, dict[str, str]]:
        """Return all complete checkpoints in order, and the problems of damaged ones by path."""
        asynchronous.wait_for_pending()
        read = self._read if read is None else read
        found, damaged = self._read_all(paths := self._checkpoints.paths(), read)
        if paths and not found and not damaged:  # others may have removed them meanwhile, and saved new ones
            found, damaged = self._read_all(self._checkpoints.paths(), read)
        return sorted(found, key=self._order), damaged

    def _read_all(
        self, paths: Iterable[str], read: Callable[[str], Checkpoint | None]
    ) -> tuple[Listing, dict[str, str]]:
        found, damaged = [], {}
        for path in sorted(paths):
            try:
                checkpoint = read(path)
            except (FormatError, StorageError, SaveError) as error:
                if is_system_error(error):
                    raise
                damaged[path] = error.message
            else:
                found += [] if checkpoint is None else [checkpoint]
        return found, damaged

    def _order(self, one: Checkpoint) -> tuple[int, bool]:
        """Return the sort key of the list."""
        return one.step, False

    def _read(self, path: str) -> Checkpoint | None:
        """Return the checkpoint in a directory, or None if there is none or it was removed meanwhile.

        Raises
        ------
        FormatError, StorageError, SaveError
            It is damaged, or cannot be read.
        """
        found = self._checkpoints.manifest(path)
        if found is None:
            if self._get_names().ours_alone and self._checkpoints.is_there(path):
                raise FormatError("it has no manifest")
            return None
        if not isinstance(found.state, Mapping) or "checkpoint" not in found.state:
            return None  # a directory that was saved by another function
        try:
            return decode_checkpoint(found, path)
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(
                f"the entry of the checkpoint in its manifest cannot be read: {error!r}"
            ) from error

    def _rank(self, checkpoints: Listing) -> Listing:
        """Return the checkpoints with a metric, the best first."""
        known = [c for c in checkpoints if c.metric is not None and not math.isnan(c.metric)]
        return sorted(known, key=lambda c: (self._sign * (c.metric or 0.0), -c.step))

    def _look(self) -> None:
        """List all checkpoints, reading only new manifests."""
        self._looked = self._count
        if self._may_remove:
            self._found = self._list_whole(self._read_known)
            self._known = {one.path: self._known[one.path] for one in self._found if one.path in self._known}

    def _note(self, path: str) -> None:
        """Add the checkpoint that was just saved to the list, since no other process saves here."""
        if not self._may_remove:
            return
        is_new = path not in self._known
        if (one := self._read_known(path)) is not None:
            if not is_new:
                self._found = [each for each in self._found if each.path != path]
            bisect.insort(self._found, one, key=self._order)
        for each in self._found[-_FRESH:]:  # without checkpoints that were removed or damaged since
            if self._checkpoints.stamp(each.path) != self._known.get(each.path, (None,))[0]:
                self._look()
                break

    @property
    def _may_remove(self) -> bool:
        return self._keep_last is not None

    def _read_known(self, path: str) -> Checkpoint | None:
        """Return the checkpoint as :meth:`_read` does, without reading an unchanged manifest again."""
        stamp = self._checkpoints.stamp(path)
        known, one = self._known.get(path, (None, None))
        if stamp is None or stamp != known:
            one = self._read(path)
            if one is None or stamp is None:
                return one
            self._known[path] = stamp, one
        return one

    def _tidy(self, newest: int) -> None:
        """Remove checkpoints beyond the limits."""
        found = self._found
        if self._keep_last is not None:
            kept = {c.step for c in [*found[-self._keep_last :], *self._rank(found)[: self._keep_best]]}
            kept.add(newest)
            staying = [checkpoint for checkpoint in found if checkpoint.step in kept]
            self._remove_all([checkpoint for checkpoint in found if checkpoint.step not in kept], staying)

    def _remove_all(self, old: Listing, staying: Listing) -> None:
        """Remove checkpoints after a newer one is safe against a power cut.

        Of several remaining checkpoints, the last but one is synced. The system has usually written it
        already, so this rarely waits for the disk.
        """
        if not old:
            return
        if self._options.durability != "power" and staying:
            self._checkpoints.sync(staying[-2:][0].path)
        for checkpoint in old:
            self._checkpoints.remove(checkpoint.path)
            if not self._checkpoints.is_there(checkpoint.path):
                self._known.pop(checkpoint.path, None)
                self._found = [one for one in self._found if one is not checkpoint]
            ledger.forget_location(locate(checkpoint.path).key)


_LOOK: Final = 64  # number of saves after which the directory is listed again
_FRESH: Final = 3  # number of checkpoints checked before older ones are removed


def _name_step(step: int) -> str:
    return f"step-{step:08d}"


def _open_store(root: str | os.PathLike[str], names: Names) -> CheckpointStore:
    """Return the store of checkpoints in a directory, or behind a URL."""
    if not is_remote(root):
        return LocalCheckpointStore(locate(root).path, names)
    from paddlelike.io.checkpoints.remote_store import RemoteCheckpointStore  # late: few programs need it

    return RemoteCheckpointStore(os.fspath(root), names)


def _describe_damage(path: str) -> str:
    """Return the damage of a checkpoint's files, or ''.

    Raises
    ------
    StorageError
        The system refuses to read one.
    """
    try:
        found = locate(path).verify()
    except StorageError as error:
        if is_system_error(error):
            raise
        return error.message
    return str(found) if found.problem or found.missing or found.cut or found.changed else ""
