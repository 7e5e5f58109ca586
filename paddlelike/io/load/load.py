"""Loading variables: planned from the headers, read by a program of load operators, committed at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, Unpack

from paddlelike.core.scope import global_scope
from paddlelike.errors import FormatError, LoadError, StorageError
from paddlelike.executor.run import Executor
from paddlelike.framework.graph.operator import OpRole
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.io.calls import check_directory, check_executor, warn_user
from paddlelike.io.load.commit import commit_values, make_report, record_loaded
from paddlelike.io.load.learning_rates import find_initial_rates, name_changed_rates
from paddlelike.io.load.read_request import read_request
from paddlelike.io.load.request import list_names, make_request
from paddlelike.io.programs import collections_paused
from paddlelike.io.report import LoadReport
from paddlelike.io.rules.rule import Rule
from paddlelike.io.rules.rules import Rules
from paddlelike.io.select import (
    get_program,
    is_belong_to_optimizer,
    is_parameter,
    is_persistable,
    select,
)
from paddlelike.storage.location import locate

if TYPE_CHECKING:
    from paddlelike.framework.typing import ProgramLike

__all__ = ["Choices", "load_params", "load_persistables", "load_vars"]

Path = str | os.PathLike[str]


class Choices(TypedDict, total=False):
    """The keywords of :func:`load_vars` that every load takes."""

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
    main_program: ProgramLike | None = None,
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
    """Load variables that :func:`save_vars`, here or in Paddle, saved: all selected ones or none.

    :func:`plan_load` shows the outcome beforehand and changes nothing.

    Parameters
    ----------
    dirname
        The directory. None: ``filename`` is the bytes of the combined form.
    vars
        Variables or their names; None: those that ``predicate`` accepts.
    filename
        The one file that holds all of them; None: a file each.
    strict
        False: load the values that fit; the report lists those that are missing or do not fit.
    rename
        ``{name in the files: name in the program}``; also a list of variables that take the same value.
    rules
        :class:`Rules` for many names at once, with transposed, sliced, concatenated and overlapping values.
    skip
        Patterns of variables that stay as they are, and of files that are not used (``"fc_2.*"``).
    init
        The value of variables that the files do not hold: ``"keep"`` their value, ``"zero"``, a number, or
        ``{pattern: one of these}``. With ``strict=False`` also of those that do not fit.
    names
        The names of the values in a combined file, if these are not the selected variables; or the program
        that was saved.
    lazy
        Map files instead of reading them, copy-on-write; :mod:`paddlelike.io.contents.lazy` says what it
        costs.
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
    Load all layers but the last, which has another size:

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
    check_directory(dirname, "load_vars")
    if executor._closed:
        raise RuntimeError("this Executor was closed; make a new one")
    program = get_program(main_program)
    chosen = select(program, vars, predicate)
    begin = time.perf_counter()
    every = Rules.of(rules, rename, skip, init)
    request = make_request(program, chosen, every, strict, list_names(names), dirname)
    if not request.variables and request.notes:  # which say why
        return LoadReport(str(dirname), notes=request.notes)
    if not request.variables and _is_empty(program):
        warn_user(f"nothing is loaded from {dirname}: the program is empty")
        return LoadReport(str(dirname), notes=("the program is empty",))
    if not request.variables:
        raise LoadError(
            f"nothing to load from {dirname}: the program has no such variable",
            hint="pass the program that was built (main_program=), or vars=",
        )
    rates = find_initial_rates(program, global_scope())
    with collections_paused(), _prefix_errors(request.reader):
        stamp, plan, reading, values, verified = read_request(
            executor, dirname, filename, request, lazily=lazy, verify=verify, in_place=in_place
        )
        moved, states = commit_values(plan, values)
        if dirname is not None and filename is None and request.view is None:
            record_loaded(locate(dirname), stamp, plan, states)
        report = make_report(plan, reading, moved, verified)
    seconds = time.perf_counter() - begin
    changed = name_changed_rates(rates, report.loaded, global_scope())
    return replace(report, seconds=seconds, notes=(*report.notes, *request.notes, *changed))


def _is_empty(program: Program) -> bool:
    """Return whether nothing was built in a program, so that nothing was asked for."""
    return not any(block.ops or block.vars for block in program.blocks)


def load_params(
    executor: Executor,
    dirname: Path | None,
    main_program: ProgramLike | None = None,
    filename: str | bytes | None = None,
    **choices: Unpack[Choices],
) -> LoadReport:
    """Load the parameters of a program. See :func:`load_vars`, also for the other keywords.

    Use it for prediction, with a program without update operators (``clone(for_test=True)``); to continue
    training use :func:`load_persistables`, which also loads the optimizer's state.

    Raises
    ------
    LoadError
        As :func:`load_vars`.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     saved = fluid.io.save_params(exe, home, main)
    ...     report = fluid.io.load_params(exe, home, main.clone(for_test=True))
    []
    >>> sorted(report.loaded), report.verified
    (['fc_0.b_0', 'fc_0.w_0'], True)
    """
    _warn_of_updates(get_program(main_program))
    return load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename, **choices)


def load_persistables(
    executor: Executor,
    dirname: Path | None,
    main_program: ProgramLike | None = None,
    filename: str | bytes | None = None,
    **choices: Unpack[Choices],
) -> LoadReport:
    """Load every persistable variable of a program, main or startup. See :func:`load_vars`.

    Of a parameter server's program, main or startup, these are its own rows of the variables: only they are
    read, from a directory that any number of servers, or a single process, was saved into.

    Raises
    ------
    LoadError
        As :func:`load_vars`.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     saved = fluid.io.save_persistables(exe, home, main)
    []
    >>> with fluid.scope_guard(fluid.Scope()):  # a new process: the startup program need not run
    ...     report = fluid.io.load_persistables(exe, home, main)
    >>> bool(report), sorted(report.loaded)
    (True, ['fc_0.b_0', 'fc_0.w_0'])
    """
    return load_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename, **choices)


@contextmanager
def _prefix_errors(reader: str) -> Iterator[None]:
    """Put the name of the process in front of the texts of a load's errors."""
    try:
        yield
    except (LoadError, FormatError, StorageError) as error:
        if not reader:
            raise
        raise type(error)(f"{reader}: {error.message}", hint=error.hint) from error.__cause__


def _warn_of_updates(program: Program) -> None:
    updates = [op for op in program.global_block().ops if op.attrs.get("op_role", 0) & OpRole.Optimize]
    if not updates:
        return
    state = [v.name for v in program.list_vars() if is_belong_to_optimizer(v)]
    warn_user(
        f"load_params: this program updates its parameters when it runs ({len(updates)} update operators), "
        f"and its {len(state)} other persistables (optimizer state) are not loaded; use "
        "program.clone(for_test=True) to predict, load_persistables to continue training"
    )
