"""Quantization of operators with weights, for networks that are trained."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from paddlelike import unique_name
from paddlelike.core import Place, Scope, VarType, scope_guard
from paddlelike.errors import EnforceNotMet
from paddlelike.executor import Executor
from paddlelike.fluid.contrib.slim.quantization.base import (
    CONVOLUTIONS,
    DEQUANTIZE,
    WAYS,
    ScopePass,
    check_graph,
    check_types,
    count_steps,
    create_again,
    create_like,
    find_quantization,
    insert,
    is_skipped,
    reads_weights,
)
from paddlelike.framework import Program, Variable, program_guard
from paddlelike.framework.passes.ir_graph import Graph, IrGraph, find_node
from paddlelike.framework.passes.ir_nodes import IrOpNode, IrVarNode
from paddlelike.input import data
from paddlelike.layers import mean


class QuantizationTransformPass(ScopePass):
    """Puts fake quantization before operators with weights.

    Parameters
    ----------
    activation_quantize_type
        The rule for the scale of activations: ``"abs_max"`` of each batch, ``"range_abs_max"`` of the last
        ``window_size`` batches, or ``"moving_average_abs_max"``.
    weight_quantize_type
        The same for weights; ``"channel_wise_abs_max"`` gives each filter of a convolution its own.
    window_size
        The batches of ``"range_abs_max"``.
    weight_quantize_func, act_quantize_func
        Functions that build a quantization of one's own: they take a variable and return the rounded one.
    weight_preprocess_func, act_preprocess_func
        Functions that build operators before the quantization.
    optimizer_func
        A function that returns the optimizer of the parameters that these functions create.
    executor
        An Executor that initializes these parameters.

    Raises
    ------
    ValueError
        A way of quantization or a type of operators is not known.
    """

    _supported_quantizable_op_type = ["conv2d", "depthwise_conv2d", "mul", "matmul"]

    def __init__(
        self,
        scope: Scope | None = None,
        place: Place | None = None,
        weight_bits: int = 8,
        activation_bits: int = 8,
        activation_quantize_type: str = "abs_max",
        weight_quantize_type: str = "abs_max",
        window_size: int = 10000,
        moving_rate: float = 0.9,
        skip_pattern: str | list[str] = ["skip_quant"],  # noqa: B006
        quantizable_op_type: Sequence[str] = ["conv2d", "depthwise_conv2d", "mul"],
        weight_quantize_func: Callable[[Variable], Variable] | None = None,
        act_quantize_func: Callable[[Variable], Variable] | None = None,
        weight_preprocess_func: Callable[[Variable], Variable] | None = None,
        act_preprocess_func: Callable[[Variable], Variable] | None = None,
        optimizer_func: Callable[[], Any] | None = None,
        executor: Executor | None = None,
    ) -> None:
        super().__init__(scope, place)
        for what, way, ways in (
            ("activation_quantize_type", activation_quantize_type, (WAYS[0], *WAYS[2:])),
            ("weight_quantize_type", weight_quantize_type, WAYS),
        ):
            if way not in ways:
                raise ValueError(f"{what} is {way!r}, expected one of {', '.join(ways)}")
        check_types(quantizable_op_type, self._supported_quantizable_op_type)
        self._weight_bits, self._activation_bits = weight_bits, activation_bits
        self._weight_quantize_type = weight_quantize_type
        self._activation_quantize_type = activation_quantize_type
        self._window_size, self._moving_rate = window_size, moving_rate
        self._skip_pattern, self._quantizable_ops = skip_pattern, quantizable_op_type
        #: By whether it is a weight.
        self._quantize_funcs = {True: weight_quantize_func, False: act_quantize_func}
        self._preprocess_funcs = {True: weight_preprocess_func, False: act_preprocess_func}
        self._optimizer, self._exe = optimizer_func, executor
        self._global_step: IrVarNode | None = None

    def apply(self, graph: IrGraph) -> IrGraph:
        """Change a graph and return it. Raises TypeError for anything but an IrGraph."""
        check_graph(graph)
        weights = {node.name() for node in graph.all_persistable_nodes()}
        rounded: dict[str, IrVarNode] = {}
        own: set[str] = set()  # variables that functions of the caller quantize
        if not graph.is_test() and "range_abs_max" in (
            self._weight_quantize_type,
            self._activation_quantize_type,
        ):
            self._create_global_step(graph)
        ops = graph.all_op_nodes()
        gradients = [f"{op_type}_grad" for op_type in self._quantizable_ops]
        for op in ops:
            if op.name() in (*self._quantizable_ops, *gradients) and is_skipped(op, self._skip_pattern):
                op.set_attr("skip_quant", True)
        graph.out_node_mapping_table = {}
        for op in ops:
            if op.name() in self._quantizable_ops and not self._leaves(op):
                self._round_inputs(graph, op, weights, rounded, own)
        for op in ops:
            if op.name() in gradients:
                for node in op.inputs:
                    if node.name() in op.input_arg_names() and node.name() in rounded:
                        graph.update_input_link(node, rounded[node.name()], op)
        graph.resolve_hazard()
        return graph

    def _leaves(self, op: IrOpNode) -> bool:
        """Return whether an operator is left to AddQuantDequantPass: a product of two activations."""
        skipped = op.op().has_attr("skip_quant") and op.op().attr("skip_quant")
        product = op.name() in ("mul", "matmul") and not reads_weights(op)
        return skipped or product or find_quantization(op) == "qat_without_weight"

    def _round_inputs(
        self,
        graph: IrGraph,
        op: IrOpNode,
        weights: Collection[str],
        rounded: dict[str, IrVarNode],
        own: set[str],
    ) -> None:
        op.set_attr("quantization_type", "qat_with_weight")
        for node in op.inputs:
            name = node.name()
            if name not in op.input_arg_names() or name in own:
                continue
            if name not in rounded:
                is_weight = name in weights
                if (func := self._preprocess_funcs[is_weight]) is not None:
                    node = self._insert_func(graph, func, node, op)
                if (func := self._quantize_funcs[is_weight]) is not None:
                    self._insert_func(graph, func, node, op)
                    own.add(name)
                    continue
                rounded[name] = self._insert_rounding(
                    graph, node, name, node.name() in weights, is_weight, op.name()
                )
            graph.update_input_link(node, rounded[name], op)

    def _insert_rounding(
        self, graph: IrGraph, node: IrVarNode, name: str, stays: bool, is_weight: bool, reader: str
    ) -> IrVarNode:
        """Insert quantization and its inverse; return the result."""
        bits = self._weight_bits if stays else self._activation_bits
        way = self._weight_quantize_type if is_weight else self._activation_quantize_type
        if way == "channel_wise_abs_max" and reader not in CONVOLUTIONS:
            way = "abs_max"
        steps = create_like(graph, node, f"{name}.quantized")
        scale_name, attrs = f"{name}.scale", {"bit_length": bits}
        if way in ("abs_max", "channel_wise_abs_max"):
            channels = 1 if way == "abs_max" else node.shape()[0]
            scale = create_like(graph, node, scale_name, [channels])
            op_type = f"fake_{'' if way == 'abs_max' else 'channel_wise_'}quantize_abs_max"
            insert(graph, op_type, {"X": node}, {"Out": steps, "OutScale": scale}, attrs)
        elif way == "moving_average_abs_max":
            rated = attrs | {"moving_rate": self._moving_rate}
            scale = self._insert_average(graph, f"fake_quantize_{way}", node, steps, scale_name, rated)
        else:
            scale = self._insert_range(graph, node, steps, scale_name, attrs)
        result = create_like(graph, steps, f"{steps.name()}.dequantized")
        if way == "channel_wise_abs_max":
            inputs: dict[str, Any] = {"X": steps, "Scales": [scale]}
            insert(graph, DEQUANTIZE[1], inputs, {"Out": result}, {"quant_bits": [bits]})
        else:
            inputs = {"X": steps, "Scale": scale}
            insert(graph, DEQUANTIZE[0], inputs, {"Out": result}, {"max_range": float(count_steps(bits))})
        return result

    def _insert_range(
        self, graph: IrGraph, node: IrVarNode, steps: IrVarNode, scale_name: str, attrs: dict[str, Any]
    ) -> IrVarNode:
        """Quantize by the largest value of the last steps; return the scale."""
        before = self._create_state(graph, scale_name, node.dtype(), 0.001)
        after = create_again(graph, before)
        inputs, outputs = {"X": node, "InScale": before}, {"Out": steps, "OutScale": after}
        if not graph.is_test():
            assert self._global_step is not None
            window = unique_name.generate("scales")
            outputs["OutScales"] = self._create_state(graph, window, node.dtype(), 0, self._window_size)
            inputs["Iter"] = self._global_step
        attrs = attrs | {"window_size": self._window_size, "is_test": graph.is_test()}
        insert(graph, "fake_quantize_range_abs_max", inputs, outputs, attrs)
        return after

    def _create_global_step(self, graph: IrGraph) -> None:
        name = "@STEP_COUNTER@"
        known = [node for node in graph.all_var_nodes() if node.name() == name]
        if known:
            self._global_step = known[-1]
        elif self._global_step is None:
            before = self._create_state(graph, name, VarType.INT64, 0)
            self._global_step = create_again(graph, before)
            insert(graph, "increment", {"X": before}, {"Out": self._global_step}, {"step": 1.0})

    # Functions of the caller

    def _insert_func(
        self, graph: IrGraph, func: Callable[[Variable], Variable], node: IrVarNode, op: IrOpNode
    ) -> IrVarNode:
        """Insert the result of ``func`` between a variable and its reader; return that result.

        In a training graph the gradient of the reader passes through the inserted operators.
        """
        program, startup = Program(), Program()
        with program_guard(program, startup), unique_name.guard(f"{node.name()}_"):
            given = data(f"{node.name()}_tmp_input", node.shape(), "float32")
            result = func(given)
            graph.out_node_mapping_table[result.name] = node.name()
            loss = mean(result)
            if not graph.is_test():
                if self._optimizer is None:
                    raise EnforceNotMet("QuantizationTransformPass: a graph that trains needs optimizer_func")
                given.stop_gradient = False
                self._optimizer().minimize(loss)
        if self._exe is None or self._scope is None:
            raise EnforceNotMet("QuantizationTransformPass: functions of your own need executor and scope")
        with scope_guard(self._scope):
            self._exe.run(startup)
        copied = _copy_nodes(graph, IrGraph(Graph(program.desc), graph.is_test()), given.name)
        out, head = copied[result.name], copied[given.name]
        for reader in head.outputs:
            graph.update_input_link(head, node, reader)
        graph.update_input_link(node, out, op)
        if not graph.is_test():
            _insert_gradients(graph, node, op, out, head, copied)
        last = copied[loss.name]
        graph.safe_remove_nodes([*last.inputs, last, head])
        return out


def _copy_nodes(graph: IrGraph, source: IrGraph, start: str) -> dict[str, IrVarNode]:
    """Copy all operators with their variables; return the last node of each variable by name.

    Operators are copied in the order in which they are reached, from the variable ``start``, then from
    parameters.
    """
    twins: dict[Any, Any] = {}

    def copy_value(node: IrVarNode) -> IrVarNode:
        if node not in twins:
            desc = node.var()
            create = graph.create_control_dep_var
            twins[node] = create() if desc is None else graph.create_var_node_from_desc(desc)
        return twins[node]  # type: ignore[no-any-return]

    def copy_operator(op: IrOpNode) -> None:
        waiting = [op]
        while waiting:
            op = waiting.pop()
            if op in twins:
                continue
            twins[op] = graph.create_op_node_from_desc(op.op())
            for node in op.inputs:
                graph.link_to(copy_value(node), twins[op])
            for node in op.outputs:
                graph.link_to(twins[op], copy_value(node))
            waiting += [reader for node in reversed(op.outputs) for reader in reversed(node.outputs)]

    values = source.all_var_nodes()
    first = [find_node([node for node in values if not node.inputs], start)]
    for node in [*first, *(node for node in values if not node.inputs and node.name() != start)]:
        for op in node.outputs:
            copy_operator(op)
    for op in source.all_op_nodes():
        copy_operator(op)
    return {node.name(): twins[node] for node in values if node in twins}


def _insert_gradients(
    graph: IrGraph,
    node: IrVarNode,
    op: IrOpNode,
    out: IrVarNode,
    head: IrVarNode,
    copied: Mapping[str, IrVarNode],
) -> None:
    """Lead the gradient of ``op``, which reads a variable, back to that variable through the copied
    operators.
    """
    gradient = find_node(graph.all_var_nodes(), f"{op.outputs[0].name()}@GRAD").outputs[0]
    of_out, of_head = copied[f"{out.name()}@GRAD"], copied[f"{head.name()}@GRAD"]
    graph.update_input_link(node, out, gradient)
    named = [one for one in gradient.outputs if f"{node.name()}@GRAD" in one.name()]
    of_node = named[-1] if named else None
    mean_grad = of_out.inputs[0]
    if of_node is None:
        graph.link_to(gradient, of_out)
    else:
        graph.update_output_link(of_node, of_out, gradient)
    for last in of_head.inputs:
        graph.update_input_link(head, node, last)
        if of_node is not None:
            graph.update_output_link(of_head, of_node, last)
    of_loss = mean_grad.inputs[0]
    graph.safe_remove_nodes([mean_grad, of_loss, of_loss.inputs[0], of_head])
