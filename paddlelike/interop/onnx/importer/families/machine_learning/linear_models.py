"""Linear and kernel models of classic machine learning, as scikit-learn's converter writes them.

Operators: https://onnx.ai/onnx/operators/ (domain ai.onnx.ml).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.node import ML, Node, reads
from paddlelike.interop.reader_tables import InexpressibleError


def as_float(node: Node) -> str:
    """Return the input as float32, the type that these models compute in."""
    return node.cast(node.input(), VarType.FP32)


def transform(node: Node, scores: str) -> str:
    """Return the scores after the node's ``post_transform``."""
    kind = node.attr("post_transform", "NONE")
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return node.emit("sigmoid", scores)
    if kind == "SOFTMAX":
        return node.emit("softmax", scores, axis=-1)
    raise InexpressibleError(f"post_transform is {kind}")


def give_label(node: Node, places: str, count: int) -> None:
    """Set the output to the label of each class index; for text labels, to the index itself."""
    texts = node.attr("classlabels_strings")
    whole = node.attr("classlabels_int64s") or node.attr("classlabels_ints")
    if texts or not whole:
        node.give(node.reshape(places, -1))
        return
    if len(whole) != count:
        node.fail(f"{len(whole)} labels for {count} classes")
    if whole == list(range(count)):
        node.give(node.reshape(places, -1))
        return
    labels = node.constant(whole, np.int64)
    node.give(node.emit("gather", {"X": labels, "Index": node.reshape(places, -1)}))


def find_best(node: Node, scores: str) -> str:
    """Return the class with the largest score, ``(N, 1)``."""
    return node.emit("arg_max", scores, axis=1, keepdims=True, dtype=int(VarType.INT64))


@reads(f"{ML}LinearRegressor")
def _read_linear_regressor(node: Node) -> str:
    targets = node.attr("targets", 1)
    weights = np.array(node.attr("coefficients"), np.float32).reshape(targets, -1)
    out = node.emit("mul", as_float(node), node.graph.add_parameter("coefficients", weights.T))
    bias = np.array(node.attr("intercepts") or [0] * targets, np.float32)
    out = node.emit("elementwise_add", out, node.graph.add_parameter("intercepts", bias))
    return transform(node, out)


@reads(f"{ML}LinearClassifier")
def _read_linear_classifier(node: Node) -> None:
    """Read a linear classifier. With one row of coefficients there are two classes; it scores the second."""
    bias = np.array(node.attr("intercepts"), np.float32)
    weights = np.array(node.attr("coefficients"), np.float32).reshape(len(bias), -1)
    scores = node.emit("mul", as_float(node), node.graph.add_parameter("coefficients", weights.T))
    scores = node.emit("elementwise_add", scores, node.graph.add_parameter("intercepts", bias))
    classes = max(
        len(node.attr("classlabels_ints") or []), len(node.attr("classlabels_strings") or []), len(bias)
    )
    if len(bias) == 1 and classes == 2:
        binary = node.attr("post_transform", "NONE")
        other = (
            node.scale(node.emit("sigmoid", scores), -1, 1)
            if binary == "LOGISTIC"
            else node.scale(scores, -1)
        )
        first = node.emit("sigmoid", scores) if binary == "LOGISTIC" else scores
        both = node.emit("concat", [other, first], axis=1)
        out = node.emit("softmax", both, axis=-1) if binary == "SOFTMAX" else both
    else:
        both, out = scores, transform(node, scores)
    if node.wants(0):
        give_label(node, find_best(node, both), classes)
    node.give(out, 1)


@reads(f"{ML}Scaler")
def _read_scaler(node: Node) -> str:
    offset, scale = (np.array(node.attr(name), np.float32) for name in ("offset", "scale"))
    moved = node.emit("elementwise_sub", as_float(node), node.constant(offset, np.float32))
    return node.emit("elementwise_mul", moved, node.constant(scale, np.float32))


_NORMS: Final = {"MAX": ("abs", "max"), "L1": ("abs", "sum"), "L2": ("square", "sum")}


@reads(f"{ML}Normalizer")
def _read_normalizer(node: Node) -> str:
    """Normalize rows; a row of zeros stays unchanged."""
    kind = node.attr("norm", "MAX")
    before, reduction = _NORMS[kind]
    x = as_float(node)
    size = node.reduce(reduction, x if kind == "MAX" else node.emit(before, x), 1)
    size = node.emit("sqrt", size) if kind == "L2" else size
    none = node.cast(node.emit("equal", size, node.constant([0], np.float32), axis=-1), VarType.FP32)
    return node.emit("elementwise_div", x, node.emit("elementwise_add", size, none))


@reads(f"{ML}ArrayFeatureExtractor")
def _read_extractor(node: Node) -> str:
    """Extract columns of the last dim."""
    places, rank = node.reshape(node.cast(node.input(1), VarType.INT64), -1), node.rank()
    if rank == 1:
        out = node.emit("gather", {"X": node.input(), "Index": places})
        return node.unsqueeze(out, 0)
    return node.emit("index_select", {"X": node.input(), "Index": places}, dim=rank - 1)


@reads(f"{ML}ZipMap")
def _read_zip_map(node: Node) -> None:
    """Return the probabilities as an array, because Fluid has no dicts."""
    node.alias(node.value())


@reads(f"{ML}Binarizer")
def _read_binarizer(node: Node) -> str:
    limit = node.like(node.attr("threshold", 0.0))
    return node.cast(node.emit("greater_than", node.input(), limit, axis=-1), node.dtype())
