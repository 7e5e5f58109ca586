"""LoadShare variables: planned from the headers first, read aside, then put into the scope at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypedDict, Unpack

from paddlelike.core.scope import global_scope
from paddlelike.errors import FormatError, LoadError, PaddlelikeError, StorageError
from paddlelike.executor.run import Executor
from paddlelike.framework.graph.operator import OpRole
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.io.calls import check_executor, warn_user
from paddlelike.io.load.commit import commit_values, make_report, record_loaded
from paddlelike.io.load.contents import Contents, Reading, Value
from paddlelike.io.load.directory_contents import DirectoryContents
from paddlelike.io.load.file_contents import FileContents
from paddlelike.io.load.in_place import InPlace
from paddlelike.io.load.learning_rates import find_initial_rates, name_changed_rates
from paddlelike.io.load.naming import assign_names
from paddlelike.io.load.plan import LoadPlan
from paddlelike.io.load.planner import make_plan
from paddlelike.io.load.run import run_load
from paddlelike.io.load.values import values_of
from paddlelike.io.partition import partition_of
from paddlelike.io.programs.build import collections_paused
from paddlelike.io.report import LoadReport
from paddlelike.io.rules.rules import Rule, Rules
from paddlelike.io.save import asynchronous
from paddlelike.io.select import (
    is_belong_to_optimizer,
    is_parameter,
    is_persistable,
    program_of,
    select,
)
from paddlelike.io.verify import (
    NO_COMPARISON,
    Comparison,
    choose_comparison,
    is_of_another_save,
    record_of,
    refusal,
)
from paddlelike.storage.location import Location, locate

__all__ = [
    "Asked",
    "Choices",
    "asked_for",
    "load_params",
    "load_persistables",
    "load_vars",
    "names_of",
    "opened",
]

_TRIES: Final = 3  # when somebody saves into the directory at the same time

Path = str | os.PathLike[str]


class Choices(TypedDict, total=False):
    """The keywords of :func:`load_vars` that all loads take."""

    strict: bool
    rename: Mapping[str, str | Sequence[str]] | None
    rules: Rules | Iterable[Rule] | None
    skip: str | Iterable[str] | None
    init: str | float | Mapping[str, str | float] | None
    names: Iterable[Variable | str] | Program | None
    lazy: bool
    verify: bool | None
    in_place: bool


def load_vars(
    executor: Executor,
    dirname: Path | None,
    main_program: Any = None,
    vars: Iterable[Variable | str] | None = None,  # noqa: A002  (Fluid's name)
    predicate: Callable[[Variable], bool] | None = None,
    filename: str | bytes | None = None,
    *,
    strict: bool = True,
    rename: Mapping[str, str | Sequence[str]] | None = None,
    rules: Rules | Iterable[Rule] | None = None,
    skip: str | Iterable[str] | None = None,
    init: str | float | Mapping[str, str | float] | None = None,
    names: Iterable[Variable | str] | Program | None = None,
    lazy: bool = False,
    verify: bool | None = None,
    in_place: bool = False,
) -> LoadReport:
    """Load variables that :func:`save_vars` saved, here or in Paddle; all that are chosen, or none.

    :func:`plan_load` tells beforehand what would happen, without doing it.

    Parameters
    ----------
    dirname
        The directory. None: ``filename`` is the bytes of the combined form.
    vars
        Variables or their names; None: those that ``predicate`` accepts.
    filename
        The one file that holds all of them; None: a file each.
    strict
        False: load what fits; the report tells what is missing and what does not fit.
    rename
        ``{name in the files: name in the program}``; also a list of variables that take the same value.
    rules
        :class:`Rules` for many names at once, with transposed, cut, joined and overlapping values.
    skip
        Patterns of variables that stay as they are, and of files that are not used (``"fc_2.*"``).
    init
        What becomes of variables that the files do not hold: ``"keep"`` their value, ``"zero"``, a number, or
        ``{pattern: one of these}``. With ``strict=False`` also of those that do not fit.
    names
        The names of what a combined file holds, where these are not the variables asked for; or the program
        that it was saved from.
    lazy
        Map files instead of reading them, copy-on-write; :mod:`paddlelike.io.load.lazy` says what it costs.
    verify
        Compare the bytes with the manifest while they are read. None: where there is a manifest, and not when
        ``lazy``; files that it has no checksum of are loaded all the same. True: a directory without a
        manifest, or a file without a checksum, is refused. False: compare nothing.
    in_place
        Read into the arrays that the variables have already, where these have the right form: no second
        model in memory, and a third of the time. Everything is still checked from the headers first; but if
        the disk then fails, or ``verify`` finds other bytes, the variables hold a mix, and the error says so.

    Returns
    -------
    A report, true when all is well.

    Raises
    ------
    LoadError
        Something is missing, does not fit, or is not what was saved; the message lists everything, and the
        scope is as it was (but see ``in_place``).

    Examples
    --------
    A network whose last layer is another one takes over the others:

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> def network(classes):
    ...     main, startup = fluid.Program(), fluid.Program()
    ...     with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...         hidden = fluid.layers.fc(fluid.data("x", [None, 4]), 8)
    ...         fluid.layers.fc(hidden, classes)
    ...     return main, startup
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> main, startup = network(10)
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     report = fluid.io.save_persistables(exe, home + "/ten", main)
    []
    >>> main, startup = network(3)
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     report = fluid.io.load_persistables(exe, home + "/ten", main, skip="fc_1.*")
    []
    >>> bool(report), sorted(report.loaded), report.skipped
    (True, ['fc_0.b_0', 'fc_0.w_0'], ('fc_1.w_0', 'fc_1.b_0'))
    """
    check_executor(executor, "load_vars")
    if executor._closed:
        raise RuntimeError("this Executor was closed; make a new one")
    program = program_of(main_program)
    chosen = select(program, vars, predicate)
    begin = time.perf_counter()
    asked = asked_for(program, chosen, Rules.of(rules, rename, skip, init), strict, names_of(names), dirname)
    if not asked.variables and asked.notes:  # they say why
        return LoadReport(str(dirname), notes=asked.notes)
    if not asked.variables:
        raise LoadError(
            f"nothing to load from {dirname}: the program has no such variable",
            hint="pass the program that was built (main_program=), or vars=",
        )
    rates = find_initial_rates(program, global_scope())
    with collections_paused(), _named_reader(asked.reader):
        stamp, plan, reading, values, verified = _read(
            executor, dirname, filename, asked, lazily=lazy, verify=verify, in_place=in_place
        )
        moved = commit_values(plan, values)
        if dirname is not None and filename is None and asked.view is None:
            record_loaded(locate(dirname), stamp, plan)
        report = make_report(plan, reading, moved, verified)
    seconds = time.perf_counter() - begin
    changed = name_changed_rates(rates, report.loaded, global_scope())
    return replace(report, seconds=seconds, notes=(*report.notes, *asked.notes, *changed))


def load_params(
    executor: Executor,
    dirname: Path | None,
    main_program: Any = None,
    filename: str | bytes | None = None,
    **choices: Unpack[Choices],
) -> LoadReport:
    """Load the parameters of a program. See :func:`load_vars`, also for the other keywords.

    For prediction, into a program without update operators (``clone(for_test=True)``); to go on with
    training use :func:`load_persistables`, which brings the optimizer's state as well.
    """
    _warn_of_updates(program_of(main_program))
    return load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename, **choices)


def load_persistables(
    executor: Executor,
    dirname: Path | None,
    main_program: Any = None,
    filename: str | bytes | None = None,
    **choices: Unpack[Choices],
) -> LoadReport:
    """Load every persistable variable of a program, main or startup. See :func:`load_vars`.

    Of a parameter server's program, main or startup, these are its own rows of the variables: only they are
    read, from a directory that any number of servers, or a single process, was saved into.
    """
    return load_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename, **choices)


class Asked(NamedTuple):
    """What a load is asked for."""

    program: Program
    variables: list[Variable]
    rules: Rules
    strict: bool
    names: list[str] | None  # of the values of a combined file
    view: Callable[[Contents], Contents] | None = None  # what this process takes of a source; None: all of it
    notes: tuple[str, ...] = ()  # for the report
    reader: str = ""  # named in front of errors

    def seen(self, contents: Contents) -> Contents:
        """What the program is to see of a source."""
        return contents if self.view is None else self.view(contents)

    def plan(self, contents: Contents) -> LoadPlan:
        """The plan of loading this out of ``contents``."""
        unnamed = contents.unnamed
        if unnamed is not None:
            by_name = not self.strict or len(self.rules) > 0
            assign_names(unnamed, self.variables, self.names, by_name=by_name)
        everything = {v.name: v for v in self.program.list_vars()} if self.rules else {}
        everything |= {variable.name: variable for variable in self.variables}
        return make_plan(contents, self.variables, self.rules, strict=self.strict, find=everything.get)


def asked_for(
    program: Program,
    chosen: list[Variable],
    rules: Rules,
    strict: bool,
    names: list[str] | None,
    where: object,
) -> Asked:
    """What is asked for, of a distributed program what this process has of it."""
    partition = None
    if isinstance(where, str | os.PathLike):
        partition = partition_of(program, locate(where).path)
    if partition is None:
        return Asked(program, chosen, rules, strict, names)
    share = partition.plan_load(chosen, str(where))
    return Asked(
        program,
        share.variables,
        rules + share.rules,
        strict,
        names,
        view=share.view,
        notes=share.notes,
        reader=share.reader,
    )


def names_of(given: Iterable[Variable | str] | Program | None) -> list[str] | None:
    """The names that ``names=`` stands for."""
    if given is None:
        return None
    values = [v for v in given.list_vars() if is_persistable(v)] if isinstance(given, Program) else given
    return [value if isinstance(value, str) else value.name for value in values]


def opened(
    dirname: Path | None, filename: str | bytes | None, comparison: Comparison = NO_COMPARISON
) -> Contents:
    """The source that ``dirname`` and ``filename`` of a load stand for, no save being under way."""
    if dirname is None:
        if not isinstance(filename, bytes | bytearray | memoryview):
            raise TypeError("without dirname, filename is the bytes that were saved")
        return FileContents(bytes(filename))
    where = locate(dirname)
    if filename is None:
        return DirectoryContents(where, comparison.records, complete=comparison.complete)
    name = os.fsdecode(filename)
    record = record_of(where, name, needed=False)
    return FileContents(name, where, verify=comparison.complete or comparison.covers([name]), record=record)


@contextmanager
def _named_reader(reader: str) -> Iterator[None]:
    """Put the name of whoever loads in front of the text of a load's errors."""
    try:
        yield
    except (LoadError, FormatError, StorageError) as error:
        if not reader:
            raise
        raise type(error)(f"{reader}: {error.message}", hint=error.hint) from error.__cause__


def _read(
    executor: Executor,
    dirname: Path | None,
    filename: str | bytes | None,
    asked: Asked,
    *,
    lazily: bool,
    verify: bool | None,
    in_place: bool,
) -> tuple[object, LoadPlan, Reading, list[Value], bool]:
    """Plan and read; once more if somebody replaced the files meanwhile, so that no two saves are mixed.

    Returns the stamp of the directory that was read, the plan, what was read, and whether all of it was
    compared with the manifest.
    """
    where = None if dirname is None else locate(dirname)
    over = InPlace(global_scope())
    asynchronous.wait_for_pending()
    for _ in range(_TRIES):
        if where is not None:
            where.recover()  # a save that was interrupted there is finished now
        stamp = None if where is None else where.stamp()
        try:
            comparison = _comparison(where, filename, verify, lazily)
            contents = asked.seen(opened(dirname, filename, comparison))
            plan = asked.plan(contents)
            refused = plan.refusal()
            if refused is not None:
                raise _explain_refusal(refused, plan, contents, comparison, where)
            targets = over.targets(plan) if in_place else None
            reading, values = run_load(
                executor, plan, contents, dirname, filename, lazily=lazily, targets=targets
            )
            notes = list(comparison.notes)
            if reading.bad:
                if where is None or not is_of_another_save(where, comparison, reading.bad):
                    raise refusal(contents.where, reading.bad, len(plan.steps))
                count = len(reading.bad)
                notes.append(
                    f"{count} files differ from the manifest, which is of another save: not verified"
                )
        except BaseException as error:
            if isinstance(error, PaddlelikeError) and where is not None and where.stamp() != stamp:
                continue
            over.tell(str(dirname), error)
            raise
        if where is None or where.stamp() == stamp:
            files = {held.name for step in plan.steps for held in step.held}
            compared = comparison.covers(files if filename is None else [os.fsdecode(filename)])
            reading = reading._replace(notes=tuple(notes))
            return stamp, plan, reading, values, compared and not notes and not reading.mapped
    busy = LoadError(
        f"nothing was loaded from {dirname!s}: it was saved anew, {_TRIES} times, while it was being loaded",
        hint="load when nobody saves there",
    )
    over.tell(str(dirname), busy)
    raise busy


def _comparison(
    where: Location | None, filename: str | bytes | None, verify: bool | None, lazily: bool
) -> Comparison:
    """Return what a load compares its files with."""
    if where is None:
        if verify:
            raise LoadError("bytes in memory have no manifest to be compared with; load without verify=True")
        return NO_COMPARISON
    name = None if filename is None else os.fsdecode(filename)
    return choose_comparison(where, name, verify=verify, lazy=lazily)


def _explain_refusal(
    refused: LoadError, plan: LoadPlan, contents: Contents, comparison: Comparison, where: Location | None
) -> LoadError:
    """Return the error of a plan that is refused, with the files that are not what was saved."""
    if comparison.complete:
        bad = values_of(contents, plan)[0].bad
        return refusal(contents.where, bad, len(plan.steps)) if bad else refused
    bad = [] if comparison.records is None else contents.read([]).bad
    if not bad or where is None or is_of_another_save(where, comparison, bad):
        return refused
    lines = "".join(f"\n  {problem}" for problem in sorted(bad))
    return type(refused)(
        f"{refused.message}\n{len(bad)} files are not what was saved:{lines}", hint=refused.hint
    )


def _warn_of_updates(program: Program) -> None:
    updates = [op for op in program.global_block().ops if op.attrs.get("op_role", 0) & OpRole.Optimize]
    if not updates:
        return
    state = [v.name for v in program.list_vars() if is_belong_to_optimizer(v)]
    warn_user(
        f"load_params: this program updates its parameters when it runs ({len(updates)} update operators), "
        f"and its {len(state)} other persistables (optimizer state) are not loaded; use "
        "program.clone(for_test=True) to predict, load_persistables to go on with training"
    )
