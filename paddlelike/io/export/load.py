"""Load a model for prediction: a program that only computes, with its parameters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from paddlelike.core import VarType
from paddlelike.errors import LoadError, MissingFileError
from paddlelike.executor.run import Executor
from paddlelike.framework import Program
from paddlelike.framework.codec.decode import decode_program
from paddlelike.framework.graph.trust import describe_operators, find_untrusted_operators
from paddlelike.io import asynchronous
from paddlelike.io.calls import check_executor, get_program_persistable_vars
from paddlelike.io.contents.compare import compare_buffer
from paddlelike.io.export.overwritten import overwritten_marked
from paddlelike.io.export.program import find_ports
from paddlelike.io.load.load import load_persistables
from paddlelike.io.load.model_files import find_model
from paddlelike.io.load.source import read_stable
from paddlelike.io.verify import check_problems, choose_comparison
from paddlelike.storage.location import Location, locate

_MOST = 1 << 31  # bytes of a program: protobuf's limit


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

    ``dirname`` may be a URL, see :func:`save_inference_model`. It may also name a model of Paddle 2 or 3: the
    prefix of its files, the file of its program (``PREFIX.pdmodel``, ``PREFIX.json``), or a directory with
    one such model. With None, ``model_filename`` and ``params_filename`` are the bytes of the two files. The
    values go into the current scope, all of them or none.

    Parameters
    ----------
    dirname
        The directory, or its URL; None when the two names are the bytes of the files.
    executor
        The executor that loads the values into the current scope.
    model_filename
        The file of the program; None for ``__model__``.
    params_filename
        The one file of all parameters; None if each has its own file.
    pserver_endpoints
        Accepted for scripts of Fluid; it has no effect.
    trusted
        Whether to load a model whose operators use files, other processes, Python functions or the terminal.
        By default such a model is refused.
    verify
        Whether to compare the files with their manifest, if there is one.

    Returns
    -------
    program : Program
        The program for prediction.
    feeds : list
        The names of the variables to feed.
    fetches : list
        The variables to fetch.

    Raises
    ------
    ValueError
        The directory does not exist.
    LoadError
        A file is missing (then also FileNotFoundError), or does not fit the program; or the model is not
        ``trusted`` and holds operators that do more than compute.
    TypeError
        ``executor`` is not an Executor.

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
    asynchronous.wait_for_pending()
    if model_filename is None and params_filename is None:
        found = find_model(dirname)
        if found is not None and found.program is not None:
            dirname, model_filename, params_filename = found
    where = locate(dirname)
    name = os.path.basename(os.fsdecode(model_filename or "__model__"))
    model = os.path.join(where.path, name)
    params = None if params_filename is None else os.path.basename(os.fsdecode(params_filename))

    def load() -> list[Any]:
        if not where.exists():
            raise ValueError(
                f"load_inference_model: there is no directory {where.path}\n"
                "  hint: the path is that of save_inference_model; relative ones begin at "
                f"{os.getcwd()}"
            )
        data = _read_model(where, name, verify=verify)
        return _load_model(executor, data, model, where.path, params, trusted=trusted, verify=verify)

    return read_stable(where, load)  # the program and the parameters of one export


def _declare_integers(program: Program) -> bool:
    """Declare as integers the weights that ``WeightQuantization`` converted; Fluid declares them as floats.

    Return whether the program has such weights.
    """
    found = False
    for op in (op for block in program.blocks for op in block.ops if "quantize_weight_bits" in op.attrs):
        dtype = VarType.INT8 if op.attrs["quantize_weight_bits"] == 8 else VarType.INT16
        for name in op.input_arg_names:
            variable = op.block._find_var_recursive(name)
            if variable is not None and f"{name}_quant_scale" in op.attrs:
                variable.dtype, found = dtype, True
    return found


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
        from paddlelike.formats.explain import HEAD, explain  # late: for an error

        known = explain(data[:HEAD], len(data)) or getattr(error, "hint", None)
        raise LoadError(f"{where} is not a model: {getattr(error, 'message', error)}", hint=known) from None
    if not program.blocks:
        raise LoadError(f"{where} is not a model: it is empty", hint="copy or save it again")
    _check_computes_only(program, where)
    ports = find_ports(program, where)
    if get_program_persistable_vars(program):
        try:
            with overwritten_marked(program, directory or "memory"):
                checked = None if verify else False
                try:
                    load_persistables(executor, directory, program, params, verify=checked)
                except LoadError:
                    if not _declare_integers(program):
                        raise
                    load_persistables(executor, directory, program, params, verify=checked)
        except LoadError as error:
            hint = error.hint and error.hint.replace("pass filename=", "pass params_filename=")
            if not ports[1]:  # without fetches it is a program of fluid.save, not a model
                hint = _explain_training_program(where)
            raise type(error)(error.message, hint=hint) from None
    feeds, fetches = ports
    return [program, feeds, [program.global_block().var(name) for name in fetches]]


def _explain_training_program(where: str) -> str:
    """Return the next step for a program that names no outputs, with the files of its values."""
    prefix = os.path.splitext(where)[0] if where.endswith(".pdmodel") else os.path.dirname(where) or where
    return (
        f"{where} is not a model for prediction: it names no outputs, like those that fluid.save writes. "
        f"`paddlelike prune {prefix} DIR --fetch NAME` makes a model of it and its values; in a script: "
        "build the network, fluid.load its values, and call fluid.io.save_inference_model"
    )


def _check_computes_only(program: Program, where: str) -> None:
    """Raise LoadError for a model with operators that access files, processes or the network."""
    found = find_untrusted_operators(program)
    if found:
        raise LoadError(
            f"{where} is not a model for prediction only: besides operators that compute it holds "
            f"{describe_operators(found)}",
            hint="if you trust the source of this model: load_inference_model(..., trusted=True)",
        )


def _check_bytes(model: Any, params: object) -> bytes:
    for name, data in (("model_filename", model), ("params_filename", params)):
        if data is not None and not isinstance(data, bytes):
            raise TypeError(f"without dirname, {name} is the bytes of the file")
    if model is None:
        raise ValueError("without dirname, model_filename is the bytes of the model")
    return bytes(model)


def _read_model(where: Location, name: str, *, verify: bool) -> bytes:
    if not where.has(name):
        from paddlelike.formats.explain import explain_names  # late: for an error

        programs = [other for other in where.list_names() if "/" not in other and _is_program(where, other)]
        held = f"the directory holds {', '.join(programs[:8])}: pass it as model_filename="
        raise MissingFileError(
            f"load_inference_model: no such file: {os.path.join(where.path, name)}",
            hint=explain_names(where.list_names())
            or (held if programs else "")
            or "the directory holds no program: save_inference_model writes one. For values alone, as "
            "save_persistables writes them, build the network and call load_persistables",
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
    if not where.has(name):  # such as a broken link or a pipe
        return False
    with where.open_file(name) as file:
        return file.read_at(0, 1) in ((b"\n", b"{") if name.endswith(".json") else (b"\n",))
