"""Linear and kernel models of classic machine learning, as scikit-learn's converter writes them.

Operators: https://onnx.ai/onnx/operators/ (domain ai.onnx.ml).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.node import ML, Node, reads
from paddlelike.interop.reader_tables import InexpressibleError


def as_float(node: Node) -> Expression:
    """Return the input as float32, the type that these models compute in."""
    return node.input().cast(VarType.FP32)


def transform(node: Node, scores: Expression) -> Expression:
    """Return the scores after the node's ``post_transform``."""
    kind = node.attr("post_transform", "NONE")
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return node.emit("sigmoid", scores)
    if kind == "SOFTMAX":
        return node.emit("softmax", scores, axis=-1)
    raise InexpressibleError(f"post_transform is {kind}")


def give_label(node: Node, places: Expression, count: int) -> None:
    """Set the output to the label of each class index; for text labels, to the index itself."""
    texts = node.attr("classlabels_strings")
    whole = node.attr("classlabels_int64s") or node.attr("classlabels_ints")
    if texts or not whole:
        node.give(places.reshape(-1))
        return
    if len(whole) != count:
        node.fail(f"{len(whole)} labels for {count} classes")
    if whole == list(range(count)):
        node.give(places.reshape(-1))
        return
    labels = node.constant(whole, np.int64)
    node.give(labels.gather(places.reshape(-1)))


def find_best(node: Node, scores: Expression) -> Expression:
    """Return the class with the largest score, ``(N, 1)``."""
    return node.emit("arg_max", scores, axis=1, keepdims=True, dtype=int(VarType.INT64))


@reads(f"{ML}LinearRegressor")
def _read_linear_regressor(node: Node) -> Expression:
    targets = node.attr("targets", 1)
    weights = np.array(node.attr("coefficients"), np.float32).reshape(targets, -1)
    out = node.emit("mul", as_float(node), node.parameter("coefficients", weights.T))
    bias = np.array(node.attr("intercepts") or [0] * targets, np.float32)
    out = out + node.parameter("intercepts", bias)
    return transform(node, out)


@reads(f"{ML}LinearClassifier")
def _read_linear_classifier(node: Node) -> None:
    """Read a linear classifier. With one row of coefficients there are two classes; it scores the second."""
    bias = np.array(node.attr("intercepts"), np.float32)
    weights = np.array(node.attr("coefficients"), np.float32).reshape(len(bias), -1)
    scores = node.emit("mul", as_float(node), node.parameter("coefficients", weights.T))
    scores = scores + node.parameter("intercepts", bias)
    classes = max(
        len(node.attr("classlabels_ints") or []), len(node.attr("classlabels_strings") or []), len(bias)
    )
    if len(bias) == 1 and classes == 2:
        binary = node.attr("post_transform", "NONE")
        other = node.emit("sigmoid", scores).scale(-1, 1) if binary == "LOGISTIC" else scores.scale(-1)
        first = node.emit("sigmoid", scores) if binary == "LOGISTIC" else scores
        both = node.emit("concat", [other, first], axis=1)
        out = node.emit("softmax", both, axis=-1) if binary == "SOFTMAX" else both
    else:
        both, out = scores, transform(node, scores)
    if node.wants(0):
        give_label(node, find_best(node, both), classes)
    node.give(out, 1)


@reads(f"{ML}Scaler")
def _read_scaler(node: Node) -> Expression:
    offset, scale = (np.array(node.attr(name), np.float32) for name in ("offset", "scale"))
    moved = as_float(node) - node.constant(offset, np.float32)
    return moved * node.constant(scale, np.float32)


_NORMS: Final = {"MAX": ("abs", "max"), "L1": ("abs", "sum"), "L2": ("square", "sum")}


@reads(f"{ML}Normalizer")
def _read_normalizer(node: Node) -> Expression:
    """Normalize rows; a row of zeros stays unchanged."""
    kind = node.attr("norm", "MAX")
    before, reduction = _NORMS[kind]
    x = as_float(node)
    size = (x if kind == "MAX" else node.emit(before, x)).reduce(reduction, 1)
    size = node.emit("sqrt", size) if kind == "L2" else size
    none = node.emit("equal", size, node.constant([0], np.float32), axis=-1).cast(VarType.FP32)
    return x / (size + none)


@reads(f"{ML}ArrayFeatureExtractor")
def _read_extractor(node: Node) -> Expression:
    """Extract columns of the last dim."""
    places, rank = node.input(1).cast(VarType.INT64).reshape(-1), node.rank()
    if rank == 1:
        out = node.input().gather(places)
        return out.unsqueeze(0)
    return node.emit("index_select", {"X": node.input(), "Index": places}, dim=rank - 1)


@reads(f"{ML}ZipMap")
def _read_zip_map(node: Node) -> None:
    """Return the probabilities as an array, because Fluid has no dicts."""
    node.alias(node.value())


@reads(f"{ML}Binarizer")
def _read_binarizer(node: Node) -> Expression:
    limit = node.like(node.attr("threshold", 0.0))
    return node.emit("greater_than", node.input(), limit, axis=-1).cast(node.dtype())
