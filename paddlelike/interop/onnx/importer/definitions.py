"""Replace operators by their definitions in ONNX: https://onnx.ai/onnx/intro/concepts.html#functions."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TypeProto

#: The domain of definitions that are written into the model before they replace nodes.
_DOMAIN: Final = "paddlelike.definitions"


def walk(graph: GraphProto) -> Iterator[Any]:
    """Yield the nodes of a graph and of the graphs inside them."""
    for node in graph.node:
        yield node
        for inner in _inner_graphs(node):
            yield from walk(inner)


def _inner_graphs(node: NodeProto) -> Iterator[GraphProto]:
    for attr in node.attribute:
        yield from [attr.g] if attr.HasField("g") else attr.graphs


def inline_definitions(model: ModelProto, kinds: Collection[str], opset: int) -> ModelProto:
    """Replace nodes of the given operators by the definitions that ONNX has of them, if any, and return
    the model.
    """
    from onnx import inliner

    _write_defaults(model, kinds, opset)
    if _write_functions(model, kinds, opset):
        model = inliner.inline_local_functions(model)
    with contextlib.suppress(RuntimeError):  # a type is missing: the operators are refused by name
        model = inliner.inline_selected_functions(
            model, [("", kind) for kind in kinds], inline_schema_functions=True
        )
    return model


def _write_defaults(model: ModelProto, kinds: Collection[str], opset: int) -> None:
    """Set the missing attributes of nodes of these types, because the inliner adds no defaults."""
    from onnx import defs

    for node in walk(model.graph):
        if node.op_type not in kinds or node.domain not in ("", "ai.onnx"):
            continue
        with contextlib.suppress(defs.SchemaError):
            schema = defs.get_schema(node.op_type, opset, "")
            given = {attr.name for attr in node.attribute}
            for name, attr in schema.attributes.items():
                if name not in given and attr.default_value.name:
                    node.attribute.append(attr.default_value)


def _write_functions(model: ModelProto, kinds: Collection[str], opset: int) -> bool:
    """Turn nodes with a missing input into calls of functions of the model; return whether there were any.

    ONNX's inliner needs the type of every input, even a missing one.
    """
    from onnx import FunctionProto, TypeProto, defs, helper, shape_inference

    nodes = [
        node
        for node in walk(model.graph)
        if node.op_type in kinds and node.domain in ("", "ai.onnx") and not all(node.input)
    ]
    if not nodes:
        return False
    types: dict[str, TypeProto] = {}
    with contextlib.suppress(shape_inference.InferenceError, RuntimeError, ValueError):
        _collect_types(shape_inference.infer_shapes(model).graph, types)
    count = len(model.functions)
    for node in nodes:
        schema: Any = defs.get_schema(node.op_type, opset, "")
        given = [types.get(name, TypeProto()).SerializeToString() for name in node.input]
        for version in reversed(schema.context_dependent_function_opset_versions):
            if version > opset:
                continue
            made = schema.get_context_dependent_function_with_opset_version(
                version, node.SerializeToString(), given
            )
            function = FunctionProto.FromString(made)
            function.domain, function.name = _DOMAIN, f"{node.op_type}_{len(model.functions)}"
            node.domain, node.op_type = function.domain, function.name
            model.functions.append(function)
            break
    if len(model.functions) == count:
        return False
    model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    return True


def _collect_types(graph: GraphProto, found: dict[str, TypeProto]) -> None:
    for port in (*graph.input, *graph.value_info, *graph.output):
        found[port.name] = port.type
    for tensor in graph.initializer:
        from onnx import helper

        found.setdefault(tensor.name, helper.make_tensor_type_proto(tensor.data_type, tensor.dims))
    for node in graph.node:
        for inner in _inner_graphs(node):
            _collect_types(inner, found)
