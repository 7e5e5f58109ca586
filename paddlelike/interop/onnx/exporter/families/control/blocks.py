"""Branches and loops: blocks of the program as graphs inside a node.

A value of a graph is written once. An assignment in a block to a variable of an outer block is a new value
that the node returns: an output of ``If`` for a branch, a carried value of ``Loop`` for a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.core import VarType, dtype_row, numpy_dtype
from paddlelike.framework import Block, Variable
from paddlelike.interop.onnx.exporter.graph import Graph, Step, Value, converts
from paddlelike.interop.onnx.exporter.traced.operator import find_converter

if TYPE_CHECKING:
    from onnx import TensorProto


def translate_block(step: Step, block: Block) -> None:
    """Append the nodes of a block to the graph; the caller has set other nodes aside."""
    for op in block.ops:
        convert = find_converter(op)
        if convert is None:
            step.refuse(f"{op.type} in its block")
        Step(step.graph, op).convert(convert)


def make_graph(
    step: Step, name: str, fill: Callable[[], Sequence[Value | str]], inputs: list[Any] | None = None
) -> tuple[Any, list[str]]:
    """Return a graph of the nodes that ``fill`` appends, and the values that ``fill`` returns."""
    from onnx import ValueInfoProto, helper

    graph = step.graph
    kept, before, held = graph.nodes, dict(graph.values), dict(graph.lengths)
    graph.nodes = []
    try:
        given = fill()
        # An output is computed by a node of the graph itself.
        outs = [graph.add("Identity", value).name for value in given]
        ports = [ValueInfoProto(name=out) for out in outs]  # tensors or sequences
        return helper.make_graph(graph.nodes, name, inputs or [], ports), outs
    finally:
        graph.nodes, graph.values, graph.lengths = kept, before, held


def _list_written(step: Step, block: Block) -> list[str]:
    """Return the variables of outer blocks that a block assigns to, and that are read afterwards."""
    names = [name for op in block.ops for name in op.output_arg_names]
    return [
        name for name in dict.fromkeys(names) if name in step.op.output("Out") and not block.has_var(name)
    ]


def find_sub_block(step: Step) -> Block:
    found = step.attr("sub_block")
    program = step.op.block.program
    return found if isinstance(found, Block) else program.block(int(found))


def _find_condition(step: Step, slot: str) -> Value:
    return step.input(slot).reshape()


def make_empty(graph: Graph, variable: Variable) -> Value:
    """Return a placeholder for a variable without a value: zeros, or an empty array, which is never read."""
    if variable.type == VarType.LOD_TENSOR_ARRAY:
        return graph.add("SequenceEmpty", dtype=dtype_row(variable.dtype).onnx)
    dims = [max(dim, 1) for dim in variable.shape]
    return graph.add("ConstantOfShape", graph.ints(*dims), value=_zero(variable))


def _zero(variable: Variable) -> TensorProto:
    from onnx import numpy_helper

    return numpy_helper.from_array(np.zeros(1, numpy_dtype(variable.dtype)))


def _check_tensors(step: Step, names: list[str]) -> None:
    for name in names:
        variable = step.op.block._var_recursive(name)
        kinds = (VarType.LOD_TENSOR, VarType.LOD_TENSOR_ARRAY)
        if variable.type not in kinds or name in step.graph.lengths:
            step.refuse(f"its block assigns to {name}, which is neither an array nor a tensor without a LoD")


@converts("conditional_block", "conditional_block_infer")
def _convert_conditional_block(step: Step) -> None:
    """Convert a conditional block; where it does not run, its variables stay unchanged."""
    if not step.attr("is_scalar_condition"):
        step.refuse("it runs where its inputs are not empty")
    block = find_sub_block(step)
    names = _list_written(step, block)
    _check_tensors(step, names)
    graph = step.graph

    def run() -> list[str]:
        translate_block(step, block)
        return [graph.values[name] for name in names]

    def stay() -> list[Value | str]:
        return [
            graph.values[name] if name in graph.values else make_empty(graph, block._var_recursive(name))
            for name in names
        ]

    (then, _), (other, _) = make_graph(step, "then", run), make_graph(step, "else", stay)
    if not names:
        return
    condition = _find_condition(step, "Cond")
    outs = graph.add_several("If", condition, count=len(names), then_branch=then, else_branch=other)
    for name, out in zip(names, outs, strict=True):
        step.give("Out", out, step.op.output("Out").index(name))


@converts("select_input")
def _convert_select_input(step: Step) -> Value:
    """Select the second input if Mask is 1, else the first; their shapes may differ."""
    first, second = step.inputs("X")
    (then, _) = make_graph(step, "then", lambda: [second])
    (other, _) = make_graph(step, "else", lambda: [first])
    condition = step.input("Mask").reshape().cast("bool")
    return step.add("If", condition, then_branch=then, else_branch=other)


@converts("while")
def _convert_while(step: Step) -> None:
    from onnx import helper

    graph, block = step.graph, find_sub_block(step)
    condition = step.op.input("Condition")[0]
    names = [name for name in _list_written(step, block) if name != condition]
    _check_tensors(step, names)
    variables = [step.op.block._var_recursive(name) for name in names]
    start = [
        graph.values[name] if name in graph.values else make_empty(graph, variable)
        for name, variable in zip(names, variables, strict=True)
    ]
    turn, going = graph.take_name("turn"), graph.take_name("going")
    inside = [graph.take_name(f"{name}.inside") for name in names]
    ports = [helper.make_tensor_value_info(turn, dtype_row(VarType.INT64).onnx, [])]
    ports.append(helper.make_tensor_value_info(going, dtype_row(VarType.BOOL).onnx, []))
    for port, variable in zip(inside, variables, strict=True):
        is_array = variable.type == VarType.LOD_TENSOR_ARRAY
        make = helper.make_tensor_sequence_value_info if is_array else helper.make_tensor_value_info
        ports.append(make(port, dtype_row(variable.dtype).onnx, None))
    first = _find_condition(step, "Condition")

    def run() -> list[str]:
        graph.values.update(zip(names, inside, strict=True))
        graph.values[condition] = graph.add("Unsqueeze", going, step.ints(0)).name
        translate_block(step, block)
        still = graph.add("Reshape", graph.values[condition], step.ints()).name
        return [still, *(graph.values[name] for name in names)]

    body, _ = make_graph(step, "body", run, ports)
    outs = graph.add_several("Loop", "", first, *start, count=len(names), body=body) if names else []
    for name, out in zip(names, outs, strict=True):
        step.give("Out", out, step.op.output("Out").index(name))


@converts("print")
def _convert_print(step: Step) -> Value:
    """Write nothing: printing is left out."""
    return step.input("In")
