"""Values of earlier and later steps, and loops through them: recurrent networks.

The functions of a loop become the block of a DynamicRNN. A value of an earlier step is a memory of it; for
one of a later step the sequences are reversed around the block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from paddlelike.framework.graph.variable import Variable
from paddlelike.interop.cntk.function import Function, Node, split_output
from paddlelike.interop.cntk.operations import NUMBERS
from paddlelike.interop.cntk.reading.step import InexpressibleError, Value
from paddlelike.layers.emit import emit
from paddlelike.layers.recurrent.dynamic_rnn import DynamicRNN

__all__ = ["SHIFTS", "add_recurrence"]

_PAST, _FUTURE = NUMBERS["PastValue"], NUMBERS["FutureValue"]
SHIFTS: Final = (_PAST, _FUTURE)

Read = Callable[[Node, Mapping[str, Value]], dict[str, Value]]


def add_recurrence(
    function: Function, group: Sequence[Node], values: Mapping[str, Value], read: Read
) -> dict[str, Value]:
    """Append the operators of a loop, or of one value of another step; return its outputs by uid.

    Raises InexpressibleError for loops in both directions, and for states whose shape the file does not say.
    """
    shifts = [node for node in group if node.op in SHIFTS]
    if len({node.op for node in shifts}) != 1:
        raise InexpressibleError("it is part of a loop through earlier and later steps")
    backwards = shifts[0].op == _FUTURE
    inside = {node.uid for node in group}
    outside = [uid for node in group for uid in node.inputs if split_output(uid)[0] not in inside]
    given = {uid: values[uid] for uid in dict.fromkeys(outside)}
    if not any(value.sequence for value in given.values()):
        raise InexpressibleError("no sequence goes into the loop")
    turned = {
        uid: _reverse(value.variable) if backwards and value.sequence else value.variable
        for uid, value in given.items()
    }
    shapes = {node.uid: _find_state(function, node, given) for node in shifts}
    rnn = DynamicRNN()
    with rnn.block():
        local = {
            uid: value._replace(variable=rnn.step_input(turned[uid]), sequence=False)
            for uid, value in given.items()
            if value.sequence
        }
        for uid, value in given.items():
            if not value.sequence:
                fixed = rnn.static_input(value.variable) if value.dynamic else value.variable
                local[uid] = value._replace(variable=fixed)
        memories = {node.uid: _add_memories(rnn, function, node, given, shapes[node.uid]) for node in shifts}
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


def _add_memories(
    rnn: DynamicRNN, function: Function, node: Node, given: Mapping[str, Value], shape: tuple[int, ...]
) -> list[Variable]:
    """Return the states of the last steps, the newest first: as many as the offset."""
    offset = node.attributes.get("offset")
    if not isinstance(offset, int) or not 0 < offset < 1000 or len(node.inputs) != 2:
        raise InexpressibleError(f"its offset is {offset}")
    initial = node.inputs[1]
    leaf = function.leaves.get(initial)
    dtype = given[initial].variable.dtype if initial in given else "float32"
    options: dict[str, Any]
    if leaf is not None and leaf.value is not None and np.ptp(leaf.value) == 0:
        options = {"shape": list(shape), "value": float(leaf.value.flat[0]), "dtype": dtype}
    elif initial in given and given[initial].dynamic and given[initial].shape == shape:
        options = {"init": given[initial].variable, "need_reorder": True}
    else:
        raise InexpressibleError("its initial state is neither one number nor a value for each sequence")
    return [rnn.memory(**options) for _ in range(offset)]


def _sort(group: Sequence[Node], known: set[str]) -> list[Node]:
    """Return the functions of a step in an order in which each comes after those it reads."""
    import networkx as nx

    nodes = {node.uid: node for node in group if node.op not in SHIFTS}
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(nodes)
    for node in nodes.values():
        owners = (split_output(uid)[0] for uid in node.inputs if uid not in known)
        graph.add_edges_from((owner, node.uid) for owner in owners)
    return [nodes[uid] for uid in nx.topological_sort(graph)]


def _find_read(function: Function, group: Sequence[Node], local: Mapping[str, Value]) -> list[str]:
    """Return the outputs of a loop that are read outside of it."""
    inside = {node.uid for node in group}
    read = {uid for node in function.nodes.values() if node.uid not in inside for uid in node.inputs}
    read |= set(function.outputs)
    return [uid for uid in local if uid in read and split_output(uid)[0] in inside]
