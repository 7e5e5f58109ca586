"""Open a model of CNTK as a program with parameters."""

from __future__ import annotations

import os
from typing import Any

from paddlelike.core import Scope, global_scope, numpy_dtype
from paddlelike.errors import FormatError, MissingFileError
from paddlelike.formats.cntk.dictionary import decode
from paddlelike.formats.cntk.file import CntkFile
from paddlelike.formats.explain import HEAD, explain
from paddlelike.interop.cntk.function import Function, read_function
from paddlelike.interop.cntk.origin import remember_origin
from paddlelike.interop.cntk.reading.build import Built, build_program
from paddlelike.interop.cntk.writing.graph import Graph, Ref, as_real
from paddlelike.io.export.program import make_inference_program
from paddlelike.storage.location import find_near_file, locate_prefix
from paddlelike.storage.problems import raises_own_errors

Path = str | os.PathLike[str]


@raises_own_errors
def import_cntk(file: Path | bytes, *, scope: Scope | None = None) -> list[Any]:
    """Open a model of CNTK 2 (model-v2): ``[program, feed names, fetch variables]``.

    Returns the same as ``load_inference_model``. Parameters and constants go into the scope, under their
    uids in CNTK, all of them or none. Inputs have their names in CNTK, or their uids where names are
    absent or shared; the output of a named layer has the layer's name. A sequence is fed as a LoDTensor.

    Parameters
    ----------
    file
        A ``.model``, ``.dnn`` or ``.cmf``, known by its content; a URL; or its bytes.
    scope
        The scope that receives the values; None for the current one.

    Returns
    -------
    list
        The program, the names of its feeds, and its fetch variables.

    Raises
    ------
    UnsupportedError
        The model has operations that programs do not express: all are listed, and nothing changes.
    FormatError
        The file is damaged, or no model of CNTK 2.
    MissingFileError
        There is no such file.

    See Also
    --------
    fluid.export_cntk, fluid.export_cntk_checkpoint, fluid.import_cntk_checkpoint, fluid.import_onnx
    fluid.export_onnx

    >>> import tempfile, numpy as np
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3, act="tanh")
    >>> with fluid.scope_guard(fluid.Scope()), tempfile.TemporaryDirectory() as home:
    ...     exe = fluid.Executor()
    ...     _ = exe.run(startup)
    ...     _ = fluid.export_cntk(main, f"{home}/net.model", ["x"], [out])
    ...     program, feeds, fetches = fluid.import_cntk(f"{home}/net.model")
    ...     rows = exe.run(program, feed={feeds[0]: np.zeros((2, 4), "float32")}, fetch_list=fetches)[0]
    >>> feeds, rows.shape
    (['x'], (2, 3))
    """
    title = "import_cntk" if isinstance(file, bytes) else os.fspath(file)
    data = read_bytes(file)
    if not CntkFile().sniff(data[:HEAD], len(data)):
        known = explain(data[:HEAD], len(data))
        raise FormatError(f"{title} is not a model of CNTK 2", hint=known)
    tree = decode(data)
    function = read_function(tree)
    built = build_program(function, title=title)
    targets = [one.name for one in built.outputs]
    program = make_inference_program(built.program, built.feeds, targets)
    for op in (op for block in program.blocks for op in block.ops if op.type == "while"):
        op.attrs["is_test"] = False  # a loop keeps its steps only then, and can be trained further
    put_values(built, scope)
    remember_origin(program, tree, (list(built.feeds), targets), built.arrays, _list_refs(function, built))
    return [program, built.feeds, [program.global_block().var(name) for name in targets]]


def _list_refs(function: Function, built: Built) -> dict[str, Ref]:
    """Return CNTK's values for the program's variables that further functions can read."""
    found: dict[str, Ref] = {}
    graph = Graph([])  # stands for that of the function that reads them
    for uid, resolved in function.list_outer():
        value = built.values.get(resolved)
        if value is None or value.padding is not None:
            continue
        variable = value.variable
        shape = tuple(variable.shape[-value.rank :]) if value.rank else ()
        dtype = as_real(numpy_dtype(variable.dtype))
        ref = Ref(graph, uid, shape, value.dynamic, value.sequence, dtype)
        found.setdefault(variable.name, ref)  # an alias is the same variable
    return found


def read_bytes(file: Path | bytes) -> bytes:
    """Return the bytes of a file. Raises MissingFileError when there is none."""
    if isinstance(file, bytes):
        return file
    where, name = locate_prefix(os.fspath(file))
    if not where.has(name):
        raise MissingFileError(f"no such file: {os.fspath(file)}", hint=find_near_file(file))
    with where.open_file(name) as source:
        return bytes(source.read_at(0, source.size))


def put_values(built: Built, scope: Scope | None) -> None:
    """Put the values of parameters and constants into a scope."""
    values = global_scope() if scope is None else scope
    for name, array in built.arrays.items():
        values.var(name).get_tensor().set(array.copy())
