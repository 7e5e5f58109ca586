"""Save and load models for prediction: a pruned program with its parameters, in a directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from paddlelike.errors import LoadError, MissingFileError
from paddlelike.executor.run import Executor
from paddlelike.framework.codec.decode import decode_program
from paddlelike.framework.codec.encode import PADDLE_VERSION, build_message
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.trust import describe_operators, find_untrusted_operators
from paddlelike.framework.graph.variable import Variable
from paddlelike.io import asynchronous
from paddlelike.io.calls import check_executor, warn_user
from paddlelike.io.contents.compare import compare_buffer
from paddlelike.io.export.compat import add_compatibility
from paddlelike.io.export.program import (
    append_scales,
    check_feeds,
    clear_devices,
    find_ports,
    make_inference_program,
    warn_of_metrics,
)
from paddlelike.io.fingerprint import fingerprint
from paddlelike.io.load.load import load_persistables
from paddlelike.io.load.stable import read_stable
from paddlelike.io.partition import get_partition
from paddlelike.io.save.chosen import add_to
from paddlelike.io.select import get_program, get_program_persistable_vars
from paddlelike.io.verify import check_problems, choose_comparison
from paddlelike.storage.location import Location, locate
from paddlelike.storage.options import DEFAULT_OPTIONS

__all__ = ["load_inference_model", "save_inference_model"]

_MOST = 1 << 31  # bytes of a program: what protobuf reads


def save_inference_model(
    dirname: str | os.PathLike[str],
    feeded_var_names: Sequence[str] | str,
    target_vars: Sequence[Variable] | Variable,
    executor: Executor,
    main_program: Any = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
    export_for_deployment: bool = True,
    program_only: bool = False,
) -> list[str]:
    """Save the part of a program that computes ``target_vars``, in the form of Paddle's inference tools.

    As in Fluid, each call appends one ``scale`` operator per target to ``main_program``, whose output names
    the target.

    The program and its parameters replace the files of an earlier export in one transaction; files that only
    the earlier export had are not deleted.

    Parameters
    ----------
    dirname
        The directory, made when missing; or a URL such as ``s3://bucket/model``, see the extra "remote".
    feeded_var_names
        The names of the variables that are fed when the model runs.
    target_vars
        The variables that it computes.
    model_filename
        File of the program; None: ``__model__``.
    params_filename
        One file for all parameters; None: a file each.
    export_for_deployment
        False: the whole program, as ``<model>.main_program``, and all its persistables.
    program_only
        Save the program without values.

    Returns
    -------
    The names under which the targets are fetched.

    Raises
    ------
    GraphError
        A feed is missing, unknown or unused.
    SaveError
        A file cannot be written; the earlier export is as it was.
    NotInitializedError
        A variable holds no value.
    TypeError, ValueError
        An argument is of another type, or lists no variables or names.

    >>> import os
    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     names = fluid.io.save_inference_model(home, ["x"], [out], exe, main)
    []
    >>> sorted(os.listdir(home))
    ['__manifest__', '__model__', 'fc_0.b_0', 'fc_0.w_0']
    """
    check_executor(executor, "save_inference_model")
    feeds = _list_feeds(feeded_var_names)
    targets = _list_targets(target_vars)
    program = get_program(main_program)
    if dirname is None:
        raise TypeError("save_inference_model: dirname is a path, not None")
    where = locate(dirname)
    asynchronous.check_pending()
    check_feeds(program, feeds, targets)
    partition = get_partition(program)
    idle = (
        None
        if partition is None
        else partition.plan_save(executor, [], where.path, "params", DEFAULT_OPTIONS).idle
    )
    if idle is not None:
        warn_user(idle)
        return [f"save_infer_model/scale_{index}.tmp_0" for index in range(len(targets))]
    warn_of_metrics(program)
    clear_devices(program)
    outputs = append_scales(program, targets)
    names = [v.name for v in outputs]
    model = os.path.basename(model_filename) if model_filename else "__model__"
    params = os.path.basename(params_filename) if params_filename else None
    if not export_for_deployment:
        model += ".main_program"
    exported = program
    if export_for_deployment:
        plain = program if partition is None else partition.localize(program)
        exported = make_inference_program(plain, feeds, names)
    writing = where.begin(program=fingerprint(exported), part=None if program_only else "export")
    writing.add(model, [_encode(exported)])
    if not program_only:
        add_to(executor, writing, where, get_program_persistable_vars(exported), params, partition)
    writing.commit()
    return names


def load_inference_model(
    dirname: str | os.PathLike[str] | None,
    executor: Executor,
    model_filename: str | bytes | None = None,
    params_filename: str | bytes | None = None,
    pserver_endpoints: Sequence[str] | None = None,
    *,
    trusted: bool = False,
    verify: bool = True,
) -> list[Any]:
    """Load a model for prediction: ``[program, feed names, fetch variables]``.

    ``dirname`` may be a URL, see :func:`save_inference_model`. None: ``model_filename`` and
    ``params_filename`` are the bytes of the two files. The values go into the current scope, all of them or
    none.

    Parameters
    ----------
    model_filename
        File of the program; None: ``__model__``.
    params_filename
        The one file of all parameters; None: a file each.
    pserver_endpoints
        Accepted for Fluid.
    trusted
        Load a model whose operators reach outside of it (files, other processes, Python functions, the
        terminal). By default such a model is refused.
    verify
        Compare the files with their manifest, if there is one.

    Raises
    ------
    ValueError
        The directory does not exist.
    LoadError
        A file is missing (then also FileNotFoundError), or does not fit the program; or the model is not
        ``trusted`` and holds operators that do more than compute.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> import numpy as np
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3)
    >>> exe, home = fluid.Executor(fluid.CPUPlace()), tempfile.mkdtemp()
    >>> with fluid.scope_guard(fluid.Scope()):
    ...     exe.run(startup)
    ...     names = fluid.io.save_inference_model(home, ["x"], [out], exe, main)
    ...     program, feeds, fetches = fluid.io.load_inference_model(home, exe)
    ...     rows = exe.run(program, feed={feeds[0]: np.zeros((2, 4), "float32")}, fetch_list=fetches)[0]
    []
    >>> feeds, rows.shape
    (['x'], (2, 3))
    """
    check_executor(executor, "load_inference_model")
    if dirname is None:
        data = _check_bytes(model_filename, params_filename)
        return _load_model(executor, data, "memory", None, params_filename, trusted=trusted, verify=verify)
    where = locate(dirname)
    asynchronous.wait_for_pending()
    name = os.path.basename(os.fsdecode(model_filename or "__model__"))
    model = os.path.join(where.path, name)
    params = None if params_filename is None else os.path.basename(os.fsdecode(params_filename))

    def load() -> list[Any]:
        if not where.exists():
            raise ValueError(f"load_inference_model: there is no directory {where.path}")
        data = _read_model(where, name, verify=verify)
        return _load_model(executor, data, model, where.path, params, trusted=trusted, verify=verify)

    return read_stable(where, load)  # the program and the parameters of one export


def _load_model(
    executor: Executor,
    data: bytes,
    where: str,
    directory: str | None,
    params: str | bytes | None,
    *,
    trusted: bool,
    verify: bool,
) -> list[Any]:
    try:
        program = decode_program(data, trusted=trusted)
    except ValueError as error:
        raise LoadError(f"{where} is no model: {error}", hint=getattr(error, "hint", None)) from error
    if not program.blocks:
        raise LoadError(
            f"{where} is no model: it is empty", hint="the file was truncated or not completely written"
        )
    _check_computes_only(program, where)
    ports = find_ports(program, where)
    if get_program_persistable_vars(program):
        load_persistables(executor, directory, program, params, verify=None if verify else False)
    feeds, fetches = ports
    return [program, feeds, [program.global_block().var(name) for name in fetches]]


def _check_computes_only(program: Program, where: str) -> None:
    """Raise LoadError for a model that does more than compute, which its user would not notice."""
    found = find_untrusted_operators(program)
    if found:
        raise LoadError(
            f"{where} is no model for prediction only: besides operators that compute it holds "
            f"{describe_operators(found)}",
            hint="if you trust the source of this model: load_inference_model(..., trusted=True)",
        )


def _list_feeds(given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else list(given)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"feeded_var_names holds names (str), not {given!r}")
    return names


def _list_targets(given: Any) -> list[Variable]:
    targets = [given] if isinstance(given, Variable) else list(given)
    if not targets or not all(isinstance(target, Variable) for target in targets):
        raise ValueError(f"target_vars holds variables, at least one, not {given!r}")
    return targets


def _encode(program: Program) -> bytes:
    message = build_message(program)
    message.version.version = PADDLE_VERSION
    add_compatibility(message)
    return bytes(message.SerializeToString(deterministic=True))


def _check_bytes(model: Any, params: Any) -> bytes:
    for name, data in (("model_filename", model), ("params_filename", params)):
        if data is not None and not isinstance(data, bytes):
            raise TypeError(f"without dirname, {name} is the bytes of the file")
    if model is None:
        raise ValueError("without dirname, model_filename is the bytes of the model")
    return bytes(model)


def _read_model(where: Location, name: str, *, verify: bool) -> bytes:
    if not where.has(name):
        programs = [other for other in where.list_names() if "/" not in other and _is_program(where, other)]
        raise MissingFileError(
            f"load_inference_model: there is no file {os.path.join(where.path, name)}",
            hint=f"the directory holds {', '.join(programs[:8])}: pass it as model_filename="
            if programs
            else "the directory holds no program",
        )
    with where.open_file(name) as file:
        data = file.read(_MOST)
    comparison = choose_comparison(where, name, verify=None if verify else False, lazy=False)
    problem = None
    if comparison.records is not None and comparison.covers([name]):
        problem = compare_buffer(name, data, comparison.records[name])
    check_problems(where, comparison, [] if problem is None else [problem], shown=where.path, count=1)
    return data


def _is_program(where: Location, name: str) -> bool:
    """Return whether a file begins like a ProgramDesc, with its first block, or is one of Paddle 3 (JSON)."""
    if not where.has(name):  # a link that leads nowhere, a pipe
        return False
    with where.open_file(name) as file:
        return file.read_at(0, 1) in ((b"\n", b"{") if name.endswith(".json") else (b"\n",))
