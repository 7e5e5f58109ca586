"""Suppression of boxes, and regions of images."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.expressions import Expression
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.node import Node, reads


def _count(node: Node, size: Expression) -> Expression:
    """Return the int64 numbers from 0 to ``size - 1``; ``size`` is known at run time."""
    bounds = {"Start": node.constant([0], np.int64), "End": size, "Step": node.constant([1], np.int64)}
    return node.emit("range", bounds, shaped=[-1])


def _size(node: Node, index: int, axis: int) -> Expression:
    return node.input(index).dims_at_run().slice(0, axis, axis + 1)


@reads("NonMaxSuppression")
def _read_suppression(node: Node) -> Expression:
    """Read NonMaxSuppression: rows (image, class, box) by image, class and falling score."""
    most = 0 if not node.has(2) else int(node.known(2).reshape(-1)[0])
    overlap, score = (
        float(node.known(index).reshape(-1)[0]) if node.has(index) else default
        for index, default in ((3, 0.0), (4, -3e38))
    )
    attrs = {
        "background_label": -1,
        "nms_threshold": overlap,
        "score_threshold": score,
        "nms_top_k": -1,
        "keep_top_k": -1,
    }
    out = node.emit("multiclass_nms2", {"BBoxes": _order_corners(node), "Scores": node.input(1)}, **attrs)
    index = node.last_output("Index")
    index.variable.dtype = VarType.INT32  # the operator's real type, whatever it declares
    place = index.cast(VarType.INT64)
    boxes = _size(node, 0, 1)
    image = node.emit("elementwise_floordiv", place, boxes)
    box = place - image * boxes
    label = out.slice(1, 0, 1).cast(VarType.INT64)
    rows = node.emit("concat", [image, label, box], axis=1)
    group = image * _size(node, 1, 1) + label
    groups = _count(node, _size(node, 1, 0) * _size(node, 1, 1))
    owned = compare(node, "equal", group, groups.unsqueeze(0)).cast(VarType.INT64)
    turn = node.emit("cumsum", owned, axis=0) * owned
    turn = turn.reduce("sum", 1, keep=False)
    within = compare(node, "less_equal", turn, node.constant([min(most, 1 << 62)], np.int64))
    kept = node.emit("where_index", {"Condition": within}).reshape(-1)
    return node.emit("gather", {"X": rows, "Index": kept}, shaped=[-1, 3])


def _order_corners(node: Node) -> Expression:
    """Return boxes whose first corner is the smaller one."""
    boxes = node.input()
    first, second = boxes.slice(2, 0, 2), boxes.slice(2, 2, 4)
    if node.attr("center_point_box", 0):
        half = second.scale(0.5)
        low, high = first - half, first + half
    else:
        low, high = (node.emit(f"elementwise_{kind}", first, second) for kind in ("min", "max"))
    return node.emit("concat", [low, high], axis=2)


@reads("RoiAlign")
def _read_roi_align(node: Node) -> Expression:
    rule = node.attr(
        "coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "output_half_pixel"
    )
    if rule != "output_half_pixel" or node.attr("mode", "avg") != "avg":
        node.refuse(f"coordinate_transformation_mode is {rule!r}, mode is {node.attr('mode', 'avg')!r}")
    regions, back = _order_regions(node, node.input(1), node.input(2).cast(VarType.INT64))
    out = node.emit(
        "roi_align",
        regions,
        pooled_height=node.attr("output_height", 1),
        pooled_width=node.attr("output_width", 1),
        spatial_scale=float(node.attr("spatial_scale", 1.0)),
        sampling_ratio=node.attr("sampling_ratio", 0) or -1,
    )
    return out.gather(back)


@reads("MaxRoiPool")
def _read_max_roi_pool(node: Node) -> Expression:
    """Read a region pool; the first number of a region is its image."""
    owners = node.input(1).slice(1, 0, 1).reshape(-1).cast(VarType.INT64)
    regions, back = _order_regions(node, node.input(1).slice(1, 1, 5), owners)
    height, width = node.attr("pooled_shape")
    options = {"pooled_height": height, "pooled_width": width}
    scale = float(node.attr("spatial_scale", 1.0))
    out = node.emit("roi_pool", regions, spatial_scale=scale, **options)
    return out.gather(back)


def _order_regions(
    node: Node, regions: Expression, owners: Expression
) -> tuple[dict[str, Expression], Expression]:
    """Return the inputs of an operator on regions, grouped by image, and the order that undoes the
    grouping.
    """
    count = owners.dims_at_run().slice(0, 0, 1)
    key = owners * count + _count(node, count)
    graph = node.graph
    graph.emit("argsort", {"X": key}, {"axis": 0}, slot="Out")
    order = node.last_output("Indices")
    graph.emit("argsort", {"X": order}, {"axis": 0}, slot="Out")
    back = node.last_output("Indices")
    images = _count(node, _size(node, 0, 0)).unsqueeze(0)
    owned = compare(node, "equal", owners.unsqueeze(1), images).cast(VarType.INT64)
    ends = node.emit("cumsum", owned.reduce("sum", 0, keep=False), axis=0)
    offsets = node.emit("concat", [node.constant([0], np.int64), ends], axis=0)
    ordered = regions.gather(order)
    return {"X": node.input(), "ROIs": ordered, "RoisLod": offsets}, back
