"""Read an ONNX model as a program for prediction, its parameters in a scope.

Format: https://onnx.ai/onnx/repo-docs/IR.html; operators: https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike import unique_name
from paddlelike.core import LoDTensor, Scope, global_scope, numpy_dtype
from paddlelike.errors import EnforceNotMet, FormatError, GraphError, PaddlelikeError, UnsupportedError
from paddlelike.foundation.near_names import suggest_names
from paddlelike.framework import Program, program_guard
from paddlelike.interop.onnx.extra import import_onnx_package
from paddlelike.interop.onnx.importer.axes import branch_by_axes
from paddlelike.interop.onnx.importer.definitions import inline_definitions, walk
from paddlelike.interop.onnx.importer.file import ELEMENT_TYPES, parse_model, read_array, read_model
from paddlelike.interop.onnx.importer.folding import fold
from paddlelike.interop.onnx.importer.graph import Graph, Typed, Value
from paddlelike.interop.onnx.importer.node import Node, load_table
from paddlelike.interop.reader_tables import InexpressibleError
from paddlelike.io.export.program import make_inference_program
from paddlelike.storage.problems import raises_own_errors

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

    from paddlelike.core import Array

Path = str | os.PathLike[str]

_DOMAINS: Final = {"": "", "ai.onnx": "", "ai.onnx.ml": "ai.onnx.ml."}
#: Errors that a function of the table raises for a damaged model.
_DAMAGE: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


@raises_own_errors
def import_onnx(
    file: Path | bytes, *, scope: Scope | None = None, values: Mapping[str, ArrayLike] | None = None
) -> list[Any]:
    """Read an ONNX model: ``[program, feed names, fetch variables]``, as ``load_inference_model`` returns.

    The values of the parameters go into the scope, all of them or none. Real-valued initializers become
    parameters under their own names and can be trained; the program can be saved by ``save_inference_model``,
    cut, cloned, and exported again. Dims with a name or without a size become -1.

    A value without dims gets one dim of length 1, as Fluid requires. For text labels, a scikit-learn
    classifier returns indices; its probabilities are a matrix instead of a list of dicts.

    Parameters
    ----------
    file
        Path of the model, or its bytes. External data is read from files in the model's own directory.
    scope
        The scope that receives the parameters; None for the global scope.
    values
        Values of inputs that are the same at every run, by name: sizes, axes, weights. The program does not
        feed them. Some operators need such values when the program is built.

    Returns
    -------
    list
        The program, the names of its feeds, and its fetch variables.

    Raises
    ------
    ValueError
        ``values`` names something that is not an input of the model.
    MissingFileError
        The file, or one with its external data, does not exist.
    FormatError
        It is not an ONNX model, or damaged.
    UnsupportedError
        The model holds operators that a program cannot express; it lists all of them.
    ExtraMissingError
        onnx is not installed.

    See Also
    --------
    fluid.export_cntk, fluid.export_cntk_checkpoint, fluid.import_cntk, fluid.import_cntk_checkpoint
    fluid.export_onnx

    >>> import tempfile
    >>> import numpy as np
    >>> import paddlelike as fluid
    >>> from onnx import helper
    >>> x = helper.make_tensor_value_info("x", 1, ["batch", 3])
    >>> y = helper.make_tensor_value_info("y", 1, ["batch", 3])
    >>> graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "small", [x], [y])
    >>> model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    >>> program, feeds, fetches = fluid.import_onnx(model.SerializeToString())
    >>> rows = np.array([[-1, 0, 2]], "float32")
    >>> fluid.Executor().run(program, feed={feeds[0]: rows}, fetch_list=fetches)[0].tolist()
    [[0.0, 0.0, 2.0]]
    """
    import_onnx_package("import_onnx")
    where = "the model" if isinstance(file, bytes) else os.fspath(file)
    model = parse_model(file, where) if isinstance(file, bytes) else read_model(where)
    directory = None if isinstance(file, bytes) else os.path.dirname(os.path.abspath(where))
    try:
        _fix_inputs(model, values or {})
        model = _prepare(model, where, directory)
        program = Program()
        graph = Graph(program, _find_opsets(model), _infer_types(model))
        with unique_name.guard(), program_guard(program, Program()):
            feeds = _read_ports(graph, model, directory)
            _check_types(model, load_table())
            refused = convert_nodes(graph, model.graph.node)
            if refused:
                _refuse(Counter(), refused, model)
            fetches = _make_outputs(graph, model, feeds)
        made = make_inference_program(program, list(feeds), fetches)
    except PaddlelikeError:
        raise
    except _DAMAGE as error:
        raise FormatError(f"{where} is damaged: {type(error).__name__}: {error!s:.200}") from error
    _restore_parameters(made, program)
    scope = global_scope() if scope is None else scope
    block = made.global_block()
    for name, array in graph.parameters.items():
        if block.has_var(name):
            scope.var(name).set_value(_make_tensor(array))
    return [made, feeds, [block.var(name) for name in fetches]]


# The model


def _list_inputs(model: ModelProto) -> dict[str, Typed]:
    """Return the inputs that must be fed."""
    held = {tensor.name for tensor in model.graph.initializer}
    return {port.name: _read_type(port) for port in model.graph.input if port.name not in held}


def _fix_inputs(model: ModelProto, values: Mapping[str, ArrayLike]) -> None:
    """Turn inputs with given values into initializers."""
    from onnx import numpy_helper

    inputs = _list_inputs(model)
    for name, value in values.items():
        if name not in inputs:
            near = suggest_names(name, inputs, lead="; ")
            raise ValueError(f"values names {name!r}, which is not one of the inputs {[*inputs]}{near}")
        dtype = inputs[name].dtype
        array = np.asarray(value, None if dtype is None else numpy_dtype(dtype))
        model.graph.initializer.append(numpy_helper.from_array(array, name))


def _prepare(model: ModelProto, where: str, directory: str | None) -> ModelProto:
    """Return the checked model, in which functions replace the nodes that call them."""
    from onnx import checker, inliner

    external = any(tensor.data_location == tensor.EXTERNAL for tensor in model.graph.initializer)
    model.ir_version = max(model.ir_version, 4)  # keras2onnx declares 3, yet its initializers are not inputs
    try:
        checker.check_model(where if external and directory is not None else model)
    except (checker.ValidationError, ValueError) as error:
        if external:  # the reasons of convert_nodes are better
            for tensor in model.graph.initializer:
                read_array(tensor, directory)
        raise FormatError(f"{where} is not a valid ONNX model: {error!s:.300}") from None
    if model.graph.sparse_initializer:
        raise UnsupportedError(f"{where} holds sparse initializers, which no Paddle variable can hold")
    if model.functions:
        model = inliner.inline_local_functions(model)
    table = load_table()
    unknown = {(node.domain, node.op_type) for node in walk(model.graph) if _find_key(node) not in table}
    standard = [each for each in sorted(unknown) if each[0] in ("", "ai.onnx")]
    if standard and not external:
        return inline_definitions(model, {kind for _, kind in standard}, _find_opsets(model).get("", 1))
    return model


def _find_key(node: NodeProto) -> str:
    """Return the key of a node's operator in the table."""
    return f"{_DOMAINS.get(node.domain, f'{node.domain}::')}{node.op_type}"


def _find_opsets(model: ModelProto) -> dict[str, int]:
    return {"" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import}


def _infer_types(model: ModelProto) -> dict[str, Typed]:
    """Return the element type and dims of every value, as ONNX infers them."""
    from onnx import shape_inference

    try:
        model = shape_inference.infer_shapes(model, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        try:
            model = shape_inference.infer_shapes(model)
        except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
            raise FormatError(f"the shapes of the model do not fit: {error!s:.300}") from None
    found: dict[str, Typed] = {}
    _collect_types(model.graph, found)
    return found


def _collect_types(graph: GraphProto, found: dict[str, Typed]) -> None:
    for port in (*graph.input, *graph.output, *graph.value_info):
        found[port.name] = _read_type(port)
    for node in graph.node:
        for attr in node.attribute:
            for inner in (*([attr.g] if attr.HasField("g") else []), *attr.graphs):
                _collect_types(inner, found)


def _read_type(port: ValueInfoProto) -> Typed:
    of_list = port.type.HasField("sequence_type")
    tensor = (port.type.sequence_type.elem_type if of_list else port.type).tensor_type
    dtype = ELEMENT_TYPES.get(tensor.elem_type)
    if of_list or not tensor.HasField("shape"):
        return Typed(dtype, None)
    dims = (
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else -1 for dim in tensor.shape.dim
    )
    return Typed(dtype, tuple(dims))


def _say_odd_type(port: ValueInfoProto) -> str:
    """Return the type of an input that no variable of a program can hold, in words."""
    kind = port.type.WhichOneof("value")
    if kind != "tensor_type":
        return f"is of {kind or 'no type'}, expected tensor_type"
    element = port.type.tensor_type.elem_type
    types = import_onnx_package("import_onnx").TensorProto.DataType
    name = types.Name(element) if element in types.values() else f"element type {element}"
    return f"is of {name}, which variables of a program cannot hold"


# The program


def _read_ports(graph: Graph, model: ModelProto, directory: str | None) -> list[str]:
    """Record the initializers, and create the data variables of the inputs; return these."""
    for tensor in model.graph.initializer:
        with contextlib.suppress(UnsupportedError):  # of texts: operators that read it are refused
            graph.known[tensor.name] = read_array(tensor, directory)
    graph.initializers = held = {tensor.name for tensor in model.graph.initializer}
    feeds = []
    for port in model.graph.input:
        if port.name in held:
            continue
        typed = _read_type(port)
        if typed.dtype is None or typed.dims is None:
            raise UnsupportedError(
                f"import_onnx: input {port.name!r:.80} {_say_odd_type(port)}",
                hint="cut the model behind it by onnx.utils.extract_model, or give it another type there",
            )
        name = graph.take_name(port.name)
        graph.program.global_block().create_var(
            name=name,
            shape=typed.dims or (1,),
            dtype=numpy_dtype(typed.dtype),
            is_data=True,
            need_check_feed=True,
            stop_gradient=True,
        )
        graph.values[port.name] = Value(name, scalar=not typed.dims)
        feeds.append(name)
        graph.trusted.add(port.name)
    return feeds


def _check_types(model: ModelProto, table: Mapping[str, Any]) -> None:
    """Raise UnsupportedError if the table lacks operators of the model."""
    missing = Counter(_find_key(node) for node in walk(model.graph))
    for known in (*table, "Constant"):
        missing.pop(known, None)
    if missing:
        _refuse(missing, [])


def _refuse(missing: Counter[str], refused: list[str], model: ModelProto | None = None) -> None:
    hint = "cut the model before these operators by onnx.utils.extract_model, and compute the rest outside"
    inputs = {} if model is None else _list_inputs(model)
    small = [name for name, typed in inputs.items() if typed.dims is not None and len(typed.dims) < 2]
    if small and refused:
        given = ", ".join(f"{name!r}: ..." for name in small)
        hint = f"give inputs that are the same at every run: import_onnx(file, values={{{given}}}); or {hint}"
    unknown = [f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(missing.items())]
    raise UnsupportedError(
        "import_onnx: nothing was read; these operators are not supported in programs: "
        + "; ".join(unknown + refused),
        hint=hint,
    )


def convert_nodes(graph: Graph, nodes: Iterable[NodeProto]) -> list[str]:
    """Translate nodes in order; return the reasons why some cannot be expressed."""
    table = load_table()
    refused: list[str] = []
    lost: set[str] = set()
    for proto in nodes:
        if lost.intersection(proto.input):
            lost.update(proto.output)
            continue
        node = Node(graph, proto)
        graph.producers.update(dict.fromkeys(proto.output, proto))
        try:
            if fold(node):
                continue
            if (branches := branch_by_axes(node)) is not None:
                refused += convert_nodes(graph, branches)
            elif (out := table[_find_key(proto)](node)) is not None:
                node.give(out)
        except (EnforceNotMet, GraphError, InexpressibleError) as error:
            if isinstance(error, FormatError):
                raise
            reason = getattr(error, "message", None) or str(error)
            refused.append(f"{proto.op_type} ({proto.name or proto.output[0]}): {reason:.300}")
            lost.update(proto.output)
    return refused


def _make_outputs(graph: Graph, model: ModelProto, feeds: list[str]) -> list[str]:
    """Return the variable of each output, under the output's own name."""
    block = graph.program.global_block()
    alone = len(graph.program.blocks) == 1  # a loop's block may read the variable by its name
    found: list[str] = []
    for port in model.graph.output:
        value = graph.find(port.name)
        name = graph.take_name(port.name)
        variable = graph.variable(value.name)
        if variable.persistable or value.name in feeds or value.name in found or not alone:
            out = block.create_var(name=name, dtype=variable.dtype, shape=variable.shape)
            block.append_op(type="assign", inputs={"X": [variable]}, outputs={"Out": [out]})
            out.shape = variable.shape
        else:
            block._rename_var(value.name, name)
            _rename_values(graph, value.name, name)
        found.append(name)
    return found


def _rename_values(graph: Graph, old: str, new: str) -> None:
    for key, value in graph.values.items():
        if value.name == old:
            graph.values[key] = value._replace(name=new)


def _restore_parameters(made: Program, program: Program) -> None:
    """Restore the parameters, which a program for prediction holds as plain variables."""
    block = made.global_block()
    order = list(block.vars)
    for parameter in program.global_block().all_parameters():
        if block.has_var(parameter.name):
            block._remove_var(parameter.name)
            block.create_parameter(
                name=parameter.name,
                shape=parameter.shape,
                dtype=parameter.dtype,
                trainable=parameter.trainable,
                stop_gradient=parameter.stop_gradient,
            )
    block.vars = {name: block.vars[name] for name in order}


def _make_tensor(array: Array) -> LoDTensor:
    tensor = LoDTensor()
    tensor.adopt(array)
    return tensor
