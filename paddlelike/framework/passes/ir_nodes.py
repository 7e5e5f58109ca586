"""Nodes of :class:`paddlelike.framework.passes.ir_graph.IrGraph`: operators and values of variables.

Parameters
----------
name
    The name of a variable, a slot or an attribute.
shape
    The dims of a variable.
new_type
    The type of an operator.
node
    Another node of the graph.
node_id
    The number that :meth:`IrNode.id` returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final, Generic, TypeVar

from paddlelike.core import VarType
from paddlelike.errors import GraphError
from paddlelike.framework.graph.desc import OperatorDesc, VariableDesc
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.variable import Variable

CONTROL: Final = "__control_var"
_Other = TypeVar("_Other", bound="IrNode[Any]")


class _Type(IntEnum):
    Operation = 0
    Variable = 1


class IrNode(Generic[_Other]):
    """A node for an operator or for a value of a variable; its neighbours are nodes of the other kind."""

    Type = _Type

    def __init__(self, name: str, index: int) -> None:
        self._name = name
        self._id = index
        self._inputs: list[_Other] = []
        self._outputs: list[_Other] = []

    @property
    def node(self: _Self) -> _Self:
        """The node itself: in Fluid an object of C++."""
        return self

    @property
    def inputs(self) -> list[_Other]:
        """The nodes with an edge to this one."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[_Other]:
        """The nodes with an edge from this one."""
        return list(self._outputs)

    def name(self) -> str:
        """Return the name of the variable, or the type that the operator was created with."""
        return self._name

    def id(self) -> int:
        """Return the index of the node in order of creation."""
        return self._id

    def node_type(self) -> _Type:
        """Return ``Node.Type.Operation`` or ``Node.Type.Variable``."""
        return _Type.Operation if self.is_op() else _Type.Variable

    def is_op(self) -> bool:
        """Return whether the node is an operator."""
        return isinstance(self, IrOpNode)

    def is_var(self) -> bool:
        """Return whether the node is a value of a variable or a control variable."""
        return not self.is_op()

    def is_ctrl_var(self) -> bool:
        """Return whether the node is a control variable."""
        return self.is_var() and CONTROL in self._name

    def append_input(self, node: _Other) -> None:
        """Append an edge from a node."""
        self._inputs.append(node)

    def append_output(self, node: _Other) -> None:
        """Append an edge to a node."""
        self._outputs.append(node)

    def remove_input(self, node: _Other) -> None:
        """Remove the first edge from a node."""
        self.remove_input_by_id(node.id())

    def remove_output(self, node: _Other) -> None:
        """Remove the first edge to a node."""
        self.remove_output_by_id(node.id())

    def remove_input_by_id(self, node_id: int) -> None:
        """Remove the first edge from the node with that id."""
        _remove_first(self._inputs, node_id)

    def remove_output_by_id(self, node_id: int) -> None:
        """Remove the first edge to the node with that id."""
        _remove_first(self._outputs, node_id)

    def clear_inputs(self) -> None:
        """Remove all edges to this node."""
        self._inputs.clear()

    def clear_outputs(self) -> None:
        """Remove all edges from this node."""
        self._outputs.clear()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id}: {self._name}>"


_Self = TypeVar("_Self", bound=IrNode[Any])


def _remove_first(nodes: list[Any], index: int) -> None:
    found = next((i for i, node in enumerate(nodes) if node.id() == index), None)
    if found is not None:
        del nodes[found]


class IrVarNode(IrNode["IrOpNode"]):
    """A value of a variable: its input is the operator that writes it, its outputs are the readers."""

    def __init__(self, name: str, index: int, variable: Variable | None) -> None:
        super().__init__(name, index)
        self._variable = variable

    def var(self) -> VariableDesc | None:
        """Return the description of the variable; None for a control variable and for ``@EMPTY@``."""
        return None if self._variable is None else VariableDesc(self._variable)

    def _describe(self) -> VariableDesc:
        if self._variable is None:
            raise GraphError(f"node {self._name} has no description of a variable")
        return VariableDesc(self._variable)

    def set_shape(self, shape: Sequence[int]) -> None:
        """Set the dims."""
        self._describe().set_shape(shape)

    def persistable(self) -> bool:
        """Return whether the value outlives a run."""
        return self._describe().persistable()

    def type(self) -> VarType:
        """Return the kind of the variable."""
        return self._describe().type()

    def dtype(self) -> VarType:
        """Return the type of the elements."""
        return self._describe().dtype()

    def shape(self) -> list[int]:
        """Return the dims."""
        return self._describe().shape()


class IrOpNode(IrNode[IrVarNode]):
    """An operator."""

    def __init__(self, name: str, index: int, operator: Operator) -> None:
        super().__init__(name, index)
        self._operator = operator

    def op(self) -> OperatorDesc:
        """Return the description of the operator."""
        return OperatorDesc(self._operator)

    def input(self, name: str) -> list[str]:
        """Return the variables of an input slot."""
        return self._operator.input(name)

    def output(self, name: str) -> list[str]:
        """Return the variables of an output slot."""
        return self._operator.output(name)

    def input_arg_names(self) -> list[str]:
        """Return the names of all input variables."""
        return self._operator.input_arg_names

    def output_arg_names(self) -> list[str]:
        """Return the names of all output variables."""
        return self._operator.output_arg_names

    def rename_input(self, old_input_name: str, new_input_name: str) -> None:
        """Replace the name of an input variable; the edges stay."""
        self._operator._rename_input(old_input_name, new_input_name)

    def rename_output(self, old_output_name: str, new_output_name: str) -> None:
        """Replace the name of an output variable; the edges stay."""
        self._operator._rename_output(old_output_name, new_output_name)

    def set_type(self, new_type: str) -> None:
        """Set the operator's type; the node keeps its name."""
        self.op().set_type(new_type)

    def set_attr(self, name: str, val: object) -> None:
        """Set an attribute. Raises EnforceNotMet for a value of a wrong type."""
        self._operator._set_attr(name, val)
