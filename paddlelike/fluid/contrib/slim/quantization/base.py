"""Shared parts of the quantization passes: quantized slots, new operators with edges, values of a scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from paddlelike import unique_name
from paddlelike.core import Place, Scope, VarType
from paddlelike.errors import EnforceNotMet
from paddlelike.framework import Operator, OpRole
from paddlelike.framework.passes.ir_graph import IrGraph, find_node
from paddlelike.framework.passes.ir_nodes import IrOpNode, IrVarNode

CONVOLUTIONS: Final = ("conv2d", "depthwise_conv2d")
WAYS: Final = ("abs_max", "channel_wise_abs_max", "range_abs_max", "moving_average_abs_max")
QUANTIZE: Final = tuple(
    f"fake_{way}"
    for way in (
        "quantize_abs_max",
        "quantize_range_abs_max",
        "quantize_moving_average_abs_max",
        "channel_wise_quantize_abs_max",
    )
)
DEQUANTIZE: Final = ("fake_dequantize_max_abs", "fake_channel_wise_dequantize_max_abs")

_TWO_INPUTS: Final = """
    mul matmul elementwise_add elementwise_sub elementwise_mul equal not_equal greater_equal greater_than
    less_equal less_than
"""
_ONE_INPUT: Final = """
    pool2d concat softmax argmax transpose transpose2 gather mean reshape reshape2 bilinear_interp
    nearest_interp trilinear_interp squeeze relu relu6 leaky_relu prelu tanh swish dropout sigmoid scale
"""
_RESULTS: Final = """
    conv2d depthwise_conv2d mul matmul relu leaky_relu relu6 sigmoid tanh prelu swish softmax batch_norm
    elementwise_add pool2d reshape2 transpose2 concat elementwise_mul scale
"""
#: The operators whose results get a scale.
WITH_OUT_SCALE: Final = _RESULTS.split()
#: The slots that hold numbers to be quantized, not shapes or statistics: of inputs and of outputs.
_SLOTS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    **dict.fromkeys(CONVOLUTIONS, (("Input", "Filter"), "Output")),
    **dict.fromkeys(_TWO_INPUTS.split(), (("X", "Y"), "Out")),
    **dict.fromkeys(_ONE_INPUT.split(), (("X",), "Out")),
    "slice": (("Input",), "Out"),
    "batch_norm": (("X",), "Y"),
}


def list_inputs(op: IrOpNode | Operator) -> list[str]:
    return [name for slot in _SLOTS[_find_type(op)][0] for name in op.input(slot)]


def list_outputs(op: IrOpNode | Operator) -> list[str]:
    return op.output(_SLOTS[_find_type(op)][1])


def _find_type(op: IrOpNode | Operator) -> str:
    return op.type if isinstance(op, Operator) else op.name()


def reads_weights(op: IrOpNode) -> bool:
    return any(find_node(op.inputs, name).persistable() for name in list_inputs(op))


def is_skipped(op: IrOpNode, skip_pattern: str | list[str]) -> bool:
    if not op.op().has_attr("op_namescope"):
        return False
    scope = op.op().attr("op_namescope")
    patterns = [skip_pattern] if isinstance(skip_pattern, str) else skip_pattern
    return isinstance(patterns, list) and any(pattern in scope for pattern in patterns)


def find_quantization(op: IrOpNode) -> str:
    """Return the attribute ``quantization_type`` of an operator, or an empty text."""
    return str(op.op().attr("quantization_type")) if op.op().has_attr("quantization_type") else ""


def insert(
    graph: IrGraph, op_type: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any], attrs: dict[str, Any]
) -> None:
    """Add an operator with its edges."""
    op = graph.create_op_node(op_type, attrs | {"op_role": OpRole.Forward}, inputs, outputs)
    for nodes in inputs.values():
        for node in nodes if isinstance(nodes, list) else [nodes]:
            graph.link_to(node, op)
    for node in outputs.values():
        graph.link_to(op, node)


def create_like(graph: IrGraph, node: IrVarNode, name: str, shape: Sequence[int] | None = None) -> IrVarNode:
    return graph.create_var_node(name, node.type(), node.shape() if shape is None else shape, node.dtype())


def remove_unused(graph: IrGraph) -> None:
    """Remove the variables that no operator reads or writes."""
    used = {node for op in graph.all_op_nodes() for node in (*op.inputs, *op.outputs)}
    graph.safe_remove_nodes([node for node in graph.all_var_nodes() if node not in used])


def check_graph(graph: IrGraph) -> None:
    if not isinstance(graph, IrGraph):
        raise TypeError(f"the pass takes an IrGraph, got {type(graph).__name__}")


def load_value(scope: Scope, name: str) -> npt.NDArray[Any]:
    """Return a copy of a value. Raises EnforceNotMet when the scope does not hold it."""
    found = scope.find_var(name)
    if found is None:
        raise EnforceNotMet(f"the scope has no variable {name!r}", hint="run the startup program, or load it")
    return np.array(found.get_tensor())


class ScopePass:
    """Base class of passes that read and set values of a scope."""

    def __init__(self, scope: Scope | None, place: Place | None) -> None:
        self._scope, self._place = scope, place

    def _require(self) -> None:
        for what, given in (("scope", self._scope), ("place", self._place)):
            if given is None:
                raise EnforceNotMet(f"{type(self).__name__}: {what} is None, expected a {what}")

    def _store(self, name: str, value: npt.NDArray[Any]) -> None:
        self._require()
        assert self._scope is not None
        self._scope.var(name).get_tensor().set(value, self._place)

    def _read(self, name: str) -> npt.NDArray[Any]:
        assert self._scope is not None
        return load_value(self._scope, name)

    def _create_state(
        self, graph: IrGraph, name: str, dtype: VarType, value: npt.ArrayLike, size: int = 1
    ) -> IrVarNode:
        """Add a persistable variable and give it its first value."""
        node = graph.create_persistable_node(name, VarType.LOD_TENSOR, [size], dtype)
        number = {VarType.FP64: np.float64, VarType.INT64: np.int64}.get(dtype, np.float32)
        self._store(name, np.broadcast_to(value, [size]).astype(number))
        return node

    def _create_averages(
        self, graph: IrGraph, dtype: VarType, prefix: str = "", suffix: str = ""
    ) -> tuple[dict[str, IrVarNode], dict[str, IrVarNode]]:
        """Add the two sums of a moving average, as inputs and outputs of an operator; none in test mode."""
        if graph.is_test():
            return {}, {}
        before = {
            slot: self._create_state(graph, unique_name.generate(f"{prefix}{slot.lower()}{suffix}"), dtype, 1)
            for slot in ("State", "Accum")
        }
        after = {f"Out{slot}": create_again(graph, node) for slot, node in before.items()}
        return {f"In{slot}": node for slot, node in before.items()}, after

    def _insert_average(
        self,
        graph: IrGraph,
        op_type: str,
        node: IrVarNode,
        out: IrVarNode,
        scale: str,
        attrs: dict[str, Any],
        prefix: str = "",
    ) -> IrVarNode:
        """Quantize by a moving average of the largest values; return the scale."""
        scale_in = self._create_state(graph, scale, node.dtype(), 0.001)
        scale_out = create_again(graph, scale_in)
        before, after = self._create_averages(graph, node.dtype(), prefix)
        attrs = attrs | {"is_test": graph.is_test()}
        inputs, outputs = {"X": node, "InScale": scale_in}, {"Out": out, "OutScale": scale_out}
        insert(graph, op_type, inputs | before, outputs | after, attrs)
        return scale_out


def create_again(graph: IrGraph, node: IrVarNode) -> IrVarNode:
    """Add a new version of a variable, for its next value."""
    desc = node.var()
    assert desc is not None
    return graph.create_var_node_from_desc(desc)


def check_types(given: Sequence[str], known: Sequence[str]) -> None:
    for op_type in given:
        if op_type not in known:
            raise ValueError(f"quantizable_op_type has {op_type!r}, expected some of {', '.join(known)}")


def count_steps(bits: int) -> int:
    """Return the largest signed integer of that many bits."""
    return int((1 << (bits - 1)) - 1)


def find_source(name: str) -> str:
    """Return the name of the variable that was rounded."""
    for ending in (".quantized.dequantized", ".quantized", ".dequantized", ".scale"):
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name
