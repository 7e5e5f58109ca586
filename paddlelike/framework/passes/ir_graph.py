"""``fluid.framework.IrGraph``: a program's block 0 as a graph of operators and variables, for passes.

Each operator is a node. A variable has one node for its value before any operator writes it, and one for each
operator that writes it. A control variable has no value; it fixes the order of two operators.

:meth:`IrGraph.to_program` orders the operators like Fluid 1.8.5: an operator follows the operators whose
results it reads; otherwise the order of creation counts.

Parameters
----------
graph
    A ``core.Graph``.
for_test
    Whether the program is for inference.
name
    The name of a variable.
var_type
    The kind of a variable, such as LOD_TENSOR.
var_dtype
    The type of its elements.
shape
    Its dims.
op_type
    The type of an operator.
attrs
    The attributes of an operator, to which no defaults are added.
inputs, outputs
    The nodes of each slot: one, or a list.
op_node
    The operator that is changed.
node_in, node_out, old_input_node, new_input_node, old_output_node, new_output_node
    Nodes of the graph.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, KeysView, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from paddlelike.core import DtypeLike, VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.attributes import convert_given_attrs, infer_attr_type
from paddlelike.framework.graph.desc import OperatorDesc, ProgramDesc, VariableDesc
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Variable
from paddlelike.framework.opdef import registry
from paddlelike.framework.passes.clone import copy
from paddlelike.framework.passes.ir_nodes import CONTROL, IrNode, IrOpNode, IrVarNode

if TYPE_CHECKING:
    import networkx as nx

_Node = TypeVar("_Node", bound=IrNode[Any])


class Graph:
    """``fluid.core.Graph``: the nodes of a copy of a program; :class:`IrGraph` has the methods for passes.

    Parameters
    ----------
    desc
        The ``desc`` of a program.

    Raises
    ------
    TypeError
        ``desc`` is not the description of a program.
    """

    def __init__(self, desc: ProgramDesc) -> None:
        if not isinstance(desc, ProgramDesc):
            raise TypeError(f"core.Graph takes the desc of a Program, got {type(desc).__name__}")
        self._program = copy(cast(Program, desc._program))
        self._nodes: dict[IrNode[Any], None] = {}
        self._created = 0
        self._kept: dict[str, Any] = {}
        values: dict[str, list[IrVarNode]] = {}
        block = self._program.global_block()
        for op in block.ops:
            node = self.create_op_node(op.desc)
            for name in node.input_arg_names():
                if name not in values:
                    values[name] = [self._create_value(name)]
                _link(values[name][-1], node)
            for name in node.output_arg_names():
                values.setdefault(name, []).append(self._create_value(name))
                _link(node, values[name][-1])
        self.resolve_hazard(values)

    def _create_value(self, name: str) -> IrVarNode:
        variable = self._program.global_block().vars.get(name)
        return self._add_variable(name, None if variable is None else _copy_plain(variable))

    def _add_variable(self, name: str, variable: Variable | None) -> IrVarNode:
        self._created += 1
        node = IrVarNode(name, self._created - 1, variable)
        self._nodes[node] = None
        return node

    def create_var_node(self, desc: VariableDesc) -> IrVarNode:
        """Add a value of a variable, with a copy of its description."""
        return self._add_variable(desc.name(), _copy_plain(cast(Variable, desc._variable)))

    def create_op_node(self, desc: OperatorDesc) -> IrOpNode:
        """Add an operator without edges, with a copy of its description."""
        op = cast(Operator, desc._operator).copy_into(self._program.global_block())
        op.inputs, op.outputs = dict(sorted(op.inputs.items())), dict(sorted(op.outputs.items()))
        self._created += 1
        node = IrOpNode(op.type, self._created - 1, op)
        self._nodes[node] = None
        return node

    def create_control_dep_var(self) -> IrVarNode:
        """Add a control variable."""
        return self._add_variable(f"{CONTROL}@{self._created}", None)

    def nodes(self) -> KeysView[IrNode[Any]]:
        """Return all nodes, a set in order of creation."""
        return dict.fromkeys(self._nodes).keys()

    def remove_nodes(self, nodes: Iterable[IrNode[Any]]) -> None:
        """Remove nodes and the edges to and from them."""
        removed = set(nodes)
        self._nodes = {node: None for node in self._nodes if node not in removed}
        for node in self._nodes:
            for near in (node._inputs, node._outputs):
                near[:] = [other for other in near if other not in removed]

    def has(self, name: str) -> bool:
        """Return whether a value is stored under a name."""
        return name in self._kept

    def get(self, name: str) -> object:
        """Return the value stored under a name. Raises KeyError."""
        return self._kept[name]

    def set(self, name: str, value: object) -> None:
        """Store a value under a name."""
        self._kept[name] = value

    def erase(self, name: str) -> None:
        """Delete the value stored under a name."""
        self._kept.pop(name, None)

    def clone(self) -> Graph:
        """Return a copy of the nodes and edges, without the values stored under names."""
        twin = Graph(Program().desc)
        twin._program = copy(self._program)
        twins: dict[IrNode[Any], IrNode[Any]] = {}
        for node in self._nodes:
            twin._created = node.id()
            if isinstance(node, IrOpNode):
                twins[node] = twin.create_op_node(node.op())
            elif isinstance(node, IrVarNode):
                variable = None if node._variable is None else _copy_plain(node._variable)
                twins[node] = twin._add_variable(node.name(), variable)
        for node, other in twins.items():
            other._inputs = [twins[near] for near in node._inputs]
            other._outputs = [twins[near] for near in node._outputs]
        twin._created = self._created
        return twin

    def find_earlier(self) -> dict[IrOpNode, list[IrOpNode]]:
        """Return for each operator the operators whose results it reads, in order of creation."""
        return {
            node: sorted({op for value in node._inputs for op in value._inputs}, key=IrOpNode.id)
            for node in self._nodes
            if isinstance(node, IrOpNode)
        }

    def sort_operators(self) -> list[IrOpNode]:
        """Return the operators in the order of the program. Raises GraphError when they form a cycle."""
        earlier = self.find_earlier()
        placed: dict[IrOpNode, bool] = {}  # False while those before it are being placed
        order = []
        for first in earlier:
            waiting = [first]
            while waiting:
                op = waiting[-1]
                if placed.setdefault(op, False):
                    waiting.pop()
                    continue
                missing = next((one for one in earlier[op] if not placed.get(one)), None)
                if missing is None:
                    placed[op] = True
                    order.append(op)
                elif missing in placed:
                    raise GraphError(f"the operators {missing.name()} and {op.name()} wait for each other")
                else:
                    waiting.append(missing)
        return order

    def resolve_hazard(self, values: Mapping[str, Sequence[IrVarNode]]) -> None:
        """Put control variables between operators that use a variable and operators that overwrite it.

        ``values`` holds the nodes of each variable in the order of their operators.
        """
        for name in sorted(values):
            for old, new in reversed(list(zip(values[name], values[name][1:], strict=False))):
                if not new._inputs:
                    raise GraphError(f"variable {name!r} has a second value that no operator writes")
                writer = new._inputs[0]
                if old._inputs and old._inputs[0] is not writer:
                    self._order(old._inputs[0], writer)
                for reader in old._outputs:
                    if reader is not writer and not set(reader._outputs) & set(writer._inputs):
                        self._order(reader, writer)

    def _order(self, first: IrOpNode, second: IrOpNode) -> None:
        between = self.create_control_dep_var()
        _link(first, between)
        _link(between, second)

    def to_program(self) -> Program:
        """Return the program of the graph. Parameters become plain variables, as in Fluid."""
        program = copy(self._program)
        program._seed, program.encoded = 0, None
        program._op_role_var = []
        block = program.global_block()
        block.ops = [node._operator.copy_into(block) for node in self.sort_operators()]
        block.vars = {}
        for node in self._nodes:
            if isinstance(node, IrVarNode) and node._variable is not None and node.name() not in block.vars:
                block.vars[node.name()] = node._variable.clone_into(block)
        for op in block.ops:
            for name in op.output_arg_names:
                if name in block.vars:
                    block.vars[name].op = op
        return program


def _link(first: IrNode[Any], second: IrNode[Any]) -> None:
    first.append_output(second)
    second.append_input(first)


def _copy_plain(variable: Variable) -> Variable:
    """Return a copy of a variable's description that is not a parameter."""
    plain = Variable(variable.block, name=variable.name)
    kept = {name: value for name, value in vars(variable).items() if name in vars(plain)}
    vars(plain).update(kept, stop_gradient=False, op=None)
    return plain


def _name_slots(slots: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        slot: [node.name() for node in (nodes if isinstance(nodes, list) else [nodes])]
        for slot, nodes in slots.items()
    }


def find_node(nodes: Iterable[_Node], name: str) -> _Node:
    """Return the last node of that name. Raises GraphError when there is none."""
    found = [node for node in nodes if node.name() == name]
    if not found:
        raise GraphError(f"none of the nodes is named {name!r}")
    return found[-1]


def find_name(name: str) -> object:
    """Return the object that Fluid's ``core`` or ``framework`` has under a name. Raises AttributeError."""
    try:
        return {"Node": IrNode}.get(name) or globals()[name]
    except KeyError:
        raise AttributeError(f"module 'paddlelike.framework' has no attribute {name!r}") from None


class IrGraph:
    """A program as a graph that passes rewrite: ``IrGraph(core.Graph(program.desc), for_test=True)``.

    The program stays as it is; :meth:`to_program` returns a new one.

    Raises
    ------
    TypeError
        ``graph`` is not a ``core.Graph``.
    """

    def __init__(self, graph: Graph, for_test: bool = False) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(f"IrGraph takes a core.Graph(program.desc), got {type(graph).__name__}")
        self.graph = graph
        self._for_test = for_test
        #: Variables of QuantizationTransformPass: what a caller's function computed, and from which one.
        self.out_node_mapping_table: dict[str, str] = {}

    def clone(self) -> IrGraph:
        """Return a copy of the graph."""
        return IrGraph(self.graph.clone(), self._for_test)

    def is_test(self) -> bool:
        """Return whether the graph is for inference."""
        return self._for_test

    # Nodes: sets in order of creation

    def all_nodes(self) -> KeysView[IrNode[Any]]:
        """Return all nodes."""
        return self.graph.nodes()

    def all_var_nodes(self) -> KeysView[IrVarNode]:
        """Return the values of variables, and the control variables."""
        return dict.fromkeys(node for node in self.graph.nodes() if isinstance(node, IrVarNode)).keys()

    def all_persistable_nodes(self) -> KeysView[IrVarNode]:
        """Return the values of persistable variables."""
        named = (node for node in self.all_var_nodes() if node.var() is not None)
        return dict.fromkeys(node for node in named if node.persistable()).keys()

    def all_op_nodes(self) -> KeysView[IrOpNode]:
        """Return the operators."""
        return dict.fromkeys(node for node in self.graph.nodes() if isinstance(node, IrOpNode)).keys()

    _find_node_by_name = staticmethod(find_node)

    def create_var_node(
        self, name: str, var_type: VarType, shape: Sequence[int], var_dtype: DtypeLike
    ) -> IrVarNode:
        """Add a variable that is not persistable."""
        block = self.graph._program.global_block()
        variable = Variable(block, type=var_type, name=name, shape=shape, dtype=var_dtype)
        return self.graph._add_variable(variable.name, variable)

    def create_persistable_node(
        self, name: str, var_type: VarType, shape: Sequence[int], var_dtype: DtypeLike
    ) -> IrVarNode:
        """Add a persistable variable."""
        node = self.create_var_node(name, var_type, shape, var_dtype)
        node._describe().set_persistable(True)
        return node

    def create_var_node_from_desc(self, var_desc: VariableDesc) -> IrVarNode:
        """Add a value of a variable with a copy of the description ``var_desc``."""
        return self.graph.create_var_node(var_desc)

    def create_control_dep_var(self) -> IrVarNode:
        """Add a control variable."""
        return self.graph.create_control_dep_var()

    def create_op_node(
        self, op_type: str, attrs: Mapping[str, Any], inputs: Mapping[str, Any], outputs: Mapping[str, Any]
    ) -> IrOpNode:
        """Add an operator without edges. Raises EnforceNotMet for an attribute of a wrong type."""
        known = registry.find_or_none(op_type)
        if known is None:
            for value in attrs.values():
                infer_attr_type(value)
        given = dict(attrs) if known is None else convert_given_attrs(known, attrs)
        block = self.graph._program.global_block()
        op = Operator(block, op_type, _name_slots(inputs), _name_slots(outputs), given)
        return self.graph.create_op_node(op.desc)

    def create_op_node_from_desc(self, op_desc: OperatorDesc) -> IrOpNode:
        """Add an operator without edges, with a copy of the description ``op_desc``."""
        return self.graph.create_op_node(op_desc)

    def safe_remove_nodes(self, remove_nodes: IrNode[Any] | Iterable[IrNode[Any]]) -> None:
        """Remove one or several nodes, ``remove_nodes``, with their edges."""
        self.graph.remove_nodes([remove_nodes] if isinstance(remove_nodes, IrNode) else remove_nodes)

    # Edges

    def _check(self, *nodes: IrNode[Any]) -> None:
        for node in nodes:
            if node not in self.graph._nodes:
                raise GraphError(f"{node!r} is not a node of this graph")

    def link_to(self, node_in: IrNode[Any], node_out: IrNode[Any]) -> None:
        """Add an edge. Raises GraphError for a node of another graph."""
        self._check(node_in, node_out)
        _link(node_in, node_out)

    def update_input_link(
        self, old_input_node: IrVarNode, new_input_node: IrVarNode, op_node: IrOpNode
    ) -> None:
        """Let an operator read another variable. Raises GraphError for a node of another graph."""
        self._check(old_input_node, new_input_node, op_node)
        old_input_node.remove_output(op_node)
        op_node.remove_input(old_input_node)
        _link(new_input_node, op_node)
        op_node.rename_input(old_input_node.name(), new_input_node.name())

    def update_output_link(
        self, old_output_node: IrVarNode, new_output_node: IrVarNode, op_node: IrOpNode
    ) -> None:
        """Let an operator write another variable. Raises GraphError for a node of another graph."""
        self._check(old_output_node, new_output_node, op_node)
        old_output_node.remove_input(op_node)
        op_node.remove_output(old_output_node)
        _link(op_node, new_output_node)
        op_node.rename_output(old_output_node.name(), new_output_node.name())

    def resolve_hazard(self) -> None:
        """Add control variables before the operators that overwrite a variable.

        Raises GraphError when an operator names a variable without an edge to it.
        """
        values: dict[str, list[IrVarNode]] = {}
        for op in self.graph.sort_operators():
            for name in op.input_arg_names():
                if name not in values:
                    values[name] = [find_node(op._inputs, name)]
            for name in op.output_arg_names():
                values.setdefault(name, []).append(find_node(op._outputs, name))
        self.graph.resolve_hazard(values)

    # The whole graph

    def topology_sort(self) -> list[IrOpNode]:
        """Return the operators in the order of the program. Raises GraphError when they form a cycle."""
        return self.graph.sort_operators()

    def build_adjacency_list(self) -> dict[IrOpNode, set[IrOpNode]]:
        """Return for each operator the operators whose results it reads."""
        return {op: set(earlier) for op, earlier in self.graph.find_earlier().items()}

    def _build_graph(self) -> nx.DiGraph[Any]:
        import networkx as nx

        edges: dict[Any, Any] = self.graph.find_earlier()
        return nx.DiGraph(edges)

    def has_circle(self) -> bool:
        """Return whether operators depend on each other in a cycle."""
        import networkx as nx

        return not nx.is_directed_acyclic_graph(self._build_graph())

    def graph_num(self) -> int:
        """Return the number of connected components."""
        import networkx as nx

        return nx.number_weakly_connected_components(self._build_graph())

    def draw(
        self,
        save_path: str | os.PathLike[str],
        name: str,
        marked_nodes: IrNode[Any] | Iterable[IrNode[Any]] | None = None,
        remove_ctr_var: bool = True,
    ) -> None:
        """Write ``<name>.dot``, and ``<name>.pdf`` if Graphviz is installed; print the number of operators.

        Parameters
        ----------
        save_path
            The folder of the files.
        name
            The name of the files without an ending.
        marked_nodes
            Nodes that are yellow.
        remove_ctr_var
            Whether the control variables are removed from the graph.
        """
        if remove_ctr_var:
            self.safe_remove_nodes([node for node in self.all_var_nodes() if node.is_ctrl_var()])
        marked = {marked_nodes} if isinstance(marked_nodes, IrNode) else set(marked_nodes or ())
        print(f"Total ops num = {len(self.all_op_nodes())}.")  # noqa: T201  (as Fluid does)
        lines = ["digraph G {"]
        for node in self.graph.nodes():
            shape = "box" if node.is_op() else "ellipse"
            fill = ', style="filled", fillcolor="yellow"' if node in marked else ""
            lines.append(f'  node_{node.id()} [label="{node.name()}", shape="{shape}"{fill}]')
            lines += [f"  node_{node.id()} -> node_{other.id()}" for other in node._outputs]
        path = Path(save_path) / f"{name}.dot"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")
        if dot := shutil.which("dot"):
            subprocess.run([dot, "-Tpdf", path, "-o", path.with_suffix(".pdf")], check=True)  # noqa: S603

    def to_program(self) -> Program:
        """Return the program of the graph; its variables are not parameters, as in Fluid.

        Raises GraphError when operators wait for each other in a circle.
        """
        return self.graph.to_program()
