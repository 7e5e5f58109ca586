"""Saving variables: the executor runs a program of save operators in one transaction."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Unpack

from paddlelike.errors import SaveError
from paddlelike.executor.run import Executor
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.io import asynchronous
from paddlelike.io.calls import check_executor, warn_user
from paddlelike.io.fingerprint import fingerprint
from paddlelike.io.partition import Partition, SaveShare, partition_of
from paddlelike.io.programs import build_save_program, collections_paused, run_program
from paddlelike.io.report import SaveReport
from paddlelike.io.save.files import RunFiles
from paddlelike.io.save.writer import Writer
from paddlelike.io.select import is_parameter, is_persistable, program_of, select
from paddlelike.storage.location import Location, Writing, locate
from paddlelike.storage.options import DEFAULT_OPTIONS, SaveKeywords, SaveOptions

__all__ = ["add_to", "save_chosen", "save_params", "save_persistables", "save_vars"]

Path = str | os.PathLike[str]

_copies: Final = asynchronous.Copies()


def save_vars(
    executor: Executor,
    dirname: Path | None,
    main_program: Any = None,
    vars: Iterable[Variable | str] | None = None,  # noqa: A002  (Fluid's name)
    predicate: Callable[[Variable], bool] | None = None,
    filename: str | None = None,
    **options: Unpack[SaveKeywords],
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    """Save the current values of variables, all of them or none.

    A variable that this process saved in the same directory, or loaded from it, is written only when it has
    changed since, or its file has.

    Parameters
    ----------
    dirname
        The directory; made when missing. It may be a URL such as ``s3://bucket/model``, see the extra
        "remote". None (with ``filename=None``): the bytes of the combined form are returned.
    vars
        Variables or their names; None: those that ``predicate`` accepts.
    filename
        One file for all variables, in the order of their names; None: a file each, named as the variable.
    options
        The fields of :class:`~paddlelike.storage.options.SaveOptions`.

    Returns
    -------
    A report; a handle when not ``blocking``; None when there was nothing to save.

    Raises
    ------
    SaveError
        Something could not be written; the directory is as it was. Or: an earlier save with
        ``blocking=False`` failed, and its failure was not reported yet.
    NotInitializedError
        A variable holds no value.
    """
    given = SaveOptions.from_keywords(options, "save_vars")
    return _save(executor, dirname, main_program, vars, predicate, filename, None, given)


def _save(
    executor: Executor,
    dirname: Path | None,
    main_program: Any,
    variables: Iterable[Variable | str] | None,
    predicate: Callable[[Variable], bool] | None,
    filename: str | None,
    part: str | None,
    options: SaveOptions,
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    check_executor(executor, "save_vars")
    if dirname is None and filename is not None:
        raise TypeError("filename needs a dirname; pass neither to get the bytes")
    program = program_of(main_program)
    _warn_of_trainers(program)
    chosen = select(program, variables, predicate)
    if not chosen:
        warn_user("there is no variable to save")
        return None
    asynchronous.check_pending()
    if dirname is None:
        return _save_to_memory(executor, chosen)
    return save_chosen(program, chosen, dirname, filename, part=part, executor=executor, options=options)


def save_params(
    executor: Executor,
    dirname: Path | None,
    main_program: Any = None,
    filename: str | None = None,
    **options: Unpack[SaveKeywords],
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    """Save the parameters of a program, which prediction needs. See :func:`save_vars`, also for the errors.

    Files that the same program wrote in an earlier save and that are not part of this one stay, and are
    listed in the report as stale; ``remove_stale=True`` deletes them.
    """
    given = SaveOptions.from_keywords(options, "save_params")
    return _save(executor, dirname, main_program, None, is_parameter, filename, "params", given)


def save_persistables(
    executor: Executor,
    dirname: Path | None,
    main_program: Any = None,
    filename: str | None = None,
    **options: Unpack[SaveKeywords],
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    """Save every persistable of a program, which continued training needs. See :func:`save_vars`.

    For a trainer's program, trainer 0 saves everything, also the values on parameter servers, into the same
    files as a single process would. The other trainers save nothing and warn.

    Two programs may share a directory: no save deletes the files of another one. Files that the same program
    wrote in an earlier save and that are not part of this one are listed in the report as stale;
    ``remove_stale=True`` deletes them.
    """
    given = SaveOptions.from_keywords(options, "save_persistables")
    return _save(executor, dirname, main_program, None, is_persistable, filename, "persistables", given)


def save_chosen(
    program: Program,
    chosen: list[Variable],
    dirname: Path,
    filename: str | None = None,
    *,
    executor: Executor,
    part: str | None = None,
    state: Mapping[str, Any] | None = None,
    holding: contextlib.ExitStack | None = None,
    after_commit: Callable[[], None] | None = None,
    options: SaveOptions = DEFAULT_OPTIONS,
) -> SaveReport | asynchronous.PendingSave:
    """Save variables: build their program of save operators and let the executor run it in a transaction.

    Parameters
    ----------
    part
        The name of this selection for the manifest, such as "params".
    state
        More for the manifest.
    holding
        Closed when the save has ended, with or without an error.
    after_commit
        Called when the save has ended without an error.

    Raises
    ------
    SaveError
        A file cannot be written; the directory is as it was.
    NotInitializedError
        A variable holds no value.
    """
    begin = time.perf_counter()
    where = locate(dirname)
    with contextlib.ExitStack() as turn, contextlib.ExitStack() as ending:
        if holding is not None:
            ending.push(holding)
        if not options.blocking:
            turn.enter_context(asynchronous.pending_lock())
            asynchronous.check_pending()  # also for one that another thread began meanwhile
        partition = partition_of(program)
        share = SaveShare(chosen)
        if partition is not None:
            share = partition.plan_save(executor, chosen, where.path, part, options)
        if share.idle is not None:
            warn_user(share.idle)
            return SaveReport(where.path, notes=(share.idle,))
        if share.gathered and filename is not None:
            filename = None
            warn_user("filename= is ignored: parameter servers read a file for each variable")
        writer = Writer(
            where,
            options,
            program=fingerprint(program),
            state={**(state or {}), **share.state} or None,
            part=part,
        )
        if not options.blocking:
            ending.callback(_copies.release)
        with collections_paused():
            _run_save(executor, writer, share, filename)
            writer.prepare(None if options.blocking else _copies)
            later = ending.pop_all()

            def work() -> SaveReport:
                with later:
                    report = writer.commit(begin)
                if after_commit is not None:
                    after_commit()
                return report

            return work() if options.blocking else asynchronous.start_save(writer.target, work)


def add_to(
    executor: Executor,
    writing: Writing,
    where: Location,
    variables: list[Variable],
    filename: str | None,
    partition: Partition | None = None,
) -> None:
    """Add variables to a transaction that the caller commits, those of other processes too.

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


def _run_save(executor: Executor, writer: Writer, share: SaveShare, filename: str | None) -> None:
    """Run the program that saves the values in this process; add the files from other processes."""
    if share.local:
        program = build_save_program(share.local, writer.where.path, filename)
        files = RunFiles(unchanging=True, writer=writer)
        run_program(executor, program, files)
    writer.add_gathered(share.gathered)


def _warn_of_trainers(program: Program) -> None:
    """Warn a trainer other than trainer 0 that all trainers hold the same values."""
    trainer, count = (os.environ.get(name, "") for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))
    several = count.isdigit() and int(count) > 1
    if several and trainer.isdigit() and int(trainer) > 0 and not program._is_distributed:
        warn_user(
            f"trainer {trainer} of {count} saves; usually trainer 0 does: guard the save by "
            "`if trainer_id == 0`, or use one directory for each trainer"
        )


def _save_to_memory(executor: Executor, variables: list[Variable]) -> bytes:
    files = RunFiles(unchanging=True)
    program = build_save_program(variables, None, None)
    run_program(executor, program, files)
    return files.in_memory[0]
