"""Save and load a program's values as pickled dicts (``.pdparams``, ``.pdopt``) and as numpy arrays."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import Array, CPUPlace, LoDTensor, convert_dtype, global_scope
from paddlelike.errors import LoadError, MissingFileError, NotInitializedError
from paddlelike.executor.run import Executor
from paddlelike.formats.state.fluid_save import FluidSave
from paddlelike.foundation.near_names import suggest_names
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Program, Variable
from paddlelike.framework.codec.encode import build_message
from paddlelike.framework.environment import add_operator_versions
from paddlelike.framework.hints import explain_no_value, explain_renumbering, explain_shift
from paddlelike.hooks import Hook
from paddlelike.io import asynchronous
from paddlelike.io.calls import get_program, is_belong_to_optimizer, is_parameter, is_persistable
from paddlelike.io.contents.file import FileContents
from paddlelike.io.deltas.chain import list_chains
from paddlelike.io.load.commit import find_initial_rates, name_changed_rates
from paddlelike.io.load.load import load_vars
from paddlelike.io.load.misplaced import check_tensor_file, list_prefixes, suggest_prefix
from paddlelike.io.load.model_files import find_model
from paddlelike.io.load.program_state import PROGRAM_FILE, load_program_state, read_pickles, strip_suffix
from paddlelike.io.planning.load_plan import explain_misfit
from paddlelike.io.report import LoadReport, Moved, SaveReport
from paddlelike.storage.location import locate, locate_prefix
from paddlelike.storage.options import Durability, SaveOptions

if TYPE_CHECKING:
    from paddlelike.framework.typing import ProgramLike

__all__ = ["load", "load_program_state", "save", "set_program_state"]


_complete_state: Final[Hook[[Program, list[str]], None]] = Hook("complete_state")

_WAIT: Final = 60.0  # seconds: trainers may all save into one directory


def save(
    program: ProgramLike | None,
    model_path: str | os.PathLike[str],
    *,
    durability: Durability = SaveOptions.durability,
) -> SaveReport:
    """Save ``model_path.pdparams``, ``.pdopt`` and ``.pdmodel``: parameters, other state, the program.

    The first two are pickles of ``{name: array}`` that any Paddle reads. The three replace earlier files of
    these names together, or not at all. ``model_path`` may be a URL such as ``s3://bucket/models/net``: see
    the extra "remote".

    If another process is saving the same files, this save waits for it, up to 60 s.

    Parameters
    ----------
    program
        The program whose persistables in the current scope are saved.
    model_path
        The beginning of the three paths; the directory is made when missing.
    durability
        ``"atomic"``: after a power cut, the new files or the earlier ones are there, whole; ``"process"``:
        this holds only when a process dies; ``"power"``: the new files are on the disk when the call
        returns.

    Returns
    -------
    SaveReport
        Which variables and files were written.

    Raises
    ------
    NotInitializedError
        A variable holds no value.
    SaveError
        A file cannot be written, or another process is still saving; the earlier files are unchanged.
    TypeError
        ``program`` is not a Program.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> import os
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     report = fluid.save(main, home + "/net")
    []
    >>> sorted(os.listdir(home))
    ['net.pdmanifest', 'net.pdmodel', 'net.pdopt', 'net.pdparams']
    """
    program = get_program(program)
    path = os.fspath(model_path)
    where, base = locate_prefix(path)
    if not base:
        raise AssertionError(f"model_path {path!r} has no file name; pass directory/name")
    asynchronous.check_pending()
    begin = time.perf_counter()
    if program._sharding is not None:
        _complete_state.function(program, [variable.name for variable in program.list_vars()])
    parameters = {v.name: _get_value(v) for v in program.list_vars() if is_parameter(v)}
    others = {v.name: _get_value(v) for v in program.list_vars() if is_belong_to_optimizer(v)}
    message = build_message(program)
    add_operator_versions(message)
    writing = where.begin(SaveOptions(wait=_WAIT, durability=durability))
    for suffix, buffers in FluidSave(parameters=frozenset(parameters)).write(parameters | others).items():
        writing.add(base + suffix, buffers)
    writing.add(base + PROGRAM_FILE, [message.SerializeToString(deterministic=True)])
    writing.commit()
    saved = {n: Moved(a.shape, a.dtype.name, a.nbytes) for n, a in (parameters | others).items()}
    return SaveReport(path, saved, time.perf_counter() - begin)


def load(
    program: ProgramLike | None,
    model_path: str | os.PathLike[str],
    executor: Executor | None = None,
    var_list: Iterable[Variable] | None = None,
    *,
    verify: bool = True,
) -> LoadReport:
    """Load files of :func:`save`, a directory of one file per variable, or a combined file.

    A directory or a single file needs ``executor``, a combined file also ``var_list``, the variables in it.

    Parameters
    ----------
    executor
        The executor, for a directory or a single file.
    var_list
        The variables in a combined file, in their order.
    program
        The program whose persistables are loaded.
    model_path
        The path that was passed to :func:`save`, with or without the suffix of a file; a directory, or a
        file.
    verify
        Whether to compare the files with their manifest, if there is one.

    Returns
    -------
    LoadReport
        The loaded variables; true when all variables of the program were loaded.

    Raises
    ------
    LoadError
        Something is missing, damaged or does not fit the program; the scope is unchanged.
    ValueError
        ``executor`` or ``var_list`` is needed and was not given.
    TypeError
        ``program`` is not a Program.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     saved = fluid.save(main, home + "/net")
    ...     report = fluid.load(main, home + "/net")
    []
    >>> sorted(report.loaded), report.verified
    (['fc_0.b_0', 'fc_0.w_0'], True)
    """
    program = get_program(program)
    prefix = strip_suffix(model_path)
    asynchronous.wait_for_pending()
    begin = time.perf_counter()
    pickled = read_pickles(prefix, verify=verify)
    if pickled is None:
        return _load_older(program, os.fspath(model_path), executor, var_list, verify=verify)
    if var_list is not None:
        warn_user(f"fluid.load: var_list is not used: all variables of the program are loaded from {prefix}")
    values = pickled.values
    wanted = [v for v in program.list_vars() if is_persistable(v)]
    missing = [v.name for v in wanted if v.name not in values]
    problems = [f"{name}: not in the file{suggest_names(name, list(values), lead='; ')}" for name in missing]
    problems += _find_misfits(wanted, values)
    if problems:
        raise LoadError(
            f"nothing was loaded from {prefix}.pdparams and .pdopt: "
            f"{len(problems)} of {len(wanted)} variables do not fit\n  " + "\n  ".join(problems[:20]),
            hint=_explain_misfit(missing, values)
            or "the program must be the network that was saved; set_program_state accepts a subset",
        )
    _warn_of_shift(program, values, (v.name for v in wanted), "the files have")
    rates = find_initial_rates(program, global_scope())
    moved = _set_all(wanted, values, prefix)
    changed = name_changed_rates(rates, moved, global_scope())
    unexpected = tuple(name for name in values if name not in moved)
    return LoadReport(
        prefix,
        moved,
        unexpected=unexpected,
        notes=(*pickled.notes, *pickled.left_out, *changed),
        seconds=time.perf_counter() - begin,
        verified=pickled.verified,
    )


def set_program_state(program: ProgramLike | None, state_dict: Mapping[str, Array]) -> LoadReport:
    """Set the persistables of ``program`` from ``{name: array}``, all or none.

    Parameters
    ----------
    program
        The program. Its variables must have values already, for example from the startup program.
    state_dict
        A dict like the result of :func:`load_program_state`. Variables that it does not name keep their
        value; names that the program does not have cause a warning.

    Returns
    -------
    LoadReport
        Which variables were set, and which names of the dict are not in the program.

    Raises
    ------
    LoadError
        No name is a persistable of the program, or an array does not fit its variable.
    NotInitializedError
        A variable has no value that could be replaced.
    TypeError
        ``program`` is not a Program.

    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     fluid.Executor(fluid.CPUPlace()).run(startup)
    ...     report = fluid.io.set_program_state(main, {"fc_0.b_0": np.ones(3, "float32")})
    []
    >>> list(report.loaded)
    ['fc_0.b_0']
    """
    program = get_program(program)
    wanted = [v for v in program.list_vars() if is_persistable(v) and v.name in state_dict]
    found = {v.name for v in wanted}
    unused = [name for name in state_dict if name not in found]
    absent = [v.name for v in program.list_vars() if is_parameter(v) and v.name not in state_dict]
    if not wanted:
        raise LoadError(
            f"set_program_state: none of the {len(state_dict)} names is a persistable of the program",
            hint=_explain_misfit(absent, state_dict)
            or f"the state has {_list_some(state_dict)}; the program has "
            f"{_list_some(v.name for v in program.list_vars() if is_persistable(v))}",
        )
    empty = [v.name for v in wanted if not is_initialized(v.name)]
    if empty:
        raise NotInitializedError(
            f"set_program_state: {empty[0]!r} has no value to replace yet",
            hint=explain_no_value(empty, program),
        )
    values = {v.name: np.asarray(state_dict[v.name]) for v in wanted}
    problems = [problem.replace("the file has", "the state has") for problem in _find_misfits(wanted, values)]
    if problems:
        raise LoadError(
            "set_program_state changed nothing:\n  " + "\n  ".join(problems),
            hint="pass array.T where an array is transposed"
            if any(values[v.name].shape == v.shape[::-1] != v.shape for v in wanted)
            else "the state must be of the same network; leave these names out of the dict to set the others",
        )
    if not _warn_of_shift(program, state_dict, values, "the state has") and unused:
        warn_user(f"the program has no persistable {', '.join(map(repr, unused[:8]))}")
    moved = _set_all(wanted, values, "a dict")
    return LoadReport("a dict", moved, unexpected=tuple(unused))


def _warn_of_shift(program: Program, values: Mapping[str, Any], loaded: Iterable[str], source: str) -> bool:
    """Warn, and return True, if layers probably get the values of their neighbors."""
    ours = {v.name: v.shape for v in program.list_vars() if is_parameter(v)}
    theirs = {name: np.shape(value) for name, value in values.items()}
    shift = None if ours.keys() == theirs.keys() else explain_shift(ours, theirs, loaded)
    if shift is not None:
        warn_user(shift.replace("the files have", source))
    return shift is not None


def _load_older(
    program: Program,
    path: str,
    executor: Executor | None,
    var_list: Iterable[Variable] | None,
    *,
    verify: bool,
) -> LoadReport:
    """Load a directory or a single file, which older programs pass, or the values of a model of Paddle 2."""
    model = find_model(path)
    if model is not None and model.values is not None:
        wanted = [v for v in (program.list_vars() if var_list is None else var_list) if is_persistable(v)]
        runs, compare = executor or Executor(CPUPlace()), None if verify else False
        return load_vars(runs, model.directory, program, vars=wanted, filename=model.values, verify=compare)
    directory, (where, name) = locate(path), locate_prefix(path)
    is_directory = directory.exists()
    if not is_directory and not (name and where.has(name)):
        raise MissingFileError(
            f"there is neither {path.removesuffix('.pdparams')}.pdparams, nor a directory or file {path}",
            hint=suggest_prefix(path),
        )
    saved = list_prefixes(path.rstrip("/"), directory.list_names()) if is_directory else []
    if saved:
        raise LoadError(f"{path} is a directory that holds {saved[0][0]}", hint=f"pass {saved[0][1]!r}")
    if not is_directory:
        check_tensor_file(where, name)
    if executor is None:
        raise ValueError(
            f"{path} is a {'directory' if is_directory else 'file'} of variables, not the path prefix of a "
            "fluid.save; loading it needs executor=\n  hint: fluid.load(program, path, executor=exe), or "
            "fluid.io.load_persistables(exe, directory)"
        )
    wanted = list(program.list_vars() if var_list is None else var_list)
    kept = [v for v in wanted if is_persistable(v)]
    if is_directory:
        present = {*directory.list_names(), *list_chains(directory)}
        # If none exists, the load of all variables names the files that do.
        found = [v for v in kept if os.path.normpath(v.name) in present] or kept
        with _filename_explained(path):
            return load_vars(executor, path, program, vars=found, verify=None if verify else False)
    contents = FileContents(name, where, only_headers=True)
    if contents.unnamed is None:
        present = set(contents.names())
        wanted = kept if var_list is not None else [v for v in kept if v.name in present] or kept
    elif var_list is None:
        raise ValueError(f"{path} is a combined file, which stores no names: pass var_list")
    compare = None if verify else False
    return load_vars(executor, where.path or ".", program, vars=wanted, filename=name, verify=compare)


@contextmanager
def _filename_explained(path: str) -> Iterator[None]:
    """Replace ``filename=`` in hints by the arguments that :func:`load` of this module has."""
    try:
        yield
    except LoadError as error:
        found = re.fullmatch(r"pass filename='(.*)'", error.hint or "")
        if found is None:
            raise
        file = os.path.join(path, found[1])
        hint = (
            f"fluid.load(program, {file!r}, exe, var_list=[the variables that were saved]), or "
            f"fluid.io.load_persistables(exe, {path!r}, program, filename={found[1]!r}), load_params likewise"
        )
        raise type(error)(error.message, hint=hint) from error.__cause__


def _get_value(variable: Variable) -> Array:
    holder = global_scope().find_var(variable.name)
    value = None if holder is None else holder.value
    if not isinstance(value, LoDTensor) or value.held_array is None:
        raise NotInitializedError(
            f"variable {variable.name!r} cannot be saved: it holds no tensor",
            hint="servers keep it: fluid.io.save_persistables(exe, dirname, program) on trainer 0 writes it"
            if variable.block.program._is_distributed
            else explain_no_value([variable.name], variable.block.program),
        )
    return value.held_array


def is_initialized(name: str) -> bool:
    """Return whether the current scope holds a value of a variable."""
    holder = global_scope().find_var(name)
    return holder is not None and holder.is_initialized()


def _explain_misfit(missing: Sequence[str], values: Mapping[str, Array]) -> str | None:
    """Return a hint if the missing names differ from the names in the files only in counters, else None."""
    hint = explain_renumbering(missing, list(values))
    return None if hint is None else hint.partition(" (or map the names")[0]  # fluid.load takes no rules


def _find_misfits(variables: list[Variable], values: Mapping[str, Array]) -> list[str]:
    problems = []
    for variable in variables:
        if variable.name in values:
            array = values[variable.name]
            problem = explain_misfit(variable, convert_dtype(array.dtype), array.shape)
            if problem:
                problems.append(f"{variable.name}: {problem}")
    return problems


def _set_all(variables: list[Variable], values: Mapping[str, Array], origin: str) -> dict[str, Moved]:
    scope = global_scope()
    moved = {}
    for variable in variables:
        array = values[variable.name]
        if variable.shape and array.ndim != len(variable.shape):
            array = array.reshape(variable.shape)
        had_value = is_initialized(variable.name)
        holder = scope.find_var(variable.name) or scope.var(variable.name)
        holder.get_tensor().set(array)
        holder.origin = origin
        moved[variable.name] = Moved(array.shape, array.dtype.name, array.nbytes, had_value)
    return moved


def _list_some(names: Iterable[str]) -> str:
    """Return the first of some names as text, or "no names"."""
    first = sorted(names)
    return ", ".join(first[:3]) + (", ..." if len(first) > 3 else "") or "no names"
