"""Sequences in ONNX graphs: concatenated rows with their lengths, like a LoD, and padded batches.

In a graph a variable with a LoD has the same rows as in Fluid, ``(sum of lengths, ...)``, with the lengths
``(N,)`` beside it. ONNX's recurrent layers, and the feeds of a model, take a batch ``(N, T, ...)``, where
every sequence has T steps with zeros after its end.
"""

from __future__ import annotations

from paddlelike.core import Array
from paddlelike.interop.onnx.exporter.graph import Value


def make_mask(lengths: Value, steps: Value | None = None) -> Value:
    """Return a mask ``(N, T)`` of existing steps, for the first ``steps`` (a scalar; None means the longest)
    steps.
    """
    if steps is None:
        steps = lengths.graph.add("ReduceMax", lengths, keepdims=0)
    return steps.range().unsqueeze(0) < lengths.unsqueeze(1)


def unpad_rows(padded: Value, lengths: Value) -> Value:
    """Return the rows of a batch ``(N, T, ...)``."""
    graph, shape = padded.graph, padded.dims()
    mask = make_mask(lengths, shape[1:2].squeeze(0)).reshape(-1)
    return padded.reshape(graph.concat(graph.ints(-1), shape[2:]))[mask]


def pad_rows(rows: Value, lengths: Value, *, value: Array, steps: Value | None = None) -> Value:
    """Return rows as a batch ``(N, T, ...)``, padded with ``value`` (a number of the rows' type)."""
    graph, mask = rows.graph, make_mask(lengths, steps)
    size, rest = mask.dims(), rows.dims(1, 99)
    places = graph.add("NonZero", mask.reshape(-1)).transpose([1, 0])
    count = graph.add("ReduceProd", size, keepdims=1)
    blank = graph.constant(value, value.dtype).expand(graph.concat(count, rest))
    return graph.add("ScatterND", blank, places, rows).reshape(graph.concat(size, rest))


def find_owners(lengths: Value) -> tuple[Value, Value]:
    """Return, for each row, the index of its sequence and the row's position in it."""
    add, mask = lengths.graph.add_several, make_mask(lengths)
    found = lengths.graph.add("NonZero", mask)
    owners, places = add("Split", found, lengths.graph.ints(1, 1), count=2, axis=0)
    return owners.reshape(-1), places.reshape(-1)
