"""Loading variables: planned from the headers, read by a program of load operators, committed at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from paddlelike.core import global_scope
from paddlelike.errors import FormatError, LoadError, StorageError
from paddlelike.executor.run import Executor
from paddlelike.foundation.docstrings import describe_like
from paddlelike.foundation.garbage import collection_paused
from paddlelike.foundation.keyword_options import show_options
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import OpRole, Program, Variable
from paddlelike.io.calls import (
    check_directory,
    check_executor,
    describe_unchosen,
    get_program,
    is_belong_to_optimizer,
    is_parameter,
    is_persistable,
    select,
)
from paddlelike.io.load.commit import (
    commit_values,
    find_initial_rates,
    make_report,
    name_changed_rates,
    record_loaded,
)
from paddlelike.io.load.read_request import read_request
from paddlelike.io.load.request import LoadKeywords, LoadOptions, LoadRequest, make_request
from paddlelike.io.load.source import Source
from paddlelike.io.report import LoadReport

if TYPE_CHECKING:
    from paddlelike.framework.typing import ProgramLike

Path = str | os.PathLike[str]


@show_options(LoadOptions)
def load_vars(
    executor: Executor,
    dirname: Path | None,
    main_program: ProgramLike | None = None,
    vars: Iterable[Variable | str] | None = None,  # noqa: A002  (Fluid's name)
    predicate: Callable[[Variable], bool] | None = None,
    filename: str | bytes | None = None,
    **options: Unpack[LoadKeywords],
) -> LoadReport:
    """Load variables that :func:`save_vars`, here or in Paddle, saved: all selected ones or none.

    :func:`plan_load` shows the outcome beforehand and changes nothing.

    Parameters
    ----------
    executor
        The executor that runs the load. Its place does not matter: values are read into the current scope.
    dirname
        The directory, or its URL; or the prefix of a model of Paddle 2 or 3, or one of its files: the values
        are in ``PREFIX.pdiparams``. None when ``filename`` is the bytes of the combined form.
    main_program
        The program whose variables are loaded; None for the default main program.
    vars
        Variables or their names; None for those that ``predicate`` accepts.
    predicate
        A function of a variable that returns whether to load it. Not used when ``vars`` is given.
    filename
        The one file that holds all variables; None if each variable has a file of its name.

    Returns
    -------
    LoadReport
        A report; true when all is well. If ``vars`` or the caller's own ``predicate`` chose no variable,
        nothing is loaded, with a warning: predicates of old scripts test whether files exist.

    Raises
    ------
    LoadError
        Something is missing, does not fit, or differs from its manifest; the message lists everything, and
        the scope is unchanged (but see the option ``in_place``).
    TypeError
        ``executor`` is not an Executor, ``main_program`` not a Program, or a keyword not an option.

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
    given = LoadOptions.from_keywords(options, "load_vars")
    program = get_program(main_program)
    chosen = select(program, vars, predicate)
    if not chosen and (vars is not None or predicate not in (None, is_parameter, is_persistable)):
        why = "" if vars is not None else f": {describe_unchosen(program)}"
        warn_user(f"load_vars: no variable was chosen, and nothing is loaded from {dirname}{why}")
        return LoadReport(str(dirname), notes=("no variable was chosen",))
    return _load(executor, make_request(program, chosen, Source.find(dirname, filename), given))


@describe_like(load_vars)
@show_options(LoadOptions)
def load_params(
    executor: Executor,
    dirname: Path | None,
    main_program: ProgramLike | None = None,
    filename: str | bytes | None = None,
    **options: Unpack[LoadKeywords],
) -> LoadReport:
    """Load the parameters of a program, all of them or none.

    Use it for prediction, with a program without update operators (``clone(for_test=True)``); to continue
    training use :func:`load_persistables`, which also loads the optimizer's state.

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
    return load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename, **options)


@describe_like(load_vars)
@show_options(LoadOptions)
def load_persistables(
    executor: Executor,
    dirname: Path | None,
    main_program: ProgramLike | None = None,
    filename: str | bytes | None = None,
    **options: Unpack[LoadKeywords],
) -> LoadReport:
    """Load every persistable variable of a program, main or startup: all of them or none.

    For a program of a parameter server, main or startup, only the server's own rows are read. Any number of
    servers, or a single process, may have saved the directory.

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
    return load_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename, **options)


def _load(executor: Executor, request: LoadRequest) -> LoadReport:
    """Carry out a load: plan and read it, commit its values to the scope, and report."""
    begin = time.perf_counter()
    program, source = request.program, request.source
    if not request.variables and request.notes:  # the rules give the reason
        return LoadReport(source.path, notes=request.notes)
    if not request.variables and _is_empty(program):
        warn_user(f"nothing is loaded from {source.path}: the program is empty")
        return LoadReport(source.path, notes=("the program is empty",))
    if not request.variables:
        raise LoadError(
            f"nothing to load from {source.path}: the program has no variable of this kind",
            hint="pass the program that was built (main_program=), or vars=",
        )
    rates = find_initial_rates(program, global_scope())
    with collection_paused(), _prefix_errors(request.reader):
        read = read_request(executor, request)
        moved, states = commit_values(read.plan, read.values)
        if request.done is not None:
            request.done()
        if source.where is not None and source.has_file_each and request.view is None:
            record_loaded(source.where, read.stamp, read.plan, states)
        report = make_report(read.plan, read.reading, moved, read.verified)
    for note in read.plan.notes:
        warn_user(f"{source.path}: {note}")
    seconds = time.perf_counter() - begin
    changed = name_changed_rates(rates, report.loaded, global_scope())
    return replace(report, seconds=seconds, notes=(*report.notes, *request.notes, *changed))


def _is_empty(program: Program) -> bool:
    """Return whether a program is empty, so that there is nothing to load."""
    return not any(block.ops or block.vars for block in program.blocks)


@contextmanager
def _prefix_errors(reader: str) -> Iterator[None]:
    """Prefix the messages of a load's errors with the name of the process."""
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
