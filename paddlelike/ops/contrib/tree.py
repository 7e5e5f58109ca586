"""Operators on a tree of items (TDM, "Learning Tree-based Deep Model for Recommender Systems", 2018).

A row of TreeInfo describes a node: its item (0 unless it is a leaf), layer, parent and children. Node 0 means
no node. A row of Travel is the path to a leaf, one node per layer. Layer lists the nodes, layer by layer.
"""

from __future__ import annotations

import secrets

import numpy as np

from paddlelike.core import VarType, numpy_dtype
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Array, Attrs, Bool, Int, Ints, OpDef, Spec, register
from paddlelike.ops.kernels.engines import draw_below, iterate_mersenne


@register
class TdmChild(OpDef):
    """``Child[..., k]``: child k of each node in X, or 0; ``LeafMask``: 1 where that child is a leaf."""

    type = "tdm_child"
    inputs = ("X", "TreeInfo")
    outputs = ("Child", "LeafMask")
    attrs = {"child_nums": Int(), "dtype": Int(2)}
    lod = "X"

    @staticmethod
    def infer(x: Spec, tree: Spec, *, child_nums: int, dtype: int) -> tuple[Spec, Spec]:
        if len(tree.shape) != 2 or tree.shape[1] != 3 + child_nums:
            raise ShapeError(
                f"tdm_child: TreeInfo is {list(tree.shape)}, expected (nodes, 3 + {child_nums} children)"
            )
        spec = Spec((*x.shape, child_nums), VarType(dtype))
        return spec, spec

    @staticmethod
    def forward(x: Array, tree: Array, *, child_nums: int, dtype: int) -> tuple[Array, Array]:
        _check_ids("tdm_child", "node", x, len(tree))
        children = tree[x, 3 : 3 + child_nums]
        children[(x == 0) | (tree[x, 3] == 0)] = 0
        _check_ids("tdm_child", "child", children, len(tree))
        leaf = (tree[children, 0] != 0) & (children != 0)
        return children.astype(numpy_dtype(dtype), copy=False), leaf.astype(numpy_dtype(dtype))


class TdmSamplerAttrs(Attrs):
    """Attributes of tdm_sampler."""

    output_positive: bool = Bool(True)
    neg_samples_num_list: list[int] = Ints([])
    layer_offset_lod: list[int] = Ints([])
    seed: int = Int(0)
    dtype: int = Int(2)


@register
class TdmSampler(OpDef):
    """Nodes (N, nodes): those on the path to each leaf in X, and sampled nodes of the same layers.

    Each layer gives the node of the path (with ``output_positive``), then as many distinct other nodes as
    ``neg_samples_num_list`` says. Labels is 1 for nodes of the path. Where the path has ended (node 0), Out,
    Labels and Mask are 0; elsewhere Mask is 1. A ``seed`` gives the same nodes at every run, as in Fluid.
    """

    type = "tdm_sampler"
    traceable = False
    inputs = ("X", "Travel", "Layer")
    outputs = ("Out", "Labels?", "Mask")
    attrs = TdmSamplerAttrs.table()

    @staticmethod
    def infer(x: Spec, travel: Spec, layer: Spec, *, attrs: TdmSamplerAttrs) -> tuple[Spec, Spec, Spec]:
        layers = len(attrs.neg_samples_num_list)
        if len(attrs.layer_offset_lod) != layers + 1:
            raise ShapeError(
                f"tdm_sampler: {layers} layers need {layers + 1} offsets, got {attrs.layer_offset_lod}"
            )
        if len(travel.shape) != 2 or travel.shape[1] != layers:
            raise ShapeError(f"tdm_sampler: Travel is {list(travel.shape)}, expected (leaves, {layers})")
        width = sum(attrs.neg_samples_num_list) + layers * attrs.output_positive
        spec = Spec((-1, width), VarType(attrs.dtype))
        return spec, spec, spec

    @staticmethod
    def forward(
        x: Array, travel: Array, layer: Array, *, attrs: TdmSamplerAttrs
    ) -> tuple[Array, Array, Array]:
        _check_ids("tdm_sampler", "leaf", x, len(travel))
        nodes = layer.ravel()
        offsets = attrs.layer_offset_lod
        engines = [iterate_mersenne(attrs.seed or secrets.randbits(32)) for _ in attrs.neg_samples_num_list]
        rows = []
        for path in travel[x.ravel()].tolist():
            row: list[tuple[int, int, int]] = []
            for index, count in enumerate(attrs.neg_samples_num_list):
                positive = path[index]
                if not positive:
                    row += [(0, 0, 0)] * (count + attrs.output_positive)
                    continue
                if attrs.output_positive:
                    row.append((positive, 1, 1))
                choice = nodes[offsets[index] : offsets[index + 1]].tolist()
                row += [(node, 0, 1) for node in _draw_others(engines[index], choice, positive, count)]
            rows.append(row)
        width = sum(attrs.neg_samples_num_list) + len(engines) * attrs.output_positive
        found = np.array(rows, numpy_dtype(attrs.dtype)).reshape(len(rows), width, 3)
        out, labels, mask = (np.ascontiguousarray(found[..., part]) for part in range(3))
        return out, labels, mask


def _draw_others(engine: object, choice: list[int], positive: int, count: int) -> list[int]:
    """Return ``count`` different nodes of ``choice``, none of them ``positive``."""
    if count > len([node for node in choice if node != positive]):
        raise EnforceNotMet(f"tdm_sampler: the layer of node {positive} has fewer than {count} other nodes")
    drawn: list[int] = []
    while len(drawn) < count:
        place = draw_below(engine, len(choice), low=0, steps=2**64 - 1)  # type: ignore[arg-type]
        if choice[place] != positive and place not in drawn:
            drawn.append(place)
    return [choice[place] for place in drawn]


def _check_ids(type: str, what: str, ids: Array, count: int) -> None:
    wrong = ids[(ids < 0) | (ids >= count)]
    if len(wrong):
        raise EnforceNotMet(f"{type}: {what} {wrong.flat[0]} is not in [0, {count})")
