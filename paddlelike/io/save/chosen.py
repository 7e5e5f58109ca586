"""The save of chosen variables: the executor runs their program of save operators in one transaction."""

from __future__ import annotations

import contextlib
import errno
import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final

from paddlelike.errors import RejectedError, SaveError, StorageError
from paddlelike.executor.run import Executor
from paddlelike.foundation.garbage import collection_paused
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable
from paddlelike.io import asynchronous
from paddlelike.io.calls import fingerprint
from paddlelike.io.partition import Partition, SaveShare, get_partition
from paddlelike.io.programs import build_save_program, run_program
from paddlelike.io.report import SaveReport
from paddlelike.io.save.copies import Copies, KeptMemory
from paddlelike.io.save.files import RunFiles
from paddlelike.io.save.writer import Writer
from paddlelike.lazy import dataclass
from paddlelike.storage.location import Location, Writing, is_remote
from paddlelike.storage.options import DEFAULT_OPTIONS, SaveOptions

_kept: Final = KeptMemory()


@dataclass(frozen=True)
class SaveRequest:
    """The arguments of a save, resolved once.

    Attributes
    ----------
    filename
        The one file for all variables, or None for a file each.
    part
        The name of this selection for the manifest, such as "params".
    state
        Additional state for the manifest.
    turn
        The index of this save in its series; it selects the files that are not shared with the base.
    """

    program: Program
    variables: list[Variable]
    where: Location
    filename: str | None = None
    part: str | None = None
    state: Mapping[str, Any] = field(default_factory=dict)
    options: SaveOptions = DEFAULT_OPTIONS
    turn: int | None = None


def save_chosen(
    executor: Executor,
    request: SaveRequest,
    *,
    holding: contextlib.ExitStack | None = None,
    after_commit: Callable[[], None] | None = None,
) -> SaveReport | asynchronous.PendingSave:
    """Save variables: build their program of save operators and let the executor run it in a transaction.

    Parameters
    ----------
    holding
        Closed when the save has ended, with or without an error.
    after_commit
        Called when the save has ended without an error.

    Raises
    ------
    SaveError
        A file cannot be written, or a value cannot be read; the directory is unchanged.
    NotInitializedError
        A variable holds no value.
    """
    save = _Save(after_commit)
    try:
        if holding is not None:
            save.ending.push(holding)
        if request.options.blocking:
            return _save(executor, request, save)
        with asynchronous.pending_lock().hold():
            asynchronous.check_pending()  # also for a save that another thread began meanwhile
            return _save(executor, request, save)
    except BaseException as error:
        save.abandon(error)
        if isinstance(error, RejectedError):  # as of a server whose rows on disk cannot be read
            hint = _describe_last(request.where)
            raise SaveError(f"nothing was saved: {error.message}", hint=hint) from error
        raise


class _Save:
    """A save that has begun, and the resources to close at its end.

    The thread of the save closes them if it has begun the work.
    """

    def __init__(self, after_commit: Callable[[], None] | None) -> None:
        self.ending = contextlib.ExitStack()
        self.pending: asynchronous.PendingSave | None = None
        self._after_commit = after_commit

    def finish(self, commit: Callable[[], SaveReport]) -> SaveReport:
        """Return the report of the commit; afterwards other saves may begin."""
        with self.ending:
            report = commit()
        if self._after_commit is not None:
            self._after_commit()
        return report

    def abandon(self, error: BaseException) -> None:
        """Allow other saves after an error in the requesting thread."""
        if self.pending is None or self.pending.cancel(error):
            self.ending.close()


def _save(executor: Executor, request: SaveRequest, save: _Save) -> SaveReport | asynchronous.PendingSave:
    begin = time.perf_counter()
    where, blocking, ending = request.where, request.options.blocking, save.ending
    share = _plan_share(executor, request)
    if share.idle is not None:
        warn_user(share.idle)
        nothing = SaveReport(where.path, notes=(share.idle,))
        ending.close()
        return nothing if blocking else asynchronous.start_save(where.path, lambda: nothing)
    filename = None if share.gathered else request.filename
    if filename != request.filename:
        warn_user("filename= is ignored: parameter servers read a file for each variable")
    writer = Writer(
        where,
        request.options,
        program=fingerprint(request.program),
        state={**request.state, **share.state} or None,
        part=request.part,
        turn=request.turn,
    )
    ending.callback(writer.release)
    how: dict[str, Any] = {"checksum": request.options.checksum, "is_local": not is_remote(where.path)}
    copies = None if blocking else Copies(_kept, **how)
    if copies is not None:
        ending.callback(copies.release)
    with collection_paused():
        try:
            _run_save(executor, writer, share, filename)
        except SaveError as error:
            if not isinstance(error.__cause__, StorageError):
                raise
            # rows on disk that cannot be read or written
            hint = error.hint if error.__cause__.errno == errno.ENOSPC else _describe_last(where)
            raise SaveError(f"nothing was saved: {error.message}", hint=hint) from error
        writer.prepare(copies)
        work = functools.partial(save.finish, functools.partial(writer.commit, begin))
        if copies is None:
            return work()
        save.pending = asynchronous.PendingSave(writer.target, work, copies.hurry)
        asynchronous.begin(save.pending)
        return save.pending


def _describe_last(where: Location) -> str:
    """Return a hint about the last known value of variables of this process that cannot be read."""
    manifest = None
    with contextlib.suppress(StorageError):
        manifest = where.manifest()
    if manifest is None:
        return "load the last save in a new process"
    return f"{where.path} holds the whole save of {manifest.time}: load it in a new process"


def _plan_share(executor: Executor, request: SaveRequest) -> SaveShare:
    """Return this process's share of a save: everything, unless the program is distributed."""
    partition = get_partition(request.program)
    if partition is None:
        return SaveShare(request.variables)
    return partition.plan_save(executor, request.variables, request.where.path, request.part, request.options)


def add_to(
    executor: Executor,
    writing: Writing,
    where: Location,
    variables: list[Variable],
    filename: str | None,
    partition: Partition | None = None,
) -> None:
    """Add variables, also other processes', to a transaction that the caller commits.

    Raises
    ------
    SaveError
        Variables of parameter servers cannot be saved into one file.
    NotInitializedError
        A variable holds no value.
    """
    share = SaveShare(variables)
    if partition is not None:
        share = partition.plan_save(executor, variables, where.path, "params", DEFAULT_OPTIONS)
    if share.gathered and filename is not None:
        raise SaveError(
            f"{share.gathered[0].name!r} is on parameter servers: it cannot go into the one file {filename}",
            hint="export without params_filename=, or load the export and save it again",
        )
    writer = Writer(where, writing=writing)
    _run_save(executor, writer, share, filename)
    writer.prepare()


def save_to_memory(executor: Executor, variables: list[Variable]) -> bytes:
    """Return the bytes of the combined form of variables.

    Raises
    ------
    NotInitializedError
        A variable holds no value.
    SaveError
        A variable is not a tensor, or holds SelectedRows.
    """
    files = RunFiles(unchanging=True)
    program = build_save_program(variables, None, None)
    run_program(executor, program, files)
    return files.in_memory[0]


def _run_save(executor: Executor, writer: Writer, share: SaveShare, filename: str | None) -> None:
    """Run the program that saves the values in this process; add the files from other processes."""
    if share.local:
        program = build_save_program(share.local, writer.where.path, filename)
        files = RunFiles(unchanging=True, writer=writer)
        run_program(executor, program, files)
    writer.add_gathered(share.gathered)
