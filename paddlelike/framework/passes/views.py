"""Data flow of a program: variables that operators read and write, needed operators, a networkx graph."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from paddlelike.core import VarType
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator, OpRole
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import variable_kind

if TYPE_CHECKING:
    import networkx as nx


def has_updates(program: Program) -> bool:
    """Return whether a program updates parameters."""
    return any(op.attrs.get("op_role", 0) & OpRole.Optimize for op in program.global_block().ops)


def collect_reads(op: Operator) -> set[str]:
    """Return the variables an operator reads, including those that its blocks read."""
    names = set(op.input_arg_names)
    for index in op.sub_blocks():
        for inner in op.block.program.blocks[index].ops:
            names |= collect_reads(inner)
    return names


def collect_writes(op: Operator) -> set[str]:
    """Return the variables an operator writes, including those that its blocks write."""
    names = set(op.output_arg_names)
    for index in op.sub_blocks():
        for inner in op.block.program.blocks[index].ops:
            names |= collect_writes(inner)
    return names


def collect_uses(op: Operator) -> set[str]:
    """Return the variables that an operator or its blocks read or write."""
    return collect_reads(op) | collect_writes(op)


def collect_overwritten(op: Operator) -> set[str]:
    """Return the outer tensors that a ``while`` operator, or its gradient, reads and then overwrites.

    Counters that an ``increment`` changes are left out: the gradient of the increment reverts it.
    """
    inputs = op.input("X") or op.input("Input")
    outputs = op.output("Out") or op.input("Out")  # an input of the gradient operator
    names = set(inputs) & set(outputs) - _collect_counters(op)
    arrays = (VarType.LOD_TENSOR_ARRAY, VarType.LOD_RANK_TABLE, VarType.STEP_SCOPES)
    found = {name: op.block._find_var_recursive(name) for name in names}
    return {name for name, variable in found.items() if variable is None or variable.type not in arrays}


def _collect_counters(op: Operator) -> set[str]:
    if op.type == "increment":
        return set(op.output_arg_names)
    blocks = (op.block.program.blocks[index] for index in op.sub_blocks())
    return {name for block in blocks for inner in block.ops for name in _collect_counters(inner)}


def build_graph(program: Program) -> nx.DiGraph[Any]:
    """Return operators and variables as nodes, data flow as edges.

    An operator is the node ``(block index, index in the block)`` with attributes ``kind="operator"``,
    ``type`` and ``role``; a variable is the node of its name with ``kind`` (parameter, persistable or
    temporary), ``shape`` and ``dtype``.
    """
    import networkx as nx

    graph: nx.DiGraph[Any] = nx.DiGraph()
    for variable in program.list_vars():
        graph.add_node(
            variable.name,
            kind=variable_kind(variable),
            shape=tuple(variable.shape),
            dtype=variable.dtype.name,
        )
    for block in program.blocks:
        for index, op in enumerate(block.ops):
            node = (block.idx, index)
            graph.add_node(node, kind="operator", type=op.type, role=op.attrs.get("op_role", 0))
            graph.add_edges_from((name, node) for name in op.input_arg_names)
            graph.add_edges_from((node, name) for name in op.output_arg_names)
    return graph


def find_needed_ops(
    block: Block, *, targets: set[str], fed: set[str], kept: Collection[Operator] = ()
) -> set[int]:
    """Return the indexes of the operators of ``block`` on which ``targets`` and the operators ``kept``
    depend.

    An operator needs every earlier operator that writes a variable it reads, unless the variable is fed.
    """
    needed: set[int] = set()
    wanted = targets - fed
    for index, op in reversed(list(enumerate(block.ops))):
        if op.is_target or op in kept or not wanted.isdisjoint(collect_writes(op)):
            needed.add(index)
            wanted |= collect_reads(op) - fed
    return needed
