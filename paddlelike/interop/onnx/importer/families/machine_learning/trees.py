"""Ensembles of decision trees, by comparisons and products of matrices.

Every split is computed for every row. A row is in a leaf when all splits on the leaf's path agree. The count
of agreeing splits is the product of the splits' results with a matrix of the paths.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from paddlelike.core import Array, VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.machine_learning.linear_models import (
    as_float,
    find_best,
    give_label,
    transform,
)
from paddlelike.interop.onnx.importer.node import ML, Node, reads

_COMPARISONS: Final = {
    "BRANCH_LEQ": "less_equal",
    "BRANCH_LT": "less_than",
    "BRANCH_GTE": "greater_equal",
    "BRANCH_GT": "greater_than",
    "BRANCH_EQ": "equal",
    "BRANCH_NEQ": "not_equal",
}
_LARGEST: Final = 1 << 26  # elements of the matrix of paths
_DEEPEST: Final = 900


class _Trees(NamedTuple):
    """The splits of all trees, and for each leaf the splits that must be true (1) or false (-1).

    ``missing`` says which splits are true for NaN.
    """

    features: list[int]
    limits: list[float]
    modes: list[str]
    missing: list[bool]
    ways: Array
    leaves: dict[tuple[int, int], int]


def _list(node: Node, name: str) -> list[Any]:
    return list(node.attr(f"nodes_{name}") or node.attr(f"nodes_{name}_as_tensor") or [])


def _walk(node: Node) -> _Trees:
    """Return the splits and leaves of all trees."""
    columns = [_list(node, name) for name in ("treeids", "nodeids", "modes", "featureids", "values")]
    columns += [_list(node, name) for name in ("truenodeids", "falsenodeids")]
    columns.append(_list(node, "missing_value_tracks_true") or [0] * len(columns[0]))
    if len({len(column) for column in columns}) != 1:
        node.fail("its columns have different lengths")
    rows = {(tree, number): (mode, *rest) for tree, number, mode, *rest in zip(*columns, strict=True)}
    if len(rows) != len(columns[0]):
        node.fail("two nodes of a tree have one id")
    splits = {key: i for i, key in enumerate(key for key, row in rows.items() if row[0] != "LEAF")}
    leaves = {key: i for i, key in enumerate(key for key, row in rows.items() if row[0] == "LEAF")}
    if len(splits) * len(leaves) > _LARGEST:
        node.refuse(f"it has {len(splits)} splits and {len(leaves)} leaves")
    ways = np.zeros((len(splits), len(leaves)), np.float32)
    called = {(key[0], child) for key in splits for child in rows[key][3:5]}
    seen: set[tuple[int, int]] = set()
    for root in (key for key in rows if key not in called):
        pending: list[tuple[tuple[int, int], list[tuple[int, int]]]] = [(root, [])]
        while pending:
            key, path = pending.pop()
            if key not in rows or key in seen or len(path) > _DEEPEST:
                node.fail(f"its node {key} is missing, is reached twice, or is too deep")
            seen.add(key)
            if key in leaves:
                for split, sign in path:
                    ways[split, leaves[key]] = sign
                continue
            true, false = rows[key][3:5]
            pending.append(((key[0], true), [*path, (splits[key], 1)]))
            pending.append(((key[0], false), [*path, (splits[key], -1)]))
    modes, features, limits, _, _, missing = (
        zip(*map(rows.__getitem__, splits), strict=True) if splits else [[]] * 6
    )
    return _Trees(list(features), list(limits), list(modes), list(map(bool, missing)), ways, leaves)


def _reach_leaves(node: Node, trees: _Trees) -> Expression:
    """Return which leaves each row reaches, float32 ``(N, leaves)``."""
    modes = sorted(set(trees.modes))
    if not set(modes) <= _COMPARISONS.keys():
        node.refuse(f"its nodes compare by {modes}")
    x = as_float(node)
    if not trees.features:
        ones = x.zeros().reduce("sum", 1).scale(bias=1)
        return ones * node.constant(np.ones((1, len(trees.leaves))), np.float32)
    places = node.constant(trees.features, np.int64)
    chosen = node.emit("index_select", {"X": x, "Index": places}, dim=1)
    limits = node.constant(trees.limits, np.float32)
    parts = {mode: node.emit(_COMPARISONS[mode], chosen, limits, axis=-1) for mode in modes}
    masks = [[one == mode for one in trees.modes] for mode in modes]
    if any(trees.missing):  # of all comparisons only != is true of NaN
        parts["missing"] = node.emit("isnan_v2", chosen)
        masks.append(
            [one and mode != "BRANCH_NEQ" for one, mode in zip(trees.missing, trees.modes, strict=True)]
        )
    floats = [part.cast(VarType.FP32) for part in parts.values()]
    if len(floats) > 1:
        floats = [one * node.constant(mask, np.float32) for one, mask in zip(floats, masks, strict=True)]
    true = node.emit("sum", {"X": floats}) if len(floats) > 1 else floats[0]
    right = node.emit("mul", true, node.constant(trees.ways, np.float32))
    needed = (trees.ways == 1).sum(0) - 0.5
    reached = node.emit("greater_than", right, node.constant(needed, np.float32), axis=-1)
    return reached.cast(VarType.FP32)


def _add_leaves(node: Node, prefix: str, count: int) -> Expression:
    """Return the sums of the leaves' weights, ``(N, count)``."""
    trees = _walk(node)
    weights = np.zeros((len(trees.leaves), count), np.float32)
    names = ("treeids", "nodeids", "ids", "weights")
    for tree, number, target, weight in zip(
        *(node.attr(f"{prefix}_{name}") or [] for name in names), strict=True
    ):
        weights[trees.leaves[tree, number], target] += weight
    out = node.emit("mul", _reach_leaves(node, trees), node.constant(weights, np.float32))
    base = node.attr("base_values")
    return out + node.constant(base, np.float32) if base else out


@reads(f"{ML}TreeEnsembleRegressor")
def _read_tree_regressor(node: Node) -> Expression:
    if node.attr("aggregate_function", "SUM") not in ("SUM", "AVERAGE"):
        node.refuse(f"aggregate_function is {node.attr('aggregate_function')}")
    out = _add_leaves(node, "target", node.attr("n_targets", 1))
    if node.attr("aggregate_function", "SUM") == "AVERAGE":
        out = out.scale(1 / len(set(_list(node, "treeids"))))
    return transform(node, out)


@reads(f"{ML}TreeEnsembleClassifier")
def _read_tree_classifier(node: Node) -> None:
    """Read a tree classifier. If all weights belong to one class, they score the second of two classes."""
    labels = node.attr("classlabels_int64s") or node.attr("classlabels_strings") or []
    count, targets = len(labels), set(node.attr("class_ids") or [])
    if count == 2 and len(targets) == 1:
        first = targets.pop()
        scores = _add_leaves(node, "class", 2)
        score = scores.slice(1, first, first + 1)
        if node.attr("post_transform", "NONE") == "NONE":
            both = node.emit("concat", [score.scale(-1, 1), score], axis=1)
        elif node.attr("post_transform") == "LOGISTIC":
            chance = node.emit("sigmoid", score)
            both = node.emit("concat", [chance.scale(-1, 1), chance], axis=1)
        else:
            node.refuse(f"post_transform is {node.attr('post_transform')} for two classes")
        out = both
    else:
        both = _add_leaves(node, "class", count)
        out = transform(node, both)
    give_label(node, find_best(node, both), count)
    node.give(out, 1)
