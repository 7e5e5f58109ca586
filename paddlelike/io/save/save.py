"""Functions that save variables: ``save_vars``, ``save_params``, ``save_persistables``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol, Unpack, overload

from paddlelike.executor.run import Executor
from paddlelike.foundation.docstrings import describe_like
from paddlelike.foundation.keyword_options import show_options
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable
from paddlelike.io import asynchronous
from paddlelike.io.calls import (
    check_directory,
    check_executor,
    describe_unchosen,
    get_program,
    is_parameter,
    is_persistable,
    select,
)
from paddlelike.io.report import SaveReport
from paddlelike.io.save.chosen import SaveRequest, save_chosen, save_to_memory
from paddlelike.io.save.encoded import no_value_explained
from paddlelike.storage.location import locate
from paddlelike.storage.options import BlockingKeywords, SaveKeywords, SaveOptions

if TYPE_CHECKING:
    from paddlelike.framework.typing import ProgramLike

Path = str | os.PathLike[str]
Variables = Iterable[Variable | str]
Predicate = Callable[[Variable], bool]


class _SaveSelected(Protocol):
    """A function that saves some variables of a program; the type of its result depends on its arguments."""

    @overload
    def __call__(
        self,
        executor: Executor,
        dirname: None,
        main_program: ProgramLike | None = None,
        filename: None = None,
        **options: Unpack[SaveKeywords],
    ) -> bytes | None: ...
    @overload
    def __call__(
        self,
        executor: Executor,
        dirname: Path,
        main_program: ProgramLike | None = None,
        filename: str | None = None,
        *,
        blocking: Literal[True] = True,
        **options: Unpack[BlockingKeywords],
    ) -> SaveReport | None: ...
    @overload
    def __call__(
        self,
        executor: Executor,
        dirname: Path,
        main_program: ProgramLike | None = None,
        filename: str | None = None,
        *,
        blocking: Literal[False],
        **options: Unpack[BlockingKeywords],
    ) -> asynchronous.PendingSave | None: ...


def _declare_results(function: Callable[..., Any]) -> _SaveSelected:
    """Return the function itself, with the types of its results by its arguments."""
    return function


@overload
def save_vars(
    executor: Executor,
    dirname: None,
    main_program: ProgramLike | None = None,
    vars: Variables | None = None,
    predicate: Predicate | None = None,
    filename: None = None,
    **options: Unpack[SaveKeywords],
) -> bytes | None: ...
@overload
def save_vars(
    executor: Executor,
    dirname: Path,
    main_program: ProgramLike | None = None,
    vars: Variables | None = None,
    predicate: Predicate | None = None,
    filename: str | None = None,
    *,
    blocking: Literal[True] = True,
    **options: Unpack[BlockingKeywords],
) -> SaveReport | None: ...
@overload
def save_vars(
    executor: Executor,
    dirname: Path,
    main_program: ProgramLike | None = None,
    vars: Variables | None = None,
    predicate: Predicate | None = None,
    filename: str | None = None,
    *,
    blocking: Literal[False],
    **options: Unpack[BlockingKeywords],
) -> asynchronous.PendingSave | None: ...
@show_options(SaveOptions)
def save_vars(
    executor: Executor,
    dirname: Path | None,
    main_program: ProgramLike | None = None,
    vars: Variables | None = None,  # noqa: A002  (Fluid's name)
    predicate: Predicate | None = None,
    filename: str | None = None,
    **options: Unpack[SaveKeywords],
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    """Save the current values of variables, all of them or none.

    A variable that this process saved in the same directory, or loaded from it, is written only if the
    variable or its file has changed since then.

    Parameters
    ----------
    executor
        The executor that runs the save.
    dirname
        The directory. It is made when missing. It may be a URL such as ``s3://bucket/model`` (extra
        "remote"). None, with ``filename=None``, returns the bytes of the combined form.
    main_program
        The program whose variables are saved; None for the default main program.
    vars
        Variables or their names; None for those that ``predicate`` accepts.
    predicate
        A function of a variable that returns whether to save it. Not used when ``vars`` is given.
    filename
        One file for all variables, in the order of their names; None for a file each, named as the variable.

    Returns
    -------
    SaveReport, PendingSave, bytes or None
        A report; with ``blocking=False`` a handle, a :class:`PendingSave`; the bytes of the combined form if
        ``dirname`` is None; None when there was nothing to save.

    Raises
    ------
    SaveError
        Something could not be written; the directory is unchanged. Or: an earlier save with
        ``blocking=False`` failed, and its failure was not reported yet.
    NotInitializedError
        A variable holds no value.
    TypeError
        ``executor`` is not an Executor, ``main_program`` not a Program, or a keyword not an option.

    Examples
    --------
    Save what a predicate selects, then again after nothing has changed:

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     first = fluid.io.save_vars(exe, home, main, predicate=lambda v: v.name.endswith(".w_0"))
    ...     second = fluid.io.save_vars(exe, home, main, vars=["fc_0.w_0"])
    []
    >>> list(first.saved), first.written, second.written, second.kept
    (['fc_0.w_0'], 1, 0, 1)
    """
    given = SaveOptions.from_keywords(options, "save_vars")

    def choose(program: Program) -> list[Variable]:
        return select(program, vars, predicate)

    return _save(executor, dirname, main_program, choose, filename, None, given)


@_declare_results
@describe_like(save_vars)
@show_options(SaveOptions)
def save_params(
    executor: Executor,
    dirname: Path | None,
    main_program: ProgramLike | None = None,
    filename: str | None = None,
    **options: Unpack[SaveKeywords],
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    """Save the parameters of a program, which prediction needs: all of them or none.

    Stale files, which the same program wrote in an earlier save but not in this one, stay and are listed in
    the report; ``remove_stale=True`` deletes them.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 3))
    ...     fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    (...)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     report = fluid.io.save_params(exe, home, main)
    []
    >>> sorted(report.saved)
    ['fc_0.b_0', 'fc_0.w_0']
    """
    given = SaveOptions.from_keywords(options, "save_params")
    return _save(executor, dirname, main_program, _choose_parameters, filename, "params", given)


@_declare_results
@describe_like(save_vars)
@show_options(SaveOptions)
def save_persistables(
    executor: Executor,
    dirname: Path | None,
    main_program: ProgramLike | None = None,
    filename: str | None = None,
    **options: Unpack[SaveKeywords],
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    """Save every persistable of a program, which continued training needs: all of them or none.

    For a trainer's program, trainer 0 saves everything, also the values on parameter servers, into the same
    files as a single process would. The other trainers save nothing and warn.

    Two programs may share a directory: no save deletes the files of another one. Stale files, which the same
    program wrote in an earlier save but not in this one, are listed in the report; ``remove_stale=True``
    deletes them.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4]), 3))
    ...     fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    (...)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     report = fluid.io.save_persistables(exe, home, main)
    ...     later = fluid.io.save_persistables(exe, home, main, blocking=False).wait()
    []
    >>> sorted(report.saved)
    ['fc_0.b_0', 'fc_0.b_0_velocity_0', 'fc_0.w_0', 'fc_0.w_0_velocity_0', 'learning_rate_0']
    >>> later.written  # nothing has changed
    0
    """
    given = SaveOptions.from_keywords(options, "save_persistables")
    return _save(executor, dirname, main_program, _choose_persistables, filename, "persistables", given)


def _save(
    executor: Executor,
    dirname: Path | None,
    main_program: ProgramLike | None,
    choose: Callable[[Program], list[Variable]],
    filename: str | None,
    part: str | None,
    options: SaveOptions,
) -> SaveReport | asynchronous.PendingSave | bytes | None:
    check_executor(executor, "save_vars")
    check_directory(dirname, "save_vars")
    if dirname is None and filename is not None:
        raise TypeError("filename needs a dirname; pass neither to get the bytes")
    program = get_program(main_program)
    _warn_of_trainers(program)
    chosen = choose(program)
    if not chosen:
        warn_user(f"nothing is saved to {dirname}: {describe_unchosen(program, 'none was chosen')}")
        return None
    asynchronous.check_pending()
    with no_value_explained(program, chosen):
        if dirname is None:
            return save_to_memory(executor, chosen)
        request = SaveRequest(program, chosen, locate(dirname), filename, part, options=options)
        return save_chosen(executor, request)


def _choose_parameters(program: Program) -> list[Variable]:
    return select(program, None, is_parameter)


def _choose_persistables(program: Program) -> list[Variable]:
    return select(program, None, is_persistable)


def _warn_of_trainers(program: Program) -> None:
    """Warn a trainer other than trainer 0 that all trainers hold the same values."""
    trainer, count = (os.environ.get(name, "") for name in ("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"))
    several = count.isdigit() and int(count) > 1
    if several and trainer.isdigit() and int(trainer) > 0 and not program._is_distributed:
        warn_user(
            f"trainer {trainer} of {count} saves; usually trainer 0 does: guard the save by "
            "`if trainer_id == 0`, or use one directory for each trainer"
        )
