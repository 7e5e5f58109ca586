"""Write a program for prediction, with its parameters, as a model of CNTK."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from paddlelike.core import Scope, global_scope, numpy_dtype, scope_guard
from paddlelike.errors import SaveError, UnsupportedError
from paddlelike.executor.run import Executor
from paddlelike.formats.cntk.dictionary import SizeT, encode
from paddlelike.formats.cntk.file import COMPOSITE
from paddlelike.framework import Operator, Parameter, Program, Variable
from paddlelike.framework.opdef import registry
from paddlelike.interop.cntk.function import INPUT
from paddlelike.interop.cntk.origin import Part, find_origin, find_part
from paddlelike.interop.cntk.writing.graph import Graph, Ref, Step, load_writers
from paddlelike.interop.exporting import cut_program, read_parameter
from paddlelike.interop.reader_tables import InexpressibleError
from paddlelike.io.export.load import load_inference_model
from paddlelike.io.export.program import find_ports
from paddlelike.storage.local.transaction import write_all

Path = str | os.PathLike[str]

_PORTS: Final = ("feed", "fetch")
_BLOCK: Final = "block_function_composite"


class CntkReport(NamedTuple):
    """The report of an export.

    Attributes
    ----------
    operators
        The number of translations of each of Paddle's operators; empty for an imported model.
    functions
        The number of CNTK's functions.
    bytes
        The size of the file.
    """

    path: str
    inputs: list[str]
    outputs: list[str]
    operators: dict[str, int]
    functions: int
    bytes: int


def export_cntk(
    source: Path | Program,
    file: Path,
    feeds: Sequence[str] | None = None,
    fetches: Sequence[Variable | str] | None = None,
    *,
    scope: Scope | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
) -> CntkReport:
    """Write a model for prediction as a model-v2 of CNTK 2, all of it or nothing.

    ``cntk.Function.load`` opens it. Parameters keep their names, as names and as uids. CNTK computes with
    real numbers, so inputs of int64 are fed as float32 there. A first dim of -1 becomes the samples or, with
    a LoD, the steps of sequences; all other dims must be known. A program of ``import_cntk`` becomes its
    original function again, with the values of the scope; added operators are translated.

    Parameters
    ----------
    file
        The path of the new model; an old file there is replaced when the new one is complete.
    source
        A directory of a model for prediction; or a program, whose part for prediction is taken.
    feeds, fetches
        The inputs and outputs of a program. None means those of its feed and fetch operators.
    scope
        Holds the parameters of a program. None means the current scope.
    model_filename, params_filename
        Files of the directory, as ``load_inference_model`` takes them.

    Returns
    -------
    CntkReport
        The numbers of the operators by type, and the names of the inputs and outputs.

    Raises
    ------
    UnsupportedError
        The program holds operators that CNTK cannot express; it lists all of them.
    NotInitializedError
        A parameter holds no value.
    SaveError
        The file cannot be written.

    See Also
    --------
    fluid.export_cntk_checkpoint, fluid.import_cntk, fluid.import_cntk_checkpoint, fluid.import_onnx
    fluid.export_onnx

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3, act="relu")
    >>> with fluid.scope_guard(fluid.Scope()), tempfile.TemporaryDirectory() as home:
    ...     _ = fluid.Executor().run(startup)
    ...     report = fluid.export_cntk(main, f"{home}/net.model", ["x"], [out])
    >>> report.operators, report.inputs, report.outputs
    ({'mul': 1, 'elementwise_add': 1, 'relu': 1}, ['x'], ['fc_0.tmp_2'])
    """
    if isinstance(source, Program):
        program = cut_program(source, feeds, fetches, "export_cntk")
        values = global_scope() if scope is None else scope
    else:
        values = Scope()
        with scope_guard(values):
            program = load_inference_model(source, Executor(), model_filename, params_filename)[0]
    inputs, outputs = find_ports(program, "the program")
    origin = find_origin(source, inputs, outputs, values) if isinstance(source, Program) else None
    if origin is not None:
        size = write_files(file, origin)
        return CntkReport(os.fspath(file), inputs, outputs, {}, len(origin["primitive_functions"]), size)
    part = find_part(program, source, values) if isinstance(source, Program) else None
    graph, counts = translate(program, inputs, values, "export_cntk", part=part)
    size = write_files(file, make_function(graph, _find_refs(graph, outputs)))
    return CntkReport(os.fspath(file), inputs, outputs, dict(counts), len(graph.functions), size)


def translate(
    program: Program,
    inputs: list[str],
    scope: Scope,
    title: str,
    batch: float | None = None,
    part: Part | None = None,
) -> tuple[Graph, Counter[str]]:
    """Return the graph of a program. Raises UnsupportedError with all that CNTK cannot express.

    ``part`` is the function that a part of the program was read from.
    """
    part = part or Part([], [], {})
    uids = [one["uid"] for one in (*part.leaves, *part.functions)]
    graph = Graph([*(one.name for one in program.list_vars()), *uids], batch)
    fed = {part.known[name].uid for name in inputs if name in part.known}
    graph.leaves += [one for one in part.leaves if one["kind"] != INPUT or one["uid"] in fed]
    graph.functions += part.functions
    graph.values.update({name: replace(ref, graph=graph) for name, ref in part.known.items()})
    operators = _list_operators(program, part.known)
    refused = _add_inputs(graph, program, [name for name in inputs if name not in part.known])
    _add_parameters(graph, program, inputs, scope, title)
    table, counts = load_writers(), Counter[str]()
    inner = program.blocks[1:] if any(op.sub_blocks() for op in operators) else []
    missing: Counter[str] = Counter(op.type for block in inner for op in block.ops)
    for op in operators:
        if op.type not in table:
            missing[op.type] += 1
        else:
            try:
                step = Step(graph, op)
                if (out := table[op.type](step)) is not None:
                    step.give(registry.find(op.type).output_slots[0].name, out)
                counts[op.type] += 1
                continue
            except InexpressibleError as error:
                refused.append(f"{op.type} ({op.output_arg_names[0]}): {error}")
        for name in op.output_arg_names:  # so that their readers are checked as well
            graph.values[name] = _guess(graph, program.global_block().var(name))
    if missing or refused:
        unknown = [f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(missing.items())]
        raise UnsupportedError(
            f"{title}: nothing was written; CNTK lacks these operators: {'; '.join(unknown + refused)}",
            hint="choose fetches before these operators, and compute the rest outside of the model",
        )
    return graph, counts


def _list_operators(program: Program, known: Mapping[str, Ref]) -> list[Operator]:
    """Return the operators that compute the outputs from the known values."""
    operators = program.global_block().ops
    if not known:
        return [op for op in operators if op.type not in _PORTS]
    wanted = {name for op in operators if op.type == "fetch" for name in op.input_arg_names}
    found = []
    for op in reversed(operators):
        if op.type not in _PORTS and not (wanted - known.keys()).isdisjoint(op.output_arg_names):
            found.append(op)
            wanted.update(op.input_arg_names)
    return found[::-1]


def _guess(graph: Graph, variable: Variable) -> Ref:
    """Return a variable as a value, judged by its declaration in the program."""
    shape = list(variable.shape)
    dynamic = shape[:1] == [-1]
    static = tuple(max(dim, 1) for dim in (shape[1:] if dynamic else shape))
    return Ref(graph, variable.name, static, dynamic, variable.lod_level > 0, numpy_dtype(variable.dtype))


def _add_inputs(graph: Graph, program: Program, inputs: list[str]) -> list[str]:
    """Add the inputs; return the reasons why some cannot be added."""
    refused = []
    for name in inputs:
        variable = program.global_block().var(name)
        ref = _guess(graph, variable)
        if -1 in variable.shape[1:] or variable.lod_level > 1:
            refused.append(f"input {name} of shape {list(variable.shape)}, {variable.lod_level} LoD levels")
        graph.values[name] = graph.add_input(name, ref)
    return refused


def _add_parameters(graph: Graph, program: Program, inputs: list[str], scope: Scope, title: str) -> None:
    read = {name for op in program.global_block().ops for name in op.input_arg_names}
    for variable in program.list_vars():
        name = variable.name
        if not variable.persistable or name in (*_PORTS, *inputs, *graph.values) or name not in read:
            continue
        trained = isinstance(variable, Parameter) and bool(variable.trainable)
        graph.values[name] = graph.add_array(name, read_parameter(scope, name, title), trained=trained)


def _find_refs(graph: Graph, outputs: list[str]) -> list[Ref]:
    missing = [name for name in outputs if name not in graph.values]
    if missing:
        raise UnsupportedError(
            f"export_cntk: no operator that CNTK can express computes {', '.join(missing)}"
        )
    return [graph.values[name] for name in outputs]


def make_function(graph: Graph, outputs: Sequence[Ref]) -> dict[str, Any]:
    """Return the dictionary of a function with one output, or with a tuple of several."""
    root, mark, index = outputs[0].uid.rpartition("_Output_")
    if len(outputs) > 1 or not mark or index != "0":
        root = graph.take_uid("Combine")
        graph.add("Combine", list(outputs), shape=[], uid=root)
    _keep_needed(graph, root)
    return {
        "version": SizeT(3),
        "type": COMPOSITE,
        "uid": graph.take_uid("CompositeFunction"),
        "root": root,
        "inputs": graph.leaves,
        "primitive_functions": graph.functions,
    }


def _keep_needed(graph: Graph, root: str) -> None:
    """Drop the functions and leaves that the last function does not need."""
    by_uid = {one["uid"]: one for one in graph.functions}
    needed, pending = set(), [root]
    while pending:
        uid = pending.pop()
        if uid in needed:
            continue
        needed.add(uid)
        one = by_uid.get(uid, {"inputs": ()})
        for name in (*one["inputs"], *one.get(f"{_BLOCK}_arguments_map_values", ())):
            needed.add(name)
            pending.append(name.rpartition("_Output_")[0])
        pending += [one[_BLOCK]["root"]] if _BLOCK in one else []
    graph.functions = [one for one in graph.functions if one["uid"] in needed]
    graph.leaves = [one for one in graph.leaves if one["uid"] in needed or one["kind"] == 0]


def write_files(file: Path, *trees: Mapping[str, Any]) -> int:
    """Write a model and, if given, the state of its training beside it, all or none; return their bytes.

    Raises SaveError when a file cannot be written.
    """
    directory, name = os.path.split(os.fspath(file))
    if not name:
        raise SaveError(
            f"{os.fspath(file)!r} names no file for CNTK", hint="end the path with a name, such as model.cmf"
        )
    contents = {f"{name}{end}": encode(tree) for end, tree in zip(("", ".ckp"), trees, strict=False)}
    write_all(directory or ".", {name: [data] for name, data in contents.items()})
    return sum(map(len, contents.values()))
