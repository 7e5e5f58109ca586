"""tree_conv: a convolution over the nodes of trees.

Mou et al., Convolutional neural networks over tree structures for programming language processing, 2016.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paddlelike.core.rows import sum_rows
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework import follows_fluid
from paddlelike.framework.opdef import Array, Gradient, Int, OpDef, Spec, register
from paddlelike.ops.operands import can_be_equal


@register
class TreeConv(OpDef):
    """``Out[b, n]``: the sum of the nodes up to ``max_depth - 1`` steps below node n, each times Filter.

    NodesVector is ``(B, N, D)``, Out ``(B, N, O, F)``. EdgeSet ``(B, E, 2)`` int32 holds pairs (parent,
    child); nodes count from 1, and a pair with a 0 ends the list. Filter ``(D, 3, O, F)`` has a part for the
    left, the right and the top of a tree. At depth d the top weighs ``(max_depth - d) / max_depth``; left and
    right weigh by the node's place among its siblings. The gradient of NodesVector is Fluid's: see
    ``fluid.quirks()``.
    """

    type = "tree_conv"
    until = "1"
    inputs = ("NodesVector", "EdgeSet", "Filter")
    attrs = {"max_depth": Int(2)}
    gradient = Gradient(
        "NodesVector", "EdgeSet", "Filter", "Out@GRAD", outputs=("NodesVector@GRAD", "Filter@GRAD")
    )

    @staticmethod
    def infer(nodes: Spec, edges: Spec, w: Spec, *, max_depth: int) -> Spec:
        if max_depth < 2:
            raise ShapeError(f"tree_conv: max_depth is {max_depth}, expected 2 or more")
        fits = len(nodes.shape) == len(edges.shape) == 3 and len(w.shape) == 4
        if not fits or not can_be_equal(nodes.shape[2], w.shape[0]) or w.shape[1] != 3 or edges.shape[2] != 2:
            raise ShapeError(
                f"tree_conv: NodesVector has shape {nodes.shape}, EdgeSet {edges.shape}, Filter {w.shape}; "
                "expected (B, N, D), (B, E, 2) and (D, 3, O, F)"
            )
        return Spec((*nodes.shape[:2], *w.shape[2:]), nodes.dtype)

    @staticmethod
    def forward(nodes: Array, edges: Array, w: Array, *, max_depth: int) -> Array:
        flat = w.reshape(w.shape[0] * w.shape[1], w.shape[2] * w.shape[3])
        patches = np.zeros((*nodes.shape[:2], len(flat)), nodes.dtype)
        for i, (vectors, pairs) in enumerate(zip(nodes, edges, strict=True)):
            places = _weigh_places(pairs, len(vectors), max_depth, nodes.dtype)
            if i and follows_fluid("tree_conv_padding"):
                patches[i, places.trees :] = patches[i - 1, places.trees :]
            patches[i, : places.trees] = places.gather(vectors)[: places.trees]
        return (patches.reshape(-1, len(flat)) @ flat).reshape(*nodes.shape[:2], *w.shape[2:])

    @staticmethod
    def backward(
        nodes: Array, edges: Array, w: Array, d_out: Array, *, max_depth: int
    ) -> tuple[Array, Array]:
        flat = w.reshape(w.shape[0] * w.shape[1], w.shape[2] * w.shape[3])
        d_nodes, dw = np.empty_like(nodes), np.zeros_like(flat)
        mixed = follows_fluid("tree_conv_gradient")
        for i, (vectors, pairs) in enumerate(zip(nodes, edges, strict=True)):
            places = _weigh_places(pairs, len(vectors), max_depth, nodes.dtype)
            above = d_out[i].reshape(len(vectors), flat.shape[1])
            dw += places.gather(vectors).T @ above
            if mixed:  # patches (O, F, 3), but the filter is read as (D, 3, O, F)
                turned = places._replace(roots=places.nodes, nodes=places.roots)
                d_nodes[i] = turned.gather(above) @ w.reshape(len(w), 3 * flat.shape[1]).T
                if i and follows_fluid("tree_conv_padding"):
                    d_nodes[i, places.trees :] = d_nodes[i - 1, places.trees :]
                continue
            d_patches = (above @ flat.T).reshape(len(vectors), vectors.shape[1], 3)
            each = (d_patches[places.roots] * places.weights[:, None]).sum(2)
            d_nodes[i] = sum_rows(places.nodes, each, len(vectors))
        return d_nodes, dw.reshape(w.shape)


class _Places(NamedTuple):
    """The nodes in the tree below each node, and their weights for left, right and top."""

    trees: int  # nodes that have a tree; others are padding
    roots: Array
    nodes: Array
    weights: Array  # (places, 3)

    def gather(self, vectors: Array) -> Array:
        """Return the weighted sums of the vectors of each tree: (N, D 3)."""
        each = vectors[self.nodes][:, :, None] * self.weights[:, None]
        return sum_rows(self.roots, each.reshape(len(each), 3 * vectors.shape[1]), len(vectors))


def _weigh_places(pairs: Array, count: int, max_depth: int, dtype: np.dtype[np.generic]) -> _Places:
    children = _read_tree(pairs, count)
    found = []
    for root in range(1, len(children)):
        for node, (index, siblings, depth) in _walk(children, root, max_depth).items():
            top = (max_depth - depth) / max_depth
            place = 0.5 if siblings == 1 else (index - 1) / (siblings - 1)
            left = (1 - top) * place
            found.append((root - 1, node - 1, left, (1 - top) * (1 - left), top))
    table = np.array(found)
    roots, nodes = table[:, :2].T.astype(np.int64)
    return _Places(len(children) - 1, roots, nodes, table[:, 2:].astype(dtype))


def _read_tree(pairs: Array, count: int) -> list[list[int]]:
    """Return the children of each node; node 0 is a dummy."""
    edges = pairs.tolist()
    used = next((i for i, (u, v) in enumerate(edges) if not u or not v), len(edges))
    total = sum(1 for u, v in edges if u and v) + 1
    if total > count or any(not 0 < node <= total for pair in edges[:used] for node in pair):
        raise EnforceNotMet(
            f"tree_conv: the edges {edges[:used]} make a tree of {total} nodes, NodesVector has {count}",
            hint="the nodes of a tree with E edges are numbered from 1 to E + 1",
        )
    children: list[list[int]] = [[] for _ in range(total + 1)]
    for u, v in edges[:used]:
        children[u].append(v)
    return children


def _walk(children: list[list[int]], root: int, max_depth: int) -> dict[int, tuple[int, int, int]]:
    """Return (index among the siblings, their count, depth) of a root and of the nodes below it."""
    found = {root: (1, 1, 0)}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        depth = found[node][2] + 1
        if depth >= max_depth:
            continue
        for i, child in enumerate(children[node]):
            if child not in found:
                found[child] = (i + 1, len(children[node]), depth)
                waiting.append(child)
    return found
