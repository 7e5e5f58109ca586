"""Previews of loads, which change nothing; and the same rules applied to plain dicts of arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from paddlelike.core import Array
from paddlelike.errors import LoadError
from paddlelike.formats.state.fluid_save import FluidSave, PrefixedFolder
from paddlelike.foundation.docstrings import describe_like
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable
from paddlelike.io import asynchronous
from paddlelike.io.calls import get_program, is_persistable, select
from paddlelike.io.contents.array import ArrayContents
from paddlelike.io.contents.folder import FolderContents
from paddlelike.io.contents.interface import Contents
from paddlelike.io.load.load import load_vars
from paddlelike.io.load.request import Init, LoadOptions, make_request
from paddlelike.io.load.source import Source
from paddlelike.io.load.values import make_constant, read_values
from paddlelike.io.planning.load_plan import LoadPlan
from paddlelike.io.rules.rule import Rule
from paddlelike.io.rules.rules import Rules
from paddlelike.storage.location import locate_prefix

if TYPE_CHECKING:
    from paddlelike.core import LoDTensor, SelectedRows
    from paddlelike.framework.typing import ProgramLike

Path = str | os.PathLike[str]


@describe_like(load_vars)
def plan_load(
    dirname: Path | Mapping[str, Array] | None,
    program: ProgramLike | None = None,
    *,
    filename: str | bytes | None = None,
    vars: Iterable[Variable | str] | None = None,  # noqa: A002  (Fluid's name)
    predicate: Callable[[Variable], bool] | None = is_persistable,
    strict: bool = True,
    rename: Mapping[str, str | Sequence[str]] | None = None,
    rules: Rules | Iterable[Rule] | None = None,
    skip: str | Iterable[str] | None = None,
    init: Init = None,
    names: Iterable[Variable | str] | Program | None = None,
) -> LoadPlan:
    """Return the plan of :func:`load_vars` with these arguments. Only headers are read; nothing is changed.

    ``dirname`` may also be the path of a ``.pdparams`` file, with or without its suffix, or a dict from
    ``load_program_state``. Print the plan to see it. Its ``rules()`` propose files for variables without a
    file of their name; review them and pass them to the load.

    Parameters
    ----------
    dirname
        A directory, the path of a ``.pdparams`` file, or a dict of :func:`load_program_state`.
    program
        The program; None for the default main program.

    Returns
    -------
    LoadPlan
        A row for each variable and for each file that is not used; true when the load would succeed.

    Raises
    ------
    LoadError
        There is no such directory or file. Values that do not fit are not errors but part of the plan.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> def network():
    ...     main, startup = fluid.Program(), fluid.Program()
    ...     with fluid.program_guard(main, startup):
    ...         fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    ...     return main, startup
    >>> with fluid.unique_name.guard():
    ...     first, second = network(), network()  # the second one's names have other counters
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(first[1])
    ...     report = fluid.io.save_persistables(exe, home + "/fc", first[0])
    []
    >>> plan = fluid.io.plan_load(home + "/fc", second[0])
    >>> bool(plan), [row.what for row in plan.rows]
    (False, ['missing', 'missing', 'not requested', 'not requested'])
    >>> print(plan.rules())
    fc_0.w_0 -> fc_1.w_0
    fc_0.b_0 -> fc_1.b_0
    >>> bool(fluid.io.plan_load(home + "/fc", second[0], rules=plan.rules()))
    True
    """
    program = get_program(program)
    chosen = select(program, vars, predicate)
    options = LoadOptions(strict=strict, rename=rename, rules=rules, skip=skip, init=init, names=names)
    if isinstance(dirname, Mapping):
        return make_request(program, chosen, Source(None), options).plan(ArrayContents("a dict", dirname))
    source = Source.find(dirname, filename)
    request = make_request(program, chosen, source, options)
    return request.plan(request.restrict(_open_source(source)))


@describe_like(load_vars)
def fit_state(
    state_dict: Mapping[str, Array],
    program: ProgramLike | None = None,
    *,
    strict: bool = False,
    rename: Mapping[str, str | Sequence[str]] | None = None,
    rules: Rules | Iterable[Rule] | None = None,
    skip: str | Iterable[str] | None = None,
    init: Init = None,
) -> dict[str, Array]:
    """Return the values of ``state_dict`` with the names and shapes that ``program`` declares.

    Use it between ``load_program_state`` and ``set_program_state``. The keywords are the same as in
    :func:`load_vars`; values that are missing or do not fit are left out unless ``strict``.

    Parameters
    ----------
    state_dict
        Arrays by name, as :func:`load_program_state` returns them.
    program
        The program; None for the default main program.

    Returns
    -------
    dict
        An array for each variable with a fitting value, by its name in the program, in its shape and dtype.

    Raises
    ------
    LoadError
        No value fits; or, with ``strict``, some value does not fit.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> main = fluid.Program()
    >>> with fluid.program_guard(main, fluid.Program()):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 2]), 1, param_attr="w", bias_attr=False)
    >>> rules = Rules().rename("linear.weight", "w", transpose=True)
    >>> fit_state({"linear.weight": np.float32([[1, 2]])}, main, rules=rules)
    {'w': array([[1.],
           [2.]], dtype=float32)}
    """
    program = get_program(program)
    wanted = select(program, None, is_persistable)
    contents = ArrayContents("a dict", state_dict)
    options = LoadOptions(strict=strict, rename=rename, rules=rules, skip=skip, init=init)
    plan = make_request(program, wanted, Source(None), options).plan(contents)
    refused = plan.refusal()
    if refused is not None:
        raise refused
    for note in plan.notes:
        warn_user(f"fit_state: {note}")
    _, values = read_values(contents, plan)
    fitted = {step.variable.name: _get_array(value) for step, value in zip(plan.steps, values, strict=True)}
    return fitted | {fill.variable.name: make_constant(fill) for fill in plan.fills}


def _open_source(source: Source) -> Contents:
    asynchronous.wait_for_pending()
    if source.where is None or source.filename is not None or source.where.exists():
        return source.open()
    prefix = source.path.removesuffix(".pdparams").removesuffix(".pdopt")
    where, base = locate_prefix(prefix)
    where.recover()
    found = [suffix for suffix in FluidSave.suffixes if base and where.has(base + suffix)]
    if not found:
        return source.open()
    return FolderContents(prefix + found[0], PrefixedFolder(where, base), FluidSave())


def _get_array(value: LoDTensor | SelectedRows) -> Array:
    if value.held_array is None:
        raise LoadError("the source has a tensor that was never given a value", hint="leave it out")
    array: Array = value.held_array
    return array
