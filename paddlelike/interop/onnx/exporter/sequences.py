"""Sequences in ONNX graphs: concatenated rows with their lengths, like a LoD, and padded batches.

Inside of a graph a variable with a LoD has the same rows as in Fluid, ``(sum of lengths, ...)``, with the
lengths ``(N,)`` beside it. ONNX's recurrent layers, and the feeds of a model, are a batch ``(N, T, ...)``, in
which every sequence has T steps and zeros after its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from paddlelike.interop.onnx.exporter.graph import Graph

if TYPE_CHECKING:
    from paddlelike.core import Array

Add = Callable[..., str]


def _adder(graph: Graph) -> Add:
    def add(kind: str, *inputs: str, **attrs: Any) -> str:
        return graph.add(kind, inputs, **attrs)[0]

    return add


def _ints(graph: Graph, *values: int) -> str:
    return graph.add_constant(np.array(values, np.int64))


def make_mask(graph: Graph, lengths: str, steps: str | None = None) -> str:
    """Return a mask ``(N, T)`` of existing steps, for the first ``steps`` (a scalar; None: the longest)
    steps.
    """
    add = _adder(graph)
    if steps is None:
        steps = add("ReduceMax", lengths, keepdims=0)
    zero, one = (graph.add_constant(np.array(number, np.int64)) for number in (0, 1))
    places = add("Unsqueeze", add("Range", zero, steps, one), _ints(graph, 0))
    return add("Less", places, add("Unsqueeze", lengths, _ints(graph, 1)))


def unpad_rows(graph: Graph, padded: str, lengths: str) -> str:
    """Return the rows of a batch ``(N, T, ...)``."""
    add = _adder(graph)
    shape = add("Shape", padded)
    steps = add("Squeeze", add("Slice", shape, _ints(graph, 1), _ints(graph, 2)), _ints(graph, 0))
    mask = add("Reshape", make_mask(graph, lengths, steps), _ints(graph, -1))
    rest = add("Slice", shape, _ints(graph, 2), _ints(graph, np.iinfo(np.int64).max))
    rows = add("Reshape", padded, add("Concat", _ints(graph, -1), rest, axis=0))
    return add("Compress", rows, mask, axis=0)


def pad_rows(graph: Graph, rows: str, lengths: str, *, value: Array, steps: str | None = None) -> str:
    """Return rows as a batch ``(N, T, ...)``, padded with ``value`` (a number of the rows' type)."""
    add = _adder(graph)
    mask = make_mask(graph, lengths, steps)
    size, rest = add("Shape", mask), add("Slice", add("Shape", rows), _ints(graph, 1), _ints(graph, 99))
    places = add("Transpose", add("NonZero", add("Reshape", mask, _ints(graph, -1))), perm=[1, 0])
    count = add("ReduceProd", size, keepdims=1)
    blank = add("Expand", graph.add_constant(value), add("Concat", count, rest, axis=0))
    filled = add("ScatterND", blank, places, rows)
    return add("Reshape", filled, add("Concat", size, rest, axis=0))


def find_owners(graph: Graph, lengths: str) -> tuple[str, str]:
    """Return, for each row, the index of its sequence and the row's position in it."""
    add = _adder(graph)
    owners, places = graph.add(
        "Split", [add("NonZero", make_mask(graph, lengths)), _ints(graph, 1, 1)], count=2, axis=0
    )
    return add("Reshape", owners, _ints(graph, -1)), add("Reshape", places, _ints(graph, -1))
