"""Support vector machines of classic machine learning, as scikit-learn's converter writes them.

Operators: https://onnx.ai/onnx/operators/ (domain ai.onnx.ml).
"""

from __future__ import annotations

import numpy as np

from paddlelike.core import Array, VarType
from paddlelike.framework import Variable
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.machine_learning.linear_models import (
    as_float,
    find_best,
    give_label,
    transform,
)
from paddlelike.interop.onnx.importer.node import ML, Node, reads


def compare_vectors(node: Node, vectors: Array) -> Expression:
    """Return the kernel of every row with every support vector, ``(N, vectors)``."""
    gamma, coef, degree = (node.attr("kernel_params") or [0.0, 0.0, 0.0])[:3]
    kind, x = node.attr("kernel_type", "LINEAR"), as_float(node)
    product = node.emit("mul", x, node.parameter("support_vectors", vectors.T))
    if kind == "LINEAR":
        return product
    if kind == "POLY":
        return node.emit("pow", product.scale(gamma, coef), factor=float(degree))
    if kind == "SIGMOID":
        return node.emit("tanh", product.scale(gamma, coef))
    rows = node.emit("square", x).reduce("sum", 1)
    far = rows - product.scale(2.0)
    far = far + node.constant((vectors**2).sum(1), np.float32)
    return node.emit("exp", far.scale(-gamma))


@reads(f"{ML}SVMRegressor")
def _read_svm_regressor(node: Node) -> Expression:
    weights = np.array(node.attr("coefficients"), np.float32)
    if node.attr("one_class", 0):
        node.refuse("it detects outliers")
    count = node.attr("n_supports", 0)
    if count:
        vectors = np.array(node.attr("support_vectors"), np.float32).reshape(count, -1)
        near = compare_vectors(node, vectors)
    else:
        near = as_float(node)
    out = node.emit("mul", near, node.parameter("coefficients", weights.reshape(-1, 1)))
    bias = np.array(node.attr("rho") or [0.0], np.float32)
    return transform(node, out + node.constant(bias, np.float32))


@reads(f"{ML}SVMClassifier")
def _read_svm_classifier(node: Node) -> None:
    """Read a one-against-one classifier: each pair of classes votes, and the most votes win."""
    if node.attr("post_transform", "NONE") != "NONE":
        node.refuse("it transforms its scores")
    sizes = list(node.attr("vectors_per_class") or [])
    count, classes = sum(sizes), len(sizes)
    if not sizes:
        node.refuse("it has no support vectors")
    vectors = np.array(node.attr("support_vectors"), np.float32).reshape(count, -1)
    coefficients = np.array(node.attr("coefficients"), np.float32).reshape(classes - 1, count)
    starts = np.cumsum([0, *sizes])
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    weights = np.zeros((count, len(pairs)), np.float32)
    for column, (i, j) in enumerate(pairs):
        mine, theirs = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        weights[mine, column] = coefficients[j - 1, mine]
        weights[theirs, column] = coefficients[i, theirs]
    scores = node.emit("mul", compare_vectors(node, vectors), node.parameter("coefficients", weights))
    scores = scores + node.constant(node.attr("rho"), np.float32)
    won = node.emit("greater_than", scores, node.constant([0], np.float32), axis=-1).cast(VarType.FP32)
    first, second = (np.zeros((len(pairs), classes), np.float32) for _ in range(2))
    for row, (i, j) in enumerate(pairs):
        first[row, i], second[row, j] = 1, 1
    votes = node.emit("mul", won, node.constant(first, np.float32))
    lost = node.emit("mul", won.scale(-1, 1), node.constant(second, np.float32))
    votes = votes + lost
    if node.wants(0):
        give_label(node, find_best(node, votes), classes)
    if node.attr("prob_a") and node.wants(1):
        if not len(node.attr("prob_a")) == len(node.attr("prob_b") or []) == len(pairs):
            node.fail(f"prob_a and prob_b do not hold {len(pairs)} numbers, one for each pair")
        scores = _find_probabilities(node, scores, pairs, classes)
    node.give(scores, 1)


def _find_probabilities(
    node: Node, scores: Expression, pairs: list[tuple[int, int]], classes: int
) -> Expression:
    """Return the probability of each class, computed from the probabilities of the pairs.

    This is the second method of Wu, Lin and Weng (2004), as in LIBSVM: p minimizes ``p Q p``, class by class.
    A row is done when its largest error is below 0.005 / classes, or after 100 rounds.
    """
    from paddlelike import layers

    dtype = np.float32
    slope, shift = (node.constant(node.attr(name), dtype) for name in ("prob_a", "prob_b"))
    fitted = scores * slope + shift
    won = node.emit("clip", node.emit("sigmoid", fitted.scale(-1)), min=1e-7, max=1 - 1e-7)
    first, second = (np.zeros((len(pairs), classes, classes), dtype) for _ in range(2))
    for row, (i, j) in enumerate(pairs):
        first[row, i, j], second[row, j, i] = 1, 1
    own = np.zeros((classes, classes, classes), dtype)
    own[(np.arange(classes),) * 3] = 1

    def spread(x: Expression, places: Array) -> Variable:
        flat = node.emit("mul", x, node.constant(places.reshape(len(places), -1), dtype))
        return flat.reshape(-1, classes, classes).variable

    r = spread(won, first) + spread(won.scale(-1, 1), second)
    diagonal = layers.reduce_sum(layers.square(r), dim=1)
    q = spread(Expression(node.graph, diagonal.name), own) - r * layers.transpose(r, [0, 2, 1])
    p = diagonal * 0 + 1 / classes
    units = layers.unstack(node.constant(np.eye(classes), dtype).variable)
    limit = layers.fill_constant([1], "float32", 0.005 / classes)
    turn, most = (layers.fill_constant([1], "int64", number) for number in (0, max(100, classes)))
    going = layers.less_than(turn, most)
    with layers.While(going, is_test=True).block():
        new = p
        qp = layers.reduce_sum(q * layers.unsqueeze(p, [1]), dim=2)
        pqp = layers.reduce_sum(p * qp, dim=1, keep_dim=True)
        active = layers.reduce_any(layers.abs(qp - pqp) >= limit, dim=1, keep_dim=True)
        for t in range(classes):
            own_q, own_qp = (layers.slice(x, [1], [t], [t + 1]) for x in (diagonal, qp))
            step = (pqp - own_qp) / own_q
            own_row = layers.squeeze(layers.slice(q, [1], [t], [t + 1]), [1])
            pqp = (pqp + step * (step * own_q + own_qp * 2)) / (step + 1) / (step + 1)
            qp = (qp + own_row * step) / (step + 1)
            new = (new + step * units[t]) / (step + 1)
        layers.assign(p + (new - p) * layers.cast(active, "float32"), p)
        layers.increment(turn, in_place=True)
        layers.assign(layers.logical_and(turn < most, layers.reduce_any(active)), going)
    return Expression(node.graph, str(p.name))
