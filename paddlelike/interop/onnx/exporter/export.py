"""Write a program for prediction, with its parameters, as an ONNX model.

Format: https://onnx.ai/onnx/repo-docs/IR.html; operators: https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array, Scope, VarType, global_scope, numpy_dtype, scope_guard
from paddlelike.errors import UnsupportedError
from paddlelike.executor.run import Executor
from paddlelike.framework import Program, Variable
from paddlelike.interop.exporting import cut_program, name_damage
from paddlelike.interop.onnx.exporter.graph import Graph, Step, Value
from paddlelike.interop.onnx.exporter.model import (
    LARGEST,
    build_model,
    collect_constants,
    describe,
    write_model,
)
from paddlelike.interop.onnx.exporter.sequences import pad_rows, unpad_rows
from paddlelike.interop.onnx.exporter.traced.operator import find_converter
from paddlelike.interop.onnx.extra import import_onnx_package
from paddlelike.interop.reader_tables import InexpressibleError
from paddlelike.io.export.load import load_inference_model
from paddlelike.io.export.program import find_ports
from paddlelike.storage.options import Durability, SaveOptions
from paddlelike.storage.problems import raises_own_errors

if TYPE_CHECKING:
    from onnx import ModelProto

Path = str | os.PathLike[str]

NEWEST: Final = 18  # the version that is written by default
_OLDEST: Final = 9  # what CNTK 2.7 loads
_SEQUENCES: Final = 11  # the version that added CumSum, Range and ScatterND
_PORTS: Final = ("feed", "fetch")


class OnnxReport(NamedTuple):
    """The report of an export.

    Attributes
    ----------
    operators
        The number of translations of each of Paddle's operators.
    nodes
        The number of nodes of the graph.
    bytes
        The size of the parameters and other constants.
    """

    path: str
    opset: int
    inputs: list[str]
    outputs: list[str]
    operators: dict[str, int]
    nodes: int
    bytes: int


class Translation(NamedTuple):
    """A program as an ONNX model.

    Attributes
    ----------
    model
        The model without the values of its parameters.
    arrays
        The values of parameters and other constants.
    outputs
        The declarations of the outputs as the program has them.
    sequences
        The inputs and outputs of the program that are a batch and its lengths.
    operators
        The number of translations of each of Paddle's operators.
    """

    model: ModelProto
    arrays: Mapping[str, Array]
    outputs: list[Any]
    sequences: frozenset[str]
    operators: Counter[str]


@raises_own_errors
def export_onnx(
    source: Path | Program,
    file: Path,
    feeds: Sequence[str] | None = None,
    fetches: Sequence[Variable | str] | None = None,
    *,
    opset: int = NEWEST,
    scope: Scope | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
    external_data: bool | None = None,
    durability: Durability = SaveOptions.durability,
) -> OnnxReport:
    """Write a model for prediction as an ONNX file, all of it or nothing.

    An unknown dim (-1) gets a name, ``x.dim0`` for the first dim of ``x``, and can have any size.

    ONNX does not have LoD. An input ``x`` with sequences of rows ``(rows, ...)`` (``lod_level`` 1) becomes
    two inputs: a batch ``x`` of ``(N, T, ...)``, in which sequences begin at step 0 and are padded to T steps
    with any values, and ``x.lengths``, int64 ``(N,)``, each at least 1. An output with sequences becomes two
    outputs in the same way, padded with zeros to the longest sequence. Two levels of LoD are an error.

    Parameters
    ----------
    file
        The path of the ONNX file.
    source
        A directory of a model for prediction; or a program, whose part for prediction is taken.
    feeds, fetches
        The inputs and outputs of a program; None to take them from its feed and fetch operators.
    opset
        Version of ONNX's operators, 9 or later; CNTK 2.7 loads 9. Some operators of Paddle need a later one.
    scope
        The scope of a program's parameters; None for the global scope.
    model_filename, params_filename
        Files of the directory, as ``load_inference_model`` takes them.
    external_data
        Whether to put the parameters into a second file, ``<file>.data``; None to do so if they are too large
        for one file.
    durability
        How the files survive a power cut, as in :func:`~paddlelike.convert`.

    Returns
    -------
    OnnxReport
        The operators of the file with their counts, and the names of its inputs and outputs.

    Raises
    ------
    UnsupportedError
        The program holds operators that ONNX cannot express; the error lists all of them.
    NotInitializedError
        A parameter holds no value.
    SaveError
        The file cannot be written.
    ExtraMissingError
        onnx is not installed.
    TypeError
        ``file`` is not a path.

    >>> import tempfile
    >>> import paddlelike as fluid
    >>> main, startup = fluid.Program(), fluid.Program()
    >>> with fluid.unique_name.guard(), fluid.program_guard(main, startup):
    ...     out = fluid.layers.fc(fluid.data("x", [None, 4]), 3, act="relu")
    >>> with fluid.scope_guard(fluid.Scope()), tempfile.TemporaryDirectory() as home:
    ...     _ = fluid.Executor().run(startup)
    ...     report = fluid.export_onnx(main, f"{home}/model.onnx", ["x"], [out])
    >>> report.operators, report.inputs, report.outputs
    ({'mul': 1, 'elementwise_add': 1, 'relu': 1}, ['x'], ['fc_0.tmp_2'])
    """
    if not isinstance(file, str | os.PathLike):
        raise TypeError(
            f"export_onnx: file is {file!r}, expected the path of the new model\n"
            "  hint: export_onnx(program or directory, 'model.onnx', ['x'], [prediction])"
        )
    onnx = import_onnx_package("export_onnx")
    newest = onnx.defs.onnx_opset_version()
    if not _OLDEST <= opset <= newest:
        raise UnsupportedError(
            f"export_onnx: opset is {opset}; it can be {_OLDEST} to {newest} with onnx {onnx.__version__}"
        )
    if isinstance(source, Program):
        program = cut_program(source, feeds, fetches, "export_onnx")
        values = scope or global_scope()
    else:
        values = Scope()
        with scope_guard(values):
            program = load_inference_model(source, Executor(), model_filename, params_filename)[0]
    translation = translate(program, *find_ports(program, "the program"), values, opset)
    model, arrays = translation.model, translation.arrays
    size = sum(array.nbytes for array in arrays.values())
    apart = size > LARGEST if external_data is None else external_data
    write_model(model, arrays, os.fspath(file), translation.outputs, apart=apart, durability=durability)
    return OnnxReport(
        os.fspath(file),
        opset,
        [port.name for port in model.graph.input],
        [port.name for port in model.graph.output],
        dict(translation.operators),
        len(model.graph.node),
        size,
    )


def translate(
    program: Program, inputs: list[str], outputs: list[str], scope: Scope, opset: int = NEWEST
) -> Translation:
    """Return a program for prediction as an ONNX model.

    Raises UnsupportedError that lists everything ONNX cannot express, and NotInitializedError for a parameter
    without a value.
    """
    graph, parameters, ports, refused = _translate_operators(program, inputs, opset)
    if refused:
        missing = Counter(kind for kind, reason in refused.values() if not reason)
        unknown = [f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(missing.items())]
        reasons = [f"{kind} {reason}" for kind, reason in refused.values() if reason]
        raise UnsupportedError(
            "export_onnx: nothing was written; these operators cannot be written as ONNX: "
            + "; ".join(unknown + reasons),
            hint="choose fetches before these operators, and compute the rest outside of the model"
            if _has_jax()
            else "many operators are translated through JAX, which is not installed: "
            'pip install "paddlelike[jax]"',
        )
    given, declared = _make_outputs(graph, program, outputs)
    model = build_model(graph, ports, given)
    arrays = collect_constants(graph, model, parameters, scope)
    operators = Counter(op.type for op in program.global_block().ops if op.type not in _PORTS)
    sequences = frozenset(name for name in (*inputs, *outputs) if name in graph.lengths)
    return Translation(model, arrays, declared, sequences, operators)


def find_refused(program: Program, inputs: list[str]) -> dict[int, str]:
    """Return the operators of the outermost block that ONNX cannot express, by index, with their types."""
    refused = _translate_operators(program, inputs, NEWEST)[-1]
    found = {index: kind for index, (kind, _) in refused.items() if index >= 0}
    if len(found) < len(refused):  # some are in blocks of others
        ops = program.global_block().ops
        found |= {index: op.type for index, op in enumerate(ops) if op.sub_blocks()}
    return found


def _bind(graph: Graph, program: Program, inputs: list[str]) -> set[str]:
    """Set the values of inputs and parameters in the graph; return the parameters."""
    held = [one for one in program.list_vars() if one.persistable and one.name not in _PORTS]
    names = {one.name for one in held} - set(inputs)
    for name in (*inputs, *sorted(names)):
        graph.values[name] = graph.take_name(name)
    return names


def _translate_operators(
    program: Program, inputs: list[str], opset: int
) -> tuple[Graph, set[str], list[Any], dict[int, tuple[str, str]]]:
    """Return the graph, the parameters, the declared inputs, and :func:`_convert`."""
    graph = Graph(opset, program.paddle_version)
    parameters = _bind(graph, program, inputs)
    ports = _make_inputs(graph, program, inputs)
    graph.read = {name for block in program.blocks for op in block.ops for name in op.input_arg_names}
    return graph, parameters, ports, _convert(graph, program)


def _convert(graph: Graph, program: Program) -> dict[int, tuple[str, str]]:
    """Translate every operator. Return those that ONNX cannot express: their types and the reasons.

    Keys are indices in the outermost block, negative for other blocks. An empty reason means that ONNX lacks
    the type.
    """
    refused: dict[int, tuple[str, str]] = {}
    for op in (op for block in program.blocks[1:] for op in block.ops):
        if find_converter(op) is None:
            refused[-1 - len(refused)] = op.type, ""
    for index, op in enumerate(program.global_block().ops):
        if op.type in _PORTS:
            continue
        try:
            convert = find_converter(op)
            if convert is None:
                refused[index] = op.type, ""
                raise InexpressibleError
            with name_damage(op):
                Step(graph, op).convert(convert)
        except InexpressibleError as error:
            if str(error):
                refused[index] = op.type, f"({', '.join(op.output_arg_names[:1])}): {error}"
            for name in op.output_arg_names:  # so that their readers are checked as well
                graph.values[name] = name
    return refused


def _make_inputs(graph: Graph, program: Program, inputs: list[str]) -> list[Any]:
    """Return the declared inputs. Sequences are fed as a batch and lengths, and are cut into rows."""
    ports = []
    for name in inputs:
        variable = program.global_block().var(name)
        if variable.lod_level > 1:
            raise UnsupportedError(
                f"export_onnx: {name} has {variable.lod_level} LoD levels; a batch with lengths has one"
            )
        if variable.lod_level and graph.opset < _SEQUENCES:
            raise UnsupportedError(
                f"export_onnx: {name} has sequences, which need opset {_SEQUENCES}; opset is {graph.opset}"
            )
        if not variable.lod_level:
            ports.append(describe(name, variable.dtype, variable.shape))
            continue
        lengths = Value(graph, graph.take_name(f"{name}.lengths"))
        dims = (*(-1, -1), *variable.shape[1:])
        ports += [
            describe(name, variable.dtype, dims),
            describe(lengths.name, VarType.INT64, (f"{name}.dim0",)),
        ]
        graph.values[name] = unpad_rows(Value(graph, name), lengths).name
        graph.lengths[name] = lengths
    return ports


def _make_outputs(graph: Graph, program: Program, outputs: list[str]) -> tuple[list[str], list[Any]]:
    """Return the values of the outputs, under the outputs' own names if these are free, and their
    declarations.

    In ONNX an output must not be an input, a parameter or another output.
    """
    computed = {name for node in graph.nodes for name in node.output}
    found: list[str] = []
    declared: list[Any] = []
    given: set[str] = set()
    for name in outputs:
        if name not in graph.values:
            raise UnsupportedError(
                f"export_onnx: {name} is fetched, but no operator that ONNX can express computes it"
            )
        variable = program.global_block().var(name)
        dtype = graph.types.get(name, variable.dtype)
        lengths, value = graph.lengths.get(name), graph.values[name]
        if lengths is not None:
            zero = np.zeros((), numpy_dtype(dtype))
            padded = pad_rows(Value(graph, value), lengths, value=zero)
            _free_name(graph, name, graph.values[name])
            found.append(_name_output(graph, name, padded))
            found.append(_name_output(graph, f"{name}.lengths", lengths))
            declared.append(describe(found[-2], dtype, (-1, -1, *variable.shape[1:])))
            declared.append(describe(found[-1], VarType.INT64, (-1,)))
            continue
        again = value in given
        given.add(value)
        if value not in computed or again or name not in graph.taken:
            value = _name_output(graph, name, value)
        found.append(value)
        declared.append(describe(value, dtype, variable.shape))
    return found, declared


def _name_output(graph: Graph, name: str, value: Value | str) -> str:
    """Return a copy of a value under a name of its own."""
    graph.add("Identity", value)
    graph.nodes[-1].output[0] = named = graph.take_name(name)
    return named


def _free_name(graph: Graph, name: str, value: str) -> None:
    """Rename the rows of an output, so that its padded batch can have the name."""
    if value != name or not any(name in node.output for node in graph.nodes):
        return
    rows = graph.take_name(f"{name}.rows")
    graph.taken.discard(name)
    for node in graph.nodes:
        for names in (node.input, node.output):
            for index, one in enumerate(names):
                if one == name:
                    names[index] = rows
    graph.values.update({key: rows for key, held in graph.values.items() if held == name})


def _has_jax() -> bool:
    """Return whether JAX is installed, through which operators without rules of their own are written."""
    try:
        return find_spec("jax") is not None
    except ValueError:  # its import is blocked
        return False
