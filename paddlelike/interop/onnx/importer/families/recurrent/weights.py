"""Weights of a recurrent layer that are fed or computed: operators cut, turn and join them as numpy does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.node import Node
from paddlelike.interop.reader_tables import InexpressibleError

Weights = Any  # Array | Expression: the same expressions work on both


def find_weights(node: Node, index: int) -> Weights:
    """Return an input as an array, or as one that operators compute."""
    try:
        return node.known(index)
    except InexpressibleError:
        if node.dtype(index).kind != "f" or -1 in node.dims(index):
            raise
        return Expression(node, node.input(index))


def join(parts: Sequence[Weights]) -> Weights:
    """Return parts joined along the first dim."""
    first = next((one for one in parts if isinstance(one, Expression)), None)
    if first is None:
        return np.concatenate(parts)
    return first.make("concat", [place(first.node, one) for one in parts], axis=0)


def store(node: Node, wanted: str, weights: Weights) -> str:
    """Return the variable of weights: a parameter of a name, or the one that was computed."""
    return weights.name if isinstance(weights, Expression) else node.graph.add_parameter(wanted, weights)


def place(node: Node, weights: Weights) -> str:
    """Return the variable of weights, a constant if they are known."""
    return weights.name if isinstance(weights, Expression) else node.constant(weights, weights.dtype)
