"""The ONNX file: inputs, nodes, constants and outputs of a graph.

Format: https://onnx.ai/onnx/repo-docs/IR.html.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.core import Array, Scope, VarType, dtype_row
from paddlelike.errors import SaveError
from paddlelike.interop.exporting import read_parameter
from paddlelike.interop.onnx.exporter.graph import Graph
from paddlelike.storage.local.transaction import write_all
from paddlelike.storage.manifest import library_version
from paddlelike.storage.options import Durability

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto


#: Bytes of constants in one file: protobuf's limit, less the nodes.
LARGEST: Final = (1 << 31) - (1 << 24)
_SMALL: Final = 128  # bytes: numbers and axes stay in the file itself


def build_model(graph: Graph, ports: list[Any], outputs: list[str]) -> ModelProto:
    """Return the model without the values of its parameters; ``ports`` are its declared inputs."""
    from onnx import helper

    unknown = [helper.make_tensor_value_info(name, 0, None) for name in outputs]
    made = helper.make_graph(_find_needed(graph.nodes, outputs), "paddlelike", ports, unknown)
    imports = [helper.make_opsetid("", graph.opset)]
    model = helper.make_model(made, opset_imports=imports, producer_name="paddlelike")
    model.ir_version = helper.find_min_ir_version_for(imports)
    model.producer_version = library_version() or "unknown"
    return model


def _find_needed(nodes: list[Any], outputs: list[str]) -> list[Any]:
    """Return the nodes on which the outputs depend."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(find_reads([node]))
            kept.append(node)
    return kept[::-1]


def find_reads(nodes: Iterable[Any]) -> set[str]:
    """Return the values that nodes read, including those that graphs inside them read."""
    found: set[str] = set()
    for node in nodes:
        found.update(node.input)
        for attr in node.attribute:
            if attr.HasField("g"):
                found |= find_reads(attr.g.node) | {port.name for port in attr.g.output}
    return found


def describe(name: str, dtype: VarType, shape: Sequence[int | str]) -> ValueInfoProto:
    """Return the declaration of an input or output; a dim of -1 gets a name."""
    from onnx import helper

    dims = [f"{name}.dim{axis}" if dim == -1 else dim for axis, dim in enumerate(shape)]
    return helper.make_tensor_value_info(name, dtype_row(dtype).onnx, dims)


def _set_output_types(model: ModelProto, declared: Sequence[Any]) -> None:
    """Declare the outputs as ONNX infers them; otherwise as the program declares them."""
    from onnx import shape_inference

    inferred = shape_inference.infer_shapes(model)
    for port, found, ours in zip(model.graph.output, inferred.graph.output, declared, strict=True):
        known = found.type.tensor_type
        if known.elem_type and known.HasField("shape"):
            port.CopyFrom(found)
        else:
            port.type.CopyFrom(ours.type)


def collect_constants(
    graph: Graph, model: ModelProto, parameters: set[str], scope: Scope
) -> Mapping[str, Array]:
    """Return the constants that the nodes read, by name."""
    read = find_reads(model.graph.node)
    arrays = {name: value for name, value in graph.constants.items() if name in read}
    for name in sorted(parameters & read):
        arrays[name] = np.ascontiguousarray(read_parameter(scope, name, "export_onnx"))
    return arrays


def write_model(
    model: ModelProto,
    arrays: Mapping[str, Array],
    file: str,
    outputs: Sequence[Any],
    *,
    apart: bool,
    durability: Durability,
) -> None:
    """Write the model; with ``apart``, write its constants into ``<file>.data``."""
    directory, name = os.path.split(file)
    if not name:
        raise SaveError(
            f"export_onnx: {file!r} names no file", hint="end the path with a name, such as model.onnx"
        )
    pieces = declare_constants(model, arrays, f"{name}.data" if apart else None)
    _set_output_types(model, outputs)
    files: dict[str, Any] = {name: [model.SerializeToString(deterministic=True)]}
    if apart:
        files[f"{name}.data"] = [array.reshape(-1).view(np.uint8).data for array in pieces.values()]
    write_all(directory or ".", files, durability=durability)


def declare_constants(
    model: ModelProto, arrays: Mapping[str, Array], location: str | None
) -> dict[str, Array]:
    """Add constants to a model. Return the constants that are stored separately, in order.

    ``location`` is the name of the separate file, or None to put all elements into the model.
    """
    apart: dict[str, Array] = {}
    offset = 0
    for key, array in arrays.items():
        tensor = model.graph.initializer.add(
            name=key, dims=array.shape, data_type=dtype_row(array.dtype).onnx
        )
        if location is None or array.nbytes < _SMALL:
            tensor.raw_data = array.tobytes()
            continue
        tensor.data_location = tensor.EXTERNAL
        where = {"location": location, "offset": str(offset), "length": str(array.nbytes)}
        for field, text in where.items():
            tensor.external_data.add(key=field, value=text)
        apart[key] = array
        offset += array.nbytes
    return apart
