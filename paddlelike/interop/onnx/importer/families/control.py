"""Branches and loops: graphs inside a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.foundation.warn import warn_user
from paddlelike.framework import Variable
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.tensor.lists import copy_array
from paddlelike.interop.onnx.importer.graph import Typed, Value
from paddlelike.interop.onnx.importer.node import Node, reads
from paddlelike.interop.reader_tables import InexpressibleError

if TYPE_CHECKING:
    from onnx import GraphProto, ValueInfoProto

_MOST_TURNS: Final = 10_000_000  # of a loop without a limit
_DIRECTIONS: Final = ("input_directions", "output_directions", "input_axes", "output_axes")


def _read_graph(node: Node, proto: GraphProto, given: list[Value]) -> list[Value]:
    """Append the nodes of an inner graph to the current block, and return the graph's outputs."""
    from paddlelike.interop.onnx.importer.build import convert_nodes
    from paddlelike.interop.onnx.importer.file import read_array

    graph = node.graph
    graph.push()
    try:
        for port, value in zip(proto.input, given, strict=True):
            graph.values[port.name] = value
        for tensor in proto.initializer:
            graph.known[tensor.name] = read_array(tensor, None)
        refused = convert_nodes(graph, proto.node)
        if refused:
            raise InexpressibleError("; ".join(refused))
        return [graph.find(port.name) for port in proto.output]
    finally:
        graph.pop()


@reads("If")
def _read_if(node: Node) -> None:
    from paddlelike.layers.control.branches import cond

    known = node.find_known(0)
    branches = [node.attr("then_branch"), node.attr("else_branch")]
    if known is not None:
        for index, value in enumerate(_read_graph(node, branches[0 if known.all() else 1], [])):
            node.alias(value, index)
        return
    scalars: list[bool] = []

    def build(proto: GraphProto) -> list[Variable]:
        found = _read_graph(node, proto, [])
        scalars[:] = [value.scalar for value in found]
        return [node.graph.variable(value.name) for value in found]

    predicate = node.input().reshape(1).variable
    outs = cond(predicate, lambda: build(branches[0]), lambda: build(branches[1]))
    for index, (out, scalar) in enumerate(zip(outs, scalars, strict=True)):
        typed = node.graph.typed.get(node.proto.output[index])
        if typed is not None and typed.dims:
            out.shape = typed.dims
        node.alias(Value(out.name, scalar), index)


@reads("Loop")
def _read_loop(node: Node) -> None:
    """Read a loop; carried values are variables, and scan outputs are collected in an array."""
    carried = [node.value(index) for index in range(2, node.count)]
    turn, limit, going = _start(node)
    given = [Value(turn.name, True), Value(going.name, True)]
    _run(node, _Turns(turn, limit, going), carried, lambda: given, leads=1)


@reads("Scan")
def _read_scan(node: Node) -> None:
    """Read a loop over the rows of some inputs."""
    if node.opset < 9 or any(any(node.attr(f"scan_{name}") or []) for name in _DIRECTIONS):
        node.refuse("it runs backwards, or along another dim than the first one")
    count = node.attr("num_scan_inputs")
    carried = [node.value(index) for index in range(node.count - count)]
    sources = range(node.count - count, node.count)
    size = node.input(sources[0]).dims_at_run().slice(0, 0, 1)
    turn, _, going = _start(node, limit=size)

    def cut() -> list[Value]:
        rows = []
        for index in sources:
            row = node.emit("index_select", {"X": node.input(index), "Index": turn.name}, dim=0)
            is_scalar = node.rank(index) == 1
            rows.append(Value((row if is_scalar else row.squeeze(0)).name, is_scalar))
        return rows

    _run(node, _Turns(turn, size, going), carried, cut, leads=0)


class _Turns(NamedTuple):
    """The index of the iteration, the limit of iterations, and the condition."""

    turn: Variable
    limit: Expression | None
    going: Variable


def _run(
    node: Node, turns: _Turns, carried: list[Value], find_more: Callable[[], list[Value]], *, leads: int
) -> None:
    """Append a loop. The body of Loop has two more inputs before the carried ones and one more output; the
    body of Scan has rows of its inputs after them.
    """
    from paddlelike.layers.control.loops import While
    from paddlelike.layers.control.tensor_array import array_write, create_array
    from paddlelike.layers.tensor.assign import assign

    graph, body, count = node.graph, node.attr("body"), len(carried)
    states = [
        copy_array(one) if one.type == VarType.LOD_TENSOR_ARRAY else assign(one)
        for one in (graph.variable(value.name) for value in carried)
    ]
    arrays = [create_array(_find_dtype(graph.typed, port)) for port in body.output[leads + count :]]
    turn, limit, going = turns
    with While(going, is_test=True).block():
        more = find_more()
        inner = [Value(state.name, value.scalar) for state, value in zip(states, carried, strict=True)]
        outs = _read_graph(node, body, more + inner if leads else inner + more)
        own = {state.name for state in states}  # assigned to below, one after the other
        found = [
            node.emit("assign", out.name).variable if out.name in own else graph.variable(out.name)
            for out in outs
        ]
        for array, out in zip(arrays, found[leads + count :], strict=True):
            array_write(out, turn, array)
        for state, out in zip(states, found[leads : leads + count], strict=True):
            out.block.append_op(type="assign", inputs={"X": [out]}, outputs={"Out": [state]})
        next_turn = Expression(graph, turn.name) + node.constant([1], np.int64)
        assign(next_turn.variable, turn)
        still = Expression(graph, outs[0].name).reshape(1) if leads else None
        if limit is not None:
            below = node.emit("less_than", turn.name, limit, axis=-1)
            still = below if still is None else node.emit("logical_and", still, below)
        assert still is not None
        assign(still.variable, going)
    for index, (state, value) in enumerate(zip(states, carried, strict=True)):
        typed = graph.typed.get(node.proto.output[index]) if node.wants(index) else None
        if typed is not None and typed.dims:
            state.shape = typed.dims
        node.alias(Value(state.name, value.scalar), index)
    for index, array in enumerate(arrays):
        if node.wants(count + index):
            node.give(_join(node, array, outs[leads + count + index]), count + index)


def _start(node: Node, limit: Expression | None = None) -> _Turns:
    """Append the operators before a loop."""
    turn = node.emit("fill_constant", shape=[1], value=0.0, dtype=int(VarType.INT64)).variable
    if node.type == "Loop" and node.has(0):
        limit = node.input(0).reshape(1)
    elif node.type == "Loop":
        limit = node.constant([_MOST_TURNS], np.int64)
        warn_user(
            f"Loop {node.proto.name!r:.60} has no limit of iterations: here it ends after {_MOST_TURNS:,}, "
            "whatever its condition is"
        )
    if node.type == "Loop" and node.has(1):
        going = node.input(1).reshape(1)
    else:
        going = node.emit("fill_constant", shape=[1], value=1.0, dtype=int(VarType.BOOL))
    if limit is not None:
        going = node.emit("logical_and", going, node.emit("less_than", turn.name, limit, axis=-1))
    else:
        going = node.emit("assign", going)
    return _Turns(turn, limit, going.variable)


def _find_dtype(typed: Mapping[str, Typed], port: ValueInfoProto) -> str:
    found = typed.get(port.name)
    return "float32" if found is None or found.dtype is None else numpy_dtype(found.dtype).name


def _join(node: Node, array: Variable, out: Value) -> Expression:
    """Stack the values that the iterations of a loop added."""
    joined = node.emit("tensor_array_to_tensor", array.name, axis=0, use_stack=not out.scalar)
    variable = joined.variable
    if not variable.shape:
        variable.shape = (-1,)
    return joined
