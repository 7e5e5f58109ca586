"""Saving variables: what changed since the last save goes into one transaction, the rest is kept."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from paddlelike import unique_name
from paddlelike.core.scope import Scope, global_scope
from paddlelike.errors import SaveError
from paddlelike.executor.run import Executor
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.io.elsewhere import Elsewhere, Extra, Saving, elsewhere_of
from paddlelike.io.fingerprint import fingerprint
from paddlelike.io.report import SaveReport
from paddlelike.io.save import asynchronous
from paddlelike.io.save.encoded import Item, combined_facts, combined_file, facts_of, file_of, item_of
from paddlelike.io.save.incremental import Known, ledger
from paddlelike.io.select import is_parameter, is_persistable, program_of, select
from paddlelike.storage.location import Location, Writing, is_remote, locate
from paddlelike.storage.manifest import Record
from paddlelike.storage.options import DEFAULT_OPTIONS, SaveOptions
from paddlelike.storage.parts import Part

__all__ = ["save_params", "save_persistables", "save_vars"]

Array = np.ndarray[Any, Any]
Path = str | os.PathLike[str]

_copies: Final = asynchronous.Copies()


def save_vars(
    executor: Executor,
    dirname: Path | None,
    main_program: Any = None,
    vars: Iterable[Variable | str] | None = None,  # noqa: A002  (Fluid's name)
    predicate: Callable[[Variable], bool] | None = None,
    filename: str | None = None,
    **options: Any,
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    """Save the current values of variables, all of them or none.

    A variable that this process saved in the same directory, or loaded from it, is written only when it has
    changed since, or its file has.

    Parameters
    ----------
    dirname
        The directory; made when missing. A URL such as ``s3://bucket/model``: see the extra "remote".
        None (with ``filename=None``): the bytes of the combined form are returned.
    vars
        Variables or their names; None: those that ``predicate`` accepts.
    filename
        One file for all variables, in the order of their names; None: a file each, named as the variable.
    options
        The fields of :class:`~paddlelike.storage.options.SaveOptions`: ``base``, ``blocking``,
        ``durability``, ``checksum``, ``wait``, ``keep_generation``, ``by_servers``.

    Returns
    -------
    A report; a handle when not ``blocking``; None when there was nothing to save.

    Raises
    ------
    SaveError
        Something could not be written; the directory is as it was. Or: a save that was begun before with
        ``blocking=False`` has failed, and nobody was told.
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
    _check_executor(executor, "save_vars")
    if dirname is None and filename is not None:
        raise TypeError("filename needs a dirname; pass neither to get the bytes")
    program = program_of(main_program)
    _warn_of_trainers(program)
    chosen = select(program, variables, predicate)
    if not chosen:
        warnings.warn("there is no variable to save", UserWarning, stacklevel=_outside())
        return None
    asynchronous.settle()
    if dirname is None:
        return _to_memory(chosen)
    return save_chosen(program, chosen, dirname, filename, part=part, executor=executor, options=options)


def save_params(
    executor: Executor,
    dirname: Path | None,
    main_program: Any = None,
    filename: str | None = None,
    **options: Any,
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    """Save the parameters of a program: what prediction needs. See :func:`save_vars`.

    Without ``filename``, files of an earlier call that are of no variable any more go; the report tells.
    """
    given = SaveOptions.from_keywords(options, "save_params")
    return _save(executor, dirname, main_program, None, is_parameter, filename, "params", given)


def save_persistables(
    executor: Executor,
    dirname: Path | None,
    main_program: Any = None,
    filename: str | None = None,
    **options: Any,
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    """Save every persistable of a program: what going on with training needs. See :func:`save_vars`.

    Of a trainer's program trainer 0 saves everything, also what only parameter servers have: the same
    directory that a single process would save. The other trainers save nothing and say so.

    Without ``filename``, files that an earlier call saved into the directory go when they are of no variable
    any more, neither of this program nor of the current scope: two programs may share a directory, and a
    network that has changed leaves nothing of the one before. The report tells what went.
    """
    given = SaveOptions.from_keywords(options, "save_persistables")
    return _save(executor, dirname, main_program, None, is_persistable, filename, "persistables", given)


def save_chosen(
    program: Program,
    chosen: list[Variable],
    dirname: Path,
    filename: str | None = None,
    *,
    part: str | None = None,
    executor: Executor | None = None,
    state: Mapping[str, Any] | None = None,
    holding: contextlib.ExitStack | None = None,
    afterwards: Callable[[], None] | None = None,
    options: SaveOptions = DEFAULT_OPTIONS,
) -> SaveReport | asynchronous.PendingSave:
    """Save variables.

    ``part`` is what they are, see ``storage.parts``; ``state`` goes into the manifest; ``holding`` is closed
    when the save has ended, well or not, and ``afterwards`` is called when it has ended well.
    """
    begin = time.perf_counter()
    where = locate(dirname)
    with contextlib.ExitStack() as turn, contextlib.ExitStack() as ending:
        if holding is not None:
            ending.push(holding)
        if not options.blocking:
            turn.enter_context(asynchronous.turn())
            asynchronous.settle()  # also one that another thread has begun meanwhile
        there = elsewhere_of(program)
        saving = Saving(chosen)
        if there is not None:
            saving = there.saving(executor, chosen, where.path, part, options)
        if saving.idle is not None:
            warnings.warn(saving.idle, UserWarning, stacklevel=_outside())
            return SaveReport(where.path, notes=(saving.idle,))
        if saving.extras and filename is not None:
            filename = None
            warnings.warn(
                "filename= is ignored: parameter servers read a file for each variable",
                UserWarning,
                stacklevel=_outside(),
            )
        writing = where.begin(
            options,
            program=fingerprint(program),
            state={**(state or {}), **saving.state} or None,
            part=None if part is None or filename is not None else Part(part, _in_use(global_scope())),
        )
        save = _Save(where, writing, filename, options)
        changed = save.sort_out([item_of(variable, global_scope()) for variable in saving.local])
        if not options.blocking:
            ending.callback(_copies.release)
            copies = _copies.copy([item.array for item in changed])
            changed = [item.copied(copy) for item, copy in zip(changed, copies, strict=True)]
            del copies
        save.add(changed)
        save.add_extras(saving.extras)
        del changed
        later = ending.pop_all()

        def work() -> SaveReport:
            with later:
                report = save.commit(begin)
            if afterwards is not None:
                afterwards()
            return report

        return work() if options.blocking else asynchronous.start(save.target, work)


class _Save:
    """One save into one location: what is kept, what is written, and what is remembered of it."""

    def __init__(
        self,
        where: Location,
        writing: Writing,
        filename: str | None = None,
        options: SaveOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.target = where.path if filename is None else os.path.join(where.path, filename)
        self._where = where
        self._writing = writing
        self._filename = filename
        self._checksum = options.checksum
        self._sources: list[tuple[Known, str | None]] = [(ledger.known(where, filename), None)]
        base = options.base
        if base is not None and is_remote(base) == is_remote(where.path):
            other = locate(base)
            self._sources.append((ledger.known(other, filename), other.path))
        self._items: list[Item] = []
        self._extras: Sequence[Extra] = ()

    def sort_out(self, items: list[Item]) -> list[Item]:
        """Keep the files of what has not changed; returns what has."""
        if self._filename is None:
            self._items = items
            return [item for item in items if not self._is_kept(item)]
        self._items = sorted(items, key=lambda item: item.name)
        return [] if self._is_whole_kept(self._filename) else self._items

    def add(self, changed: list[Item]) -> None:
        """Write these; the arrays are read at the commit."""
        if self._filename is None:
            for item in changed:
                self._writing.add(item.name, file_of(item.value), facts_of(item))
            return
        unique_name.generate("saved_params")  # Fluid takes one of these names here
        if changed:
            self._writing.add(self._filename, combined_file(changed), combined_facts(changed))

    def add_extras(self, extras: Sequence[Extra]) -> None:
        """Write files whose bytes come from other processes."""
        self._extras = extras
        for extra in extras:
            self._writing.add(extra.name, extra.buffers, extra.facts)

    def commit(self, begin: float) -> SaveReport:
        """Write everything, and remember it."""
        done = self._writing.commit()
        saved = [
            (item.holder, item.state, done.files[item.name if self._filename is None else self._filename])
            for item in self._items
        ]
        ledger.note_saved(self._where, self._filename, saved)
        return SaveReport(
            target=self.target,
            saved={item.name: item.moved for item in self._items}
            | {extra.name: extra.moved for extra in self._extras},
            seconds=time.perf_counter() - begin,
            written=done.written,
            written_bytes=done.nbytes,
            kept=done.kept,
            removed=done.removed,
        )

    def _is_kept(self, item: Item) -> bool:
        for known, base in self._sources:
            record = known.saved(item.holder)
            if record is None:
                record = known.loaded(item.holder, item.name)
                if record is None or record.facts != facts_of(item):
                    continue
            if self._is_good(record) and self._writing.keep(item.name, record, base=base):
                return True
        return False

    def _is_whole_kept(self, filename: str) -> bool:
        for known, base in self._sources:
            records = [known.saved(item.holder) for item in self._items]
            record = records[0]
            if record is None or not self._is_good(record):
                continue
            if any(other is not record for other in records) or record.facts != combined_facts(self._items):
                continue
            if self._writing.keep(filename, record, base=base):
                return True
        return False

    def _is_good(self, record: Record) -> bool:
        """Whether the file has the checksum that is asked for."""
        if self._checksum is None:
            return True
        return record.checksum is not None and record.checksum.startswith(self._checksum)


def add_to(
    executor: Executor,
    writing: Writing,
    where: Location,
    variables: list[Variable],
    filename: str | None,
    there: Elsewhere | None = None,
) -> None:
    """Add variables to a transaction that somebody else commits; ``there``: some are in other processes."""
    saving = Saving(variables)
    if there is not None:
        saving = there.saving(executor, variables, where.path, "params", DEFAULT_OPTIONS)
    if saving.extras and filename is not None:
        raise SaveError(
            f"{saving.extras[0].name!r} is on parameter servers: it cannot go into the one file {filename}",
            hint="export without params_filename=, or load the export and save it again",
        )
    save = _Save(where, writing, filename)
    if saving.local:
        save.add([item_of(v, global_scope()) for v in sorted(saving.local, key=lambda v: v.name)])
    save.add_extras(saving.extras)


def _warn_of_trainers(program: Program) -> None:
    """Of several trainers that hold the same values one is enough to save them, usually the first."""
    trainer, count = (os.environ.get(name, "") for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))
    several = count.isdigit() and int(count) > 1
    if several and trainer.isdigit() and int(trainer) > 0 and not program._is_distributed:
        warnings.warn(
            f"trainer {trainer} of {count} saves; usually trainer 0 does, for all: guard the save by "
            "`if trainer_id == 0`, or let each save into a directory of its own",
            UserWarning,
            stacklevel=_outside(),
        )


def _in_use(scope: Scope) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a file is of a variable that has a value in ``scope``."""

    def in_use(facts: Mapping[str, Any]) -> bool:
        holder = scope.find_var(str(facts.get("variable")))
        return holder is not None and holder.is_initialized()

    return in_use


def _to_memory(variables: list[Variable]) -> bytes:
    unique_name.generate("saved_params")
    items = [item_of(v, global_scope()) for v in sorted(variables, key=lambda v: v.name)]
    return b"".join(combined_file(items))


def _check_executor(executor: Any, what: str) -> None:
    if not isinstance(executor, Executor):
        raise TypeError(f"{what}: executor is a fluid.Executor, not {executor!r}")


def _outside() -> int:
    """The stack level of the first frame outside this package, for warnings."""
    import sys

    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and "paddlelike" in frame.f_globals.get("__name__", "").split("."):
        level, frame = level + 1, frame.f_back
    return level
