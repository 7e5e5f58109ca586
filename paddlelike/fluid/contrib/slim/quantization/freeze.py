"""Graphs for inference: integers as weights, int8 weights, operators of Paddle Mobile."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from paddlelike import unique_name
from paddlelike.core import Place, Scope, VarType
from paddlelike.errors import GraphError
from paddlelike.fluid.contrib.slim.quantization.base import (
    CONVOLUTIONS,
    DEQUANTIZE,
    QUANTIZE,
    WAYS,
    ScopePass,
    check_graph,
    count_steps,
    create_like,
    find_quantization,
    find_source,
    insert,
    remove_unused,
)
from paddlelike.framework.passes.ir_graph import IrGraph, find_node
from paddlelike.framework.passes.ir_nodes import IrOpNode, IrVarNode


class QuantizationFreezePass(ScopePass):
    """Turns the weights of a trained graph into integers, and rescales the results of their readers.

    Parameters
    ----------
    quantizable_op_type
        It has no effect: the operators that QuantizationTransformPass changed are known.
    """

    def __init__(
        self,
        scope: Scope,
        place: Place,
        weight_bits: int = 8,
        activation_bits: int = 8,
        weight_quantize_type: str = "abs_max",
        quantizable_op_type: Sequence[str] | None = None,
    ) -> None:
        super().__init__(scope, place)
        self._require()
        self._weight_bits, self._activation_bits = weight_bits, activation_bits
        self._weight_quantize_type = weight_quantize_type

    def apply(self, graph: IrGraph) -> IrGraph:
        """Change a graph and the weights in the scope; return the graph."""
        check_graph(graph)
        weights = {node.name() for node in graph.all_persistable_nodes()}
        before: dict[IrVarNode, IrVarNode] = {}  # the value that was rounded, by the rounded value
        scales: dict[str, Any] = {}  # numbers of weights, otherwise the node
        renamed = graph.out_node_mapping_table
        for op in graph.all_op_nodes():
            if op.name() in QUANTIZE:
                (name,) = op.input("X")
                name = renamed.get(name, name)
                if name in weights:
                    scales[name] = self._freeze(name, op.output("OutScale")[0])
                    _remove_rounding(graph, op, before)
                else:
                    scales[name] = find_node(op.outputs, op.output("OutScale")[0])
        for op in graph.all_op_nodes():
            if op.name() in DEQUANTIZE:
                _remove_rounding(graph, op, before)
        divided: dict[IrVarNode, IrVarNode] = {}
        ops = graph.all_op_nodes()
        for op in ops:
            if find_quantization(op) == "qat_with_weight":
                self._divide(graph, op, before, divided, scales, weights)
        for op in ops:
            for node in op.inputs:
                if node in divided:
                    graph.update_input_link(node, divided[node], op)
        remove_unused(graph)
        graph.resolve_hazard()
        return graph

    def _freeze(self, name: str, scale_name: str) -> float | list[float]:
        """Turn a weight into integers; return its scale, or a list of scales."""
        weight = self._read(name)
        if self._weight_quantize_type not in WAYS[:2]:
            scale = self._read(scale_name)[0]
            found: float | list[float] = float(scale)
        elif self._weight_quantize_type == "abs_max" or weight.ndim != 4:
            scale = np.abs(weight).max()
            found = float(scale)
        else:
            scale = np.abs(weight).max(axis=(1, 2, 3), keepdims=True)
            found = scale.reshape(-1).tolist()
        self._store(name, np.round(weight / scale * count_steps(self._weight_bits)))
        return found

    def _divide(
        self,
        graph: IrGraph,
        op: IrOpNode,
        before: Mapping[IrVarNode, IrVarNode],
        divided: dict[IrVarNode, IrVarNode],
        scales: Mapping[str, Any],
        weights: Collection[str],
    ) -> None:
        """Let an operator read integers, and divide its result by the scales of both inputs."""
        of_weight, of_input, max_range = None, None, 1.0
        for node in op.inputs:
            if node.name() not in op.input_arg_names():
                continue
            if node in before:
                before[node].clear_outputs()
                graph.update_input_link(node, before[node], op)
            name = find_source(node.name())
            if name in weights:
                of_weight = scales.get(name)
                if isinstance(of_weight, float):
                    max_range *= count_steps(self._weight_bits) / of_weight
            else:
                of_input = scales.get(name)
                max_range *= count_steps(self._activation_bits)
        by_channel = self._weight_quantize_type == "channel_wise_abs_max" and op.name() in CONVOLUTIONS
        outputs = op.output_arg_names()
        if of_input is None or len(outputs) != 1 or not isinstance(of_weight, list if by_channel else float):
            raise GraphError(
                f"{op.name()} {outputs} has several outputs, or an input that no training pass quantized"
            )
        out = find_node(op.outputs, outputs[0])
        if by_channel:
            assert isinstance(of_weight, list)  # as checked
            name = unique_name.generate("channel_scale")
            channels = self._create_state(graph, name, out.dtype(), of_weight, len(of_weight))
        result = create_like(graph, out, f"{out.name()}.dequantized")
        if by_channel:
            inputs: dict[str, Any] = {"X": out, "Scales": [channels, of_input]}
            attrs: dict[str, Any] = {"quant_bits": [self._weight_bits, self._activation_bits]}
        else:
            inputs, attrs = {"X": out, "Scale": of_input}, {"max_range": max_range}
        insert(graph, DEQUANTIZE[by_channel], inputs, {"Out": result}, attrs)
        divided[out] = result


def _remove_rounding(graph: IrGraph, op: IrOpNode, before: dict[IrVarNode, IrVarNode]) -> None:
    """Remove an operator that rounds; record which value was rounded."""
    result, source = find_node(op.outputs, op.output("Out")[0]), find_node(op.inputs, op.input("X")[0])
    before[result] = before.get(source, source)
    graph.safe_remove_nodes(op)


class ConvertToInt8Pass(ScopePass):
    """Gives the operators of a frozen graph int8 weights, named ``<name>.int8``.

    Parameters
    ----------
    quantizable_op_type
        It has no effect: the operators that QuantizationTransformPass changed are known.
    """

    def __init__(self, scope: Scope, place: Place, quantizable_op_type: Sequence[str] | None = None) -> None:
        super().__init__(scope, place)
        self._require()

    def apply(self, graph: IrGraph) -> IrGraph:
        """Change a graph, put the new weights into the scope, and return the graph."""
        check_graph(graph)
        weights = {node.name() for node in graph.all_persistable_nodes()}
        made: dict[str, IrVarNode] = {}
        for op in graph.all_op_nodes():
            for node in op.inputs if find_quantization(op) == "qat_with_weight" else ():
                name = node.name()
                if name not in weights:
                    continue
                if name not in made:
                    made[name] = graph.create_persistable_node(
                        f"{name}.int8", node.type(), node.shape(), VarType.INT8
                    )
                    self._store(f"{name}.int8", self._read(name).astype(np.int8))
                graph.update_input_link(node, made[name], op)
        remove_unused(graph)
        graph.resolve_hazard()
        return graph


class TransformForMobilePass:
    """Renames the quantizing operators of a frozen graph to ``quantize`` and ``dequantize``, for Paddle
    Mobile.
    """

    def apply(self, graph: IrGraph) -> IrGraph:
        """Change a graph and return it."""
        check_graph(graph)
        for op in graph.all_op_nodes():
            if op.name() in (*QUANTIZE, *DEQUANTIZE):
                op.set_type("quantize" if op.name() in QUANTIZE else "dequantize")
                renamed = graph.create_op_node_from_desc(op.op())
                for node in op.inputs:
                    graph.link_to(node, renamed)
                for node in op.outputs:
                    graph.link_to(renamed, node)
                graph.safe_remove_nodes(op)
        graph.resolve_hazard()
        return graph
