"""Quantization of operators without weights, and records of the largest results of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from paddlelike.core import Place, Scope
from paddlelike.errors import EnforceNotMet
from paddlelike.fluid.contrib.slim.quantization.base import (
    WITH_OUT_SCALE,
    ScopePass,
    check_graph,
    check_types,
    create_again,
    create_like,
    find_quantization,
    insert,
    is_skipped,
    list_inputs,
    list_outputs,
    load_value,
    reads_weights,
)
from paddlelike.framework.passes.ir_graph import IrGraph, find_node
from paddlelike.framework.passes.ir_nodes import IrVarNode

_WITHOUT_WEIGHTS: Final = """
    pool2d elementwise_add concat softmax argmax transpose equal gather greater_equal greater_than
    less_equal less_than mean not_equal reshape reshape2 bilinear_interp nearest_interp trilinear_interp
    slice squeeze elementwise_sub mul matmul relu relu6 leaky_relu tanh swish
"""


class AddQuantDequantPass(ScopePass):
    """Puts fake quantization before operators without weights.

    Parameters
    ----------
    is_full_quantized
        Whether all types that can be quantized are, whatever ``quantizable_op_type`` says.

    Raises
    ------
    ValueError
        A type of operators is not known.
    """

    _supported_quantizable_op_type = _WITHOUT_WEIGHTS.split()
    _activation_type = ["relu", "relu6", "leaky_relu", "tanh", "swish"]

    def __init__(
        self,
        scope: Scope | None = None,
        place: Place | None = None,
        moving_rate: float = 0.9,
        quant_bits: int = 8,
        skip_pattern: str | list[str] = ["skip_quant"],  # noqa: B006
        quantizable_op_type: Sequence[str] = ["elementwise_add", "pool2d"],
        is_full_quantized: bool = False,
    ) -> None:
        super().__init__(scope, place)
        self._require()
        if is_full_quantized:
            quantizable_op_type = self._supported_quantizable_op_type
        check_types(quantizable_op_type, self._supported_quantizable_op_type)
        self._moving_rate, self._quant_bits = moving_rate, quant_bits
        self._skip_pattern, self._quantizable_op_type = skip_pattern, quantizable_op_type

    def apply(self, graph: IrGraph) -> IrGraph:
        """Change a graph and return it. Raises TypeError for anything but an IrGraph."""
        check_graph(graph)
        rounded: dict[str, IrVarNode] = {}
        ops = graph.all_op_nodes()
        for op in ops:
            if (
                op.name() not in self._quantizable_op_type
                or is_skipped(op, self._skip_pattern)
                or find_quantization(op) == "qat_with_weight"
                or reads_weights(op)
            ):
                continue
            op.set_attr("quantization_type", "qat_without_weight")
            op.set_attr("activation_bits", self._quant_bits)
            for name in list_inputs(op):
                node = find_node(op.inputs, name)
                if name not in rounded:
                    rounded[name] = self._round(graph, node)
                graph.update_input_link(node, rounded[name], op)
        gradients = [f"{op_type}_grad" for op_type in self._quantizable_op_type]
        for op in ops:
            for name in op.input_arg_names() if op.name() in gradients else ():
                if name in rounded:
                    graph.update_input_link(find_node(op.inputs, name), rounded[name], op)
        graph.resolve_hazard()
        return graph

    def _round(self, graph: IrGraph, node: IrVarNode) -> IrVarNode:
        name = f"{node.name()}.quant_dequant"
        result = create_like(graph, node, name)
        attrs = {"bit_length": self._quant_bits, "moving_rate": self._moving_rate}
        op_type = "fake_quantize_dequantize_moving_average_abs_max"
        self._insert_average(graph, op_type, node, result, f"{name}.scale", attrs, "quant_dequant.")
        return result


class OutScaleForTrainingPass(ScopePass):
    """Makes a training graph record a moving average of the largest results of its operators."""

    def __init__(
        self, scope: Scope | None = None, place: Place | None = None, moving_rate: float = 0.9
    ) -> None:
        super().__init__(scope, place)
        self._moving_rate = moving_rate

    def apply(self, graph: IrGraph) -> IrGraph:
        """Change a graph and return it."""
        check_graph(graph)
        for op in graph.all_op_nodes():
            for name in list_outputs(op) if op.name() in WITH_OUT_SCALE else ():
                node = find_node(op.outputs, name)
                out = create_again(graph, node)
                scale = self._create_state(graph, f"{name}@scale", node.dtype(), 1)
                before, after = self._create_averages(graph, node.dtype(), "scale_", "@")
                outputs = {"Out": out, "OutScale": scale} | after
                attrs = {"moving_rate": self._moving_rate, "is_test": graph.is_test()}
                insert(graph, "moving_average_abs_max_scale", {"X": node} | before, outputs, attrs)
        graph.resolve_hazard()
        return graph


class OutScaleForInferencePass:
    """Writes the values that :class:`OutScaleForTrainingPass` recorded into the attributes
    ``out_threshold``.
    """

    def __init__(self, scope: Scope | None = None) -> None:
        self._scope = scope

    def apply(self, graph: IrGraph) -> IrGraph:
        """Change a graph and return it. Raises EnforceNotMet for a result without a record."""
        check_graph(graph)
        for op in graph.all_op_nodes():
            if op.name() in WITH_OUT_SCALE:
                (name,) = list_outputs(op)
                if self._scope is None:
                    raise EnforceNotMet("OutScaleForInferencePass: scope is None, expected a scope")
                op.set_attr("out_threshold", float(load_value(self._scope, f"{name}@scale")[0]))
        graph.resolve_hazard()
        return graph
