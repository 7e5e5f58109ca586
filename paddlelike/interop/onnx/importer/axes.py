"""Operators whose axes depend on the feeds: a branch for each possible choice."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from paddlelike.interop.onnx.importer.graph import Typed
from paddlelike.interop.onnx.importer.node import Node
from paddlelike.interop.reader_tables import InexpressibleError

if TYPE_CHECKING:
    from onnx import NodeProto

_REDUCTIONS: Final = frozenset(
    f"Reduce{kind}"
    for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)
#: The input that holds the axes.
_PLACES: Final = dict.fromkeys({*_REDUCTIONS, "CumProd", "CumSum", "Squeeze", "Unsqueeze"}, 1) | {"DFT": 2}
_MOST_CHOICES: Final = 24


def branch_by_axes(node: Node) -> list[NodeProto] | None:
    """Return nodes that compute the same with known axes; None if they are known already or cannot be
    listed.
    """
    place = _PLACES.get(node.type, 0)
    if not place or not node.has(place) or node.graph.opsets.get("", 1) < 13:
        return None
    try:
        node.known(place)
    except InexpressibleError:
        dims = node.dims(place)
    else:
        return None
    count = dims[0] if dims else 1
    if count < 0:
        return None
    rank = node.rank() + (count if node.type == "Unsqueeze" else 0)
    choices = list(combinations(range(rank - (node.type == "DFT")), count))  # not of real and imaginary
    if node.type == "Squeeze":  # other dims are not of size 1
        choices = [one for one in choices if all(node.dims()[axis] in (1, -1) for axis in one)]
    if not 0 < len(choices) <= _MOST_CHOICES:
        return None
    return _Branches(node, rank, bool(dims)).build(choices)


class _Branches:
    """The nodes that replace one node: they compute a number for the axes, and branch on it."""

    def __init__(self, node: Node, rank: int, is_list: bool) -> None:
        self._node = node
        self._rank = rank
        self._is_list = is_list
        self._place = _PLACES[node.type]
        self._name = f"{node.proto.output[0]}__axes"

    def build(self, choices: list[tuple[int, ...]]) -> list[NodeProto]:
        output = self._node.proto.output[0]
        if len(choices) == 1:
            return self._compute(choices[0], output)
        from onnx import helper

        powers = self._constant("powers", [2**axis for axis in range(self._rank)])
        picked = helper.make_node(
            "Gather", [powers.output[0], self._node.proto.input[self._place]], [self._name]
        )
        nodes, code = [powers, picked], self._name
        if self._is_list:
            code = f"{self._name}_code"
            zero = self._constant("zero", [0])
            nodes += [zero, helper.make_node("ReduceSum", [self._name, zero.output[0]], [code], keepdims=0)]
        return nodes + self._compare(code, choices, output)

    def _compare(self, code: str, choices: list[tuple[int, ...]], output: str) -> list[NodeProto]:
        """Return the nodes that select the first choice, or else one of the others, by the number of the
        axes.
        """
        from onnx import helper

        if len(choices) == 1:
            return self._compute(choices[0], output)
        number = sum(2**axis for axis in choices[0])
        wanted = self._constant(f"is_{number}", number)
        test = f"{self._name}_test_{number}"
        inner = {side: f"{self._name}_{side}_{number}" for side in ("then", "else")}
        sides = {
            "then": self._compute(choices[0], inner["then"]),
            "else": self._compare(code, choices[1:], inner["else"]),
        }
        graphs: dict[str, Any] = {
            f"{side}_branch": helper.make_graph(
                nodes, inner[side], [], [helper.make_empty_tensor_value_info(inner[side])]
            )
            for side, nodes in sides.items()
        }
        self._note_type(output, len(choices[0]))
        equal = helper.make_node("Equal", [code, wanted.output[0]], [test])
        return [wanted, equal, helper.make_node("If", [test], [output], **graphs)]

    def _compute(self, axes: tuple[int, ...], output: str) -> list[NodeProto]:
        """Return the node, with these axes as constants."""
        constant = self._constant("_".join(map(str, axes)), list(axes) if self._is_list else axes[0])
        made = type(self._node.proto)()
        made.CopyFrom(self._node.proto)
        made.input[self._place], made.output[0] = constant.output[0], output
        return [constant, made]

    def _constant(self, name: str, value: int | list[int]) -> NodeProto:
        from onnx import helper, numpy_helper

        array = numpy_helper.from_array(np.array(value, np.int64))
        return helper.make_node("Constant", [], [f"{self._name}_{name}"], value=array)

    def _note_type(self, output: str, count: int) -> None:
        """Record the number of dims of the result, which does not depend on the axes."""
        node = self._node
        typed = node.graph.typed.get(output)
        if typed is not None and typed.dims is not None:
            return
        kept = node.type in _REDUCTIONS and node.attr("keepdims", 1)
        rank = self._rank if kept or node.type == "Unsqueeze" else self._rank - count
        dims = node.dims() if node.type.startswith("Cum") else (-1,) * rank
        node.graph.typed[output] = Typed(None if typed is None else typed.dtype, dims)
