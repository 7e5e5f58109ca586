"""Weights of a recurrent layer that are fed or computed: operators cut, transpose and join them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.node import Node
from paddlelike.interop.reader_tables import InexpressibleError

Weights = Any  # Array | Expression: the same expressions work on both


def find_weights(node: Node, index: int) -> Weights:
    """Return an input as an array, or as an expression if operators compute it."""
    try:
        return node.known(index)
    except InexpressibleError:
        if node.dtype(index).kind != "f" or -1 in node.dims(index):
            raise
        return node.input(index)


def join(parts: Sequence[Weights]) -> Weights:
    """Return parts joined along the first dim."""
    first = next((one for one in parts if isinstance(one, Expression)), None)
    if first is None:
        return np.concatenate(parts)
    joined = first.graph.emit("concat", {"X": [first.lift(one) for one in parts]}, {"axis": 0})
    return Expression(first.graph, joined[0])


def store(node: Node, wanted: str, weights: Weights) -> Expression:
    """Return the variable of some weights: a named parameter, or the computed variable."""
    return weights if isinstance(weights, Expression) else node.parameter(wanted, weights)


def place(node: Node, weights: Weights) -> Expression:
    """Return the variable of some weights; it is a constant if they are known."""
    return weights if isinstance(weights, Expression) else node.constant(weights, weights.dtype)
