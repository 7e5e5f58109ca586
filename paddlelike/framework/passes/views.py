"""Networkx views of a program: who computes what, and what a target needs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from paddlelike.core.dtypes import VarType
from paddlelike.framework.graph.block import Block
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import variable_kind

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["build_graph", "collect_overwritten", "collect_reads", "collect_writes", "find_needed_ops"]


def collect_reads(op: Operator) -> set[str]:
    """The variables an operator reads, those of the blocks it runs included."""
    names = set(op.input_arg_names)
    for index in op.sub_blocks():
        for inner in op.block.program.blocks[index].ops:
            names |= collect_reads(inner)
    return names


def collect_writes(op: Operator) -> set[str]:
    """The variables an operator writes, those of the blocks it runs included."""
    names = set(op.output_arg_names)
    for index in op.sub_blocks():
        for inner in op.block.program.blocks[index].ops:
            names |= collect_writes(inner)
    return names


def collect_overwritten(op: Operator) -> set[str]:
    """The tensors around the block of a ``while``, or of its gradient, that it reads and then overwrites.

    Counters that an ``increment`` moves on are left out: their gradient takes the step back.
    """
    taken = op.input("X") or op.input("Input")
    given = op.output("Out") or op.input("Out")  # the gradient of the operator takes it
    names = set(taken) & set(given) - _counters(op)
    arrays = (VarType.LOD_TENSOR_ARRAY, VarType.LOD_RANK_TABLE, VarType.STEP_SCOPES)
    found = {name: op.block._find_var_recursive(name) for name in names}
    return {name for name, variable in found.items() if variable is None or variable.type not in arrays}


def _counters(op: Operator) -> set[str]:
    if op.type == "increment":
        return set(op.output_arg_names)
    blocks = (op.block.program.blocks[index] for index in op.sub_blocks())
    return {name for block in blocks for inner in block.ops for name in _counters(inner)}


def build_graph(program: Program) -> nx.DiGraph[Any]:
    """Operators and variables as nodes, data flow as edges.

    An operator is the node ``(block, place)`` with attributes ``kind="operator"`` and ``type``; a
    variable is the node of its name with ``kind`` parameter, persistable or temporary, ``shape``, ``dtype``.
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
        for place, op in enumerate(block.ops):
            node = (block.idx, place)
            graph.add_node(node, kind="operator", type=op.type, role=op.attrs.get("op_role", 0))
            graph.add_edges_from((name, node) for name in op.input_arg_names)
            graph.add_edges_from((node, name) for name in op.output_arg_names)
    return graph


def find_needed_ops(
    block: Block, *, targets: set[str], fed: set[str], kept: Collection[Operator] = ()
) -> set[int]:
    """The places of the operators of ``block`` that ``targets`` and the operators ``kept`` need.

    An operator needs every earlier writer of each variable it reads; a fed variable needs nobody.
    """
    needed: set[int] = set()
    wanted = targets - fed
    for place, op in reversed(list(enumerate(block.ops))):
        if op.is_target or op in kept or not wanted.isdisjoint(collect_writes(op)):
            needed.add(place)
            wanted |= collect_reads(op) - fed
    return needed
