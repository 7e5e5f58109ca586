"""Programs of save and load operators, as Fluid's own ``save_vars`` and ``load_vars`` build them.

Fluid makes a program for every save and load: one ``save`` or ``load`` operator for each variable, or a
single ``save_combine`` or ``load_combine`` over all of them, sorted by name. The same operators with the same
attributes are built here, but without shape inference and call stacks, and with the variables of the saved
program instead of copies. So 20,000 operators take 20 ms.

Source: Paddle 1.8, ``python/paddle/fluid/io.py``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from paddlelike import unique_name
from paddlelike.core import VarType, global_scope
from paddlelike.executor.run import Executor
from paddlelike.framework import Operator, OpRole, Program, Variable
from paddlelike.framework.graph.attributes import complete_attrs
from paddlelike.framework.opdef import registry
from paddlelike.ops.io.files import Files
from paddlelike.storage.location import is_remote
from paddlelike.storage.names import relative_path

Path = str | os.PathLike[str]


def build_save_program(variables: Sequence[Variable], dirname: Path | None, filename: str | None) -> Program:
    """Return the program that saves variables into ``dirname``, a file each or all in ``filename``.

    Without ``dirname`` its only operator, ``save_combine``, writes the bytes of the combined form into its
    output.

    Raises
    ------
    StorageError
        The name of a variable cannot be the name of a file.
    """
    program = _make_program(variables)
    block = program.global_block()
    if filename is None and dirname is not None:
        attrs = _default_attrs("save")
        begin = _join(dirname, "")
        block.ops = [
            Operator(block, "save", {"X": [name]}, {}, {**attrs, "op_role_var": [], "file_path": path})
            for name, path in ((v.name, begin + relative_path(v.name)) for v in variables)
        ]
        return program
    to_memory = dirname is None
    path = "" if dirname is None else _join_combined(dirname, filename or "")
    saved = block.create_var(name=unique_name.generate("saved_params"), type=VarType.RAW, persistable=True)
    attrs = {**_default_attrs("save_combine"), "file_path": path, "save_to_memory": to_memory}
    names = sorted(variable.name for variable in variables)
    block.ops = [Operator(block, "save_combine", {"X": names}, {"Y": [saved.name]}, attrs)]
    return program


def build_load_program(
    pairs: Iterable[tuple[Variable, str]], dirname: Path | None, filename: str | bytes | None
) -> Program:
    """Return the program that loads variables from files of ``dirname``, or all from ``filename``.

    ``pairs`` are the variables, each with the name of its file.
    """
    pairs = list(pairs)
    program = _make_program([variable for variable, _ in pairs])
    block = program.global_block()
    if filename is None and dirname is not None:
        attrs = _default_attrs("load")
        begin = os.path.join(os.fspath(dirname), "")
        block.ops = [
            Operator(block, "load", {}, {"Out": [name]}, {**attrs, "op_role_var": [], "file_path": path})
            for name, path in ((variable.name, begin + file) for variable, file in pairs)
        ]
        return program
    path: Any = filename if dirname is None else os.path.join(os.fspath(dirname), os.fsdecode(filename or ""))
    attrs = {**_default_attrs("load_combine"), "file_path": path, "model_from_memory": dirname is None}
    names = sorted(variable.name for variable, _ in pairs)
    block.ops = [Operator(block, "load_combine", {}, {"Out": names}, attrs)]
    return program


def run_program(executor: Executor, program: Program, files: Files) -> None:
    """Run a program that was built here in the current scope; its operators save and load through ``files``.

    The program cannot be run again, since its operators are removed: they and their block refer to each
    other, and thousands of them would wait for the garbage collector.
    """
    executor._run(program, {}, [], global_scope(), return_numpy=False, services={"files": files})
    program.plans.clear()
    program.global_block().ops = []


def _make_program(variables: Iterable[Variable]) -> Program:
    program = Program()
    program.global_block().vars = {variable.name: variable for variable in variables}
    return program


def _default_attrs(op_type: str) -> dict[str, Any]:
    """Return the attributes of an operator as ``append_op`` completes them."""
    common = {"op_role": OpRole.Forward, "op_role_var": [], "op_namescope": "/", "op_device": ""}
    return complete_attrs(registry.find(op_type), {"file_path": ""}) | common


def _join(dirname: Path, name: str) -> str:
    """Return the path of a file as Fluid normalises it; URLs are not changed."""
    text = os.fspath(dirname)
    if is_remote(text):
        return f"{text.rstrip('/')}/{name}"
    base = os.path.normpath(text)
    return name if base == "." else os.path.join(base, name)


def _join_combined(dirname: Path, filename: str) -> str:
    text = os.fspath(dirname)
    return _join(text, filename) if is_remote(text) else os.path.join(os.path.normpath(text), filename)
