"""Suppression of boxes, and regions of images."""

from __future__ import annotations

import numpy as np

from paddlelike.core import VarType
from paddlelike.interop.onnx.importer.families.elementwise.binary import compare
from paddlelike.interop.onnx.importer.node import Node, reads


def _count(node: Node, size: str) -> str:
    """Return the int64 numbers from 0 to ``size - 1``; ``size`` is known at run time."""
    bounds = {"Start": node.constant([0], np.int64), "End": size, "Step": node.constant([1], np.int64)}
    return node.emit("range", bounds, shaped=[-1])


def _size(node: Node, index: int, axis: int) -> str:
    return node.slice(node.dims_at_run(node.input(index)), 0, axis, axis + 1)


@reads("NonMaxSuppression")
def _read_suppression(node: Node) -> str:
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
    index = node.graph.variable(node.graph.last_output("Index"))
    index.dtype = VarType.INT32  # the operator's real type, whatever it declares
    place = node.cast(index.name, VarType.INT64)
    boxes = _size(node, 0, 1)
    image = node.emit("elementwise_floordiv", place, boxes)
    box = node.emit("elementwise_sub", place, node.emit("elementwise_mul", image, boxes))
    label = node.cast(node.slice(out, 1, 0, 1), VarType.INT64)
    rows = node.emit("concat", [image, label, box], axis=1)
    group = node.emit("elementwise_add", node.emit("elementwise_mul", image, _size(node, 1, 1)), label)
    groups = _count(node, node.emit("elementwise_mul", _size(node, 1, 0), _size(node, 1, 1)))
    owned = node.cast(compare(node, "equal", group, node.unsqueeze(groups, 0)), VarType.INT64)
    turn = node.emit("elementwise_mul", node.emit("cumsum", owned, axis=0), owned)
    turn = node.reduce("sum", turn, 1, keep=False)
    within = compare(node, "less_equal", turn, node.constant([min(most, 1 << 62)], np.int64))
    kept = node.reshape(node.emit("where_index", {"Condition": within}), -1)
    return node.emit("gather", {"X": rows, "Index": kept}, shaped=[-1, 3])


def _order_corners(node: Node) -> str:
    """Return boxes whose first corner is the smaller one."""
    boxes = node.input()
    first, second = node.slice(boxes, 2, 0, 2), node.slice(boxes, 2, 2, 4)
    if node.attr("center_point_box", 0):
        half = node.scale(second, 0.5)
        low, high = node.emit("elementwise_sub", first, half), node.emit("elementwise_add", first, half)
    else:
        low, high = (node.emit(f"elementwise_{kind}", first, second) for kind in ("min", "max"))
    return node.emit("concat", [low, high], axis=2)


@reads("RoiAlign")
def _read_roi_align(node: Node) -> str:
    rule = node.attr(
        "coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "output_half_pixel"
    )
    if rule != "output_half_pixel" or node.attr("mode", "avg") != "avg":
        node.refuse(f"coordinate_transformation_mode is {rule!r}, mode is {node.attr('mode', 'avg')!r}")
    regions, back = _order_regions(node, node.input(1), node.cast(node.input(2), VarType.INT64))
    out = node.emit(
        "roi_align",
        regions,
        pooled_height=node.attr("output_height", 1),
        pooled_width=node.attr("output_width", 1),
        spatial_scale=float(node.attr("spatial_scale", 1.0)),
        sampling_ratio=node.attr("sampling_ratio", 0) or -1,
    )
    return node.emit("gather", {"X": out, "Index": back})


@reads("MaxRoiPool")
def _read_max_roi_pool(node: Node) -> str:
    """Read a region pool; the first number of a region is its image."""
    owners = node.cast(node.reshape(node.slice(node.input(1), 1, 0, 1), -1), VarType.INT64)
    regions, back = _order_regions(node, node.slice(node.input(1), 1, 1, 5), owners)
    height, width = node.attr("pooled_shape")
    options = {"pooled_height": height, "pooled_width": width}
    scale = float(node.attr("spatial_scale", 1.0))
    out = node.emit("roi_pool", regions, spatial_scale=scale, **options)
    return node.emit("gather", {"X": out, "Index": back})


def _order_regions(node: Node, regions: str, owners: str) -> tuple[dict[str, str], str]:
    """Return the inputs of an operator on regions, grouped by image, and the order that undoes the
    grouping.
    """
    count = node.slice(node.dims_at_run(owners), 0, 0, 1)
    key = node.emit("elementwise_add", node.emit("elementwise_mul", owners, count), _count(node, count))
    graph = node.graph
    graph.emit("argsort", {"X": key}, {"axis": 0}, slot="Out")
    order = graph.last_output("Indices")
    graph.emit("argsort", {"X": order}, {"axis": 0}, slot="Out")
    back = graph.last_output("Indices")
    images = node.unsqueeze(_count(node, _size(node, 0, 0)), 0)
    owned = node.cast(compare(node, "equal", node.unsqueeze(owners, 1), images), VarType.INT64)
    ends = node.emit("cumsum", node.reduce("sum", owned, 0, keep=False), axis=0)
    offsets = node.emit("concat", [node.constant([0], np.int64), ends], axis=0)
    ordered = node.emit("gather", {"X": regions, "Index": order})
    return {"X": node.input(), "ROIs": ordered, "RoisLod": offsets}, back
