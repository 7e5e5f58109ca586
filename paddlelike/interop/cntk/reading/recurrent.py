"""Loops through earlier and later steps, and stacked recurrent layers of CNTK."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.framework import Variable
from paddlelike.interop.cntk.function import CONSTANT, Function, Node, split_output
from paddlelike.interop.cntk.operations import NUMBERS
from paddlelike.interop.cntk.reading.step import Step, Value, reads
from paddlelike.interop.reader_tables import InexpressibleError
from paddlelike.layers.emit import emit
from paddlelike.layers.recurrent.dynamic_rnn import DynamicRNN

_PAST, _FUTURE = NUMBERS["PastValue"], NUMBERS["FutureValue"]
SHIFTS: Final = (_PAST, _FUTURE)

Read = Callable[[Node, Mapping[str, Value]], dict[str, Value]]


def add_recurrence(
    function: Function, group: Sequence[Node], values: Mapping[str, Value], read: Read
) -> dict[str, Value]:
    """Append the operators of a loop, or of a single read of another step; return its outputs by uid.

    Raises InexpressibleError for loops in both directions, and for states whose shape is not in the file.
    """
    shifts = [node for node in group if node.op in SHIFTS]
    if len({node.op for node in shifts}) != 1:
        raise InexpressibleError("it is part of a loop that reads both earlier and later steps")
    backwards = shifts[0].op == _FUTURE
    inside = {node.uid for node in group}
    outside = [uid for node in group for uid in node.inputs if split_output(uid)[0] not in inside]
    given = {uid: values[uid] for uid in dict.fromkeys(outside)}
    read_in_steps = {uid for node in group for uid in node.inputs[: 1 if node.op in SHIFTS else None]}
    stepped = {uid: value for uid, value in given.items() if value.sequence and uid in read_in_steps}
    if not stepped:
        raise InexpressibleError("the loop reads no sequence")
    starts = {
        node.uid: _find_start(function, node, given, next(iter(stepped.values())), backwards)
        for node in shifts
    }
    turned = {
        uid: _reverse(value.variable) if backwards else value.variable for uid, value in stepped.items()
    }
    shapes = {node.uid: _find_state(function, node, given) for node in shifts}
    rnn = DynamicRNN()
    with rnn.block():
        local = {
            uid: value._replace(variable=rnn.step_input(turned[uid]), sequence=False)
            for uid, value in stepped.items()
        }
        for uid, value in given.items():
            if not value.sequence and uid in read_in_steps:
                fixed = rnn.static_input(value.variable) if value.dynamic else value.variable
                local[uid] = value._replace(variable=fixed)
        memories = {node.uid: _add_memories(rnn, node, starts[node.uid], shapes[node.uid]) for node in shifts}
        for node in shifts:
            before = Value(memories[node.uid][-1], dynamic=True, sequence=False, rank=len(shapes[node.uid]))
            local[f"{node.uid}_Output_0"] = before
        for node in _sort(group, set(local)):
            local.update(read(node, local))
        for node in shifts:
            chain = [local[node.inputs[0]].variable, *memories[node.uid]]
            for newer, older in pairwise(chain):
                rnn.update_memory(older, newer)
        kept = _find_read(function, group, local)
        rnn.output(*(local[uid].variable for uid in kept))
    made = rnn()
    steps = made if isinstance(made, list) else [made]
    return {
        uid: local[uid]._replace(variable=_reverse(step) if backwards else step, sequence=True)
        for uid, step in zip(kept, steps, strict=True)
    }


def _reverse(x: Variable) -> Variable:
    return emit("sequence_reverse", {"X": x}, slot="Y")


def _find_state(function: Function, node: Node, given: Mapping[str, Value]) -> tuple[int, ...]:
    """Return the static shape of a state."""
    source = node.inputs[0]
    if source in given:
        return given[source].shape
    shape = function.find_shape(f"{node.uid}_Output_0") or function.find_shape(source)
    if shape is None or -1 in shape:
        raise InexpressibleError("the file does not say the shape of its state")
    return shape


def _find_start(
    function: Function, node: Node, given: Mapping[str, Value], steps: Value, backwards: bool
) -> Variable | tuple[float, Any]:
    """Return the state before the first step: one row per sequence, or a number and its dtype."""
    offset = node.attributes.get("offset")
    if not isinstance(offset, int) or not 0 < offset < 1000 or len(node.inputs) != 2:
        raise InexpressibleError(f"its offset is {offset}")
    if node.inputs[1] not in given:
        raise InexpressibleError("its initial state is computed in the loop")
    leaf, value = function.leaves.get(node.inputs[1]), given[node.inputs[1]]
    if leaf is not None and leaf.kind == CONSTANT and np.ptp(leaf.value) == 0:
        return float(leaf.value.flat[0]), value.variable.dtype
    step = Step(node, [steps], batch=None)
    if value.sequence:
        if offset > 1:
            raise InexpressibleError(f"its initial state is a sequence, and its offset {offset}")
        return step.pool_sequence(value.variable, "FIRST" if backwards else "LAST")
    if value.dynamic:
        return value.variable
    first = steps._replace(variable=step.pool_sequence(steps.variable, "FIRST"), sequence=False)
    return step.repeat(value, first)


def _add_memories(
    rnn: DynamicRNN, node: Node, start: Variable | tuple[float, Any], shape: tuple[int, ...]
) -> list[Variable]:
    """Return the states of the last steps, the newest first; there are as many as the offset."""
    options: dict[str, Any]
    if isinstance(start, Variable):
        if tuple(start.shape[1:]) != shape:
            raise InexpressibleError(
                f"its initial state has shape {list(start.shape[1:])}, not {list(shape)}"
            )
        options = {"init": start, "need_reorder": True}
    else:
        options = {"shape": list(shape), "value": start[0], "dtype": start[1]}
    return [rnn.memory(**options) for _ in range(node.attributes["offset"])]


def _sort(group: Sequence[Node], known: set[str]) -> list[Node]:
    """Return the functions of a step in an order in which each follows the functions that it reads."""
    import networkx as nx

    nodes = {node.uid: node for node in group if node.op not in SHIFTS}
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(nodes)
    for node in nodes.values():
        owners = (split_output(uid)[0] for uid in node.inputs if uid not in known)
        graph.add_edges_from((owner, node.uid) for owner in owners)
    return [nodes[uid] for uid in nx.topological_sort(graph)]


def _find_read(function: Function, group: Sequence[Node], local: Mapping[str, Value]) -> list[str]:
    """Return the outputs of a loop that other functions read."""
    inside = {node.uid for node in group}
    read = {uid for node in function.nodes.values() if node.uid not in inside for uid in node.inputs}
    read |= set(function.outputs)
    return [uid for uid in local if uid in read and split_output(uid)[0] in inside]


_GATES: Final = {"lstm": 4, "gru": 3, "rnnReLU": 1, "rnnTanh": 1}


class Cell(NamedTuple):
    """One layer in one direction: matrices ``(in or hidden, gates * hidden)``, and biases."""

    of_input: Variable
    of_state: Variable
    biases: tuple[Variable, Variable]


@reads("OptimizedRNNStack")
def _read_stack(step: Step) -> Value:
    value, kind = step.value(), step.attr("recurrentOp", str)
    if not value.sequence or value.rank != 1 or kind not in _GATES:
        step.refuse(f"its input is not a sequence of rows, or it is a {kind}")
    hidden, layers = int(step.attr("hiddenSize", int)), int(step.attr("numLayers", int))
    directions = 2 if step.attr("bidirectional", bool) else 1
    cells = _cut_weights(step, _GATES[kind] * hidden, hidden, layers, directions)
    x = value.variable
    for _ in range(layers):
        outs = [_run(step, kind, x, next(cells), hidden, backwards=bool(one)) for one in range(directions)]
        x = step.emit("concat", {"X": outs}, {"axis": 1}) if directions == 2 else outs[0]
    return step.give(x)


def _cut_weights(step: Step, rows: int, hidden: int, layers: int, directions: int) -> Iterator[Cell]:
    flat = step.reshape_all(step.value(1).variable, [-1])
    widths = [step.value().shape[0]] + [hidden * directions] * (layers - 1)
    matrices = [width for width, _ in product(widths, range(directions)) for width in (width, hidden)]
    total = rows * (sum(matrices) + len(matrices))
    if flat.shape[0] != total:
        step.refuse(f"its weights are {flat.shape[0]} numbers; its layers have {total}")
    start, parts = 0, []
    for width in [*matrices, *[1] * len(matrices)]:
        attrs = {"axes": [0], "starts": [start], "ends": [start + rows * width], "decrease_axis": []}
        part = step.emit("slice", {"Input": flat}, attrs)
        parts.append(step.transpose(step.reshape_all(part, [rows, width]), [1, 0]))
        start += rows * width
    half = len(matrices)
    for index in range(0, half, 2):
        biases = parts[half + index], parts[half + index + 1]
        yield Cell(parts[index], parts[index + 1], biases)


def _multiply(step: Step, x: Variable, matrix: Variable, bias: Variable) -> Variable:
    product = step.emit("mul", {"X": x, "Y": matrix}, {"x_num_col_dims": 1, "y_num_col_dims": 1})
    return step.binary("elementwise_add", product, bias)


def _run(step: Step, kind: str, x: Variable, cell: Cell, hidden: int, *, backwards: bool) -> Variable:
    """Return the states of all steps."""
    if backwards:
        x = step.emit("sequence_reverse", {"X": x}, slot="Y")
    projected = _multiply(step, x, cell.of_input, cell.biases[0])
    rnn = DynamicRNN()
    with rnn.block():
        given = rnn.step_input(projected)
        state = rnn.memory(shape=[hidden], dtype=x.dtype)
        moved = _multiply(step, state, cell.of_state, cell.biases[1])
        if kind == "lstm":
            memory = rnn.memory(shape=[hidden], dtype=x.dtype)
            new, kept = _step_lstm(step, step.binary("elementwise_add", given, moved), memory, hidden)
            rnn.update_memory(memory, kept)
        elif kind == "gru":
            new = _step_gru(step, given, moved, state, hidden)
        else:
            total = step.binary("elementwise_add", given, moved)
            new = step.unary("relu" if kind == "rnnReLU" else "tanh", total)
        rnn.update_memory(state, new)
        rnn.output(new)
    out: Variable = rnn()
    return step.emit("sequence_reverse", {"X": out}, slot="Y") if backwards else out


def _split(step: Step, x: Variable, hidden: int, count: int) -> list[Variable]:
    starts = range(0, hidden * count, hidden)
    attrs = ({"axes": [1], "starts": [one], "ends": [one + hidden], "decrease_axis": []} for one in starts)
    return [step.emit("slice", {"Input": x}, each) for each in attrs]


def _step_lstm(step: Step, total: Variable, memory: Variable, hidden: int) -> tuple[Variable, Variable]:
    entry, forget, candidate, exit_ = _split(step, total, hidden, 4)
    old = step.binary("elementwise_mul", step.unary("sigmoid", forget), memory)
    new = step.binary("elementwise_mul", step.unary("sigmoid", entry), step.unary("tanh", candidate))
    kept = step.binary("elementwise_add", old, new)
    return step.binary("elementwise_mul", step.unary("sigmoid", exit_), step.unary("tanh", kept)), kept


def _step_gru(step: Step, given: Variable, moved: Variable, state: Variable, hidden: int) -> Variable:
    """Compute a GRU step. The reset gate is applied after the product with the state, unlike in
    ``dynamic_gru``.
    """
    ours, theirs = _split(step, given, hidden, 3), _split(step, moved, hidden, 3)
    reset, update = (
        step.unary("sigmoid", step.binary("elementwise_add", *pair))
        for pair in zip(ours[:2], theirs[:2], strict=True)
    )
    candidate = step.binary("elementwise_mul", reset, theirs[2])
    candidate = step.unary("tanh", step.binary("elementwise_add", ours[2], candidate))
    change = step.binary("elementwise_mul", update, step.binary("elementwise_sub", state, candidate))
    return step.binary("elementwise_add", candidate, change)
