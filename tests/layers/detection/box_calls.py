"""Calls of layers on anchors, boxes and matches, each recorded from the real system.

Runs under Python 3.7 as well; see tests/layers/calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.layers.calls.net import Net

__all__ = ["CALLS"]


def boxes(n: Net, name: str = "boxes", level: int = 0, dtype: str = "float32") -> Any:
    return n.fluid.data(name, [None, 4], dtype, lod_level=level)


def scores(n: Net, classes: int = 3, count: int = 30) -> Any:
    return n.fluid.data("scores", [None, classes, count], "float32")


def found(n: Net, count: int = 30, width: int = 4) -> Any:
    return n.fluid.data("found", [None, count, width], "float32")


def image(n: Net) -> Any:
    return n.fluid.data("image", [None, 3, 64, 64], "float32")


def true(n: Net) -> list[Any]:
    label = n.fluid.data("label", [None, 1], "int32", lod_level=1)
    return [boxes(n, "true", 1), label]


def last(*outs: Any) -> Any:
    """The last of several outputs."""
    return outs[-1]


def head(n: Net, count: int = 3, **kwargs: Any) -> Any:
    """Location and confidence of a small SSD head, its anchors and their variances."""
    maps = [n.x(4, 2**i, 2**i, name="map" + str(i)) for i in range(4, 4 - count, -1)]
    options = dict(
        {
            "base_size": 64,
            "num_classes": 3,
            "aspect_ratios": [[2.0]] * count,
            "min_ratio": 20,
            "max_ratio": 90,
        },
        **kwargs,
    )
    return n.multi_box_head(maps, image(n), **options)


def two_maps(n: Net) -> Any:
    return head(
        n, 2, min_ratio=None, max_ratio=None, min_sizes=[10.0, [20.0, 24.0]], max_sizes=[[], [30.0, 40.0]],
        aspect_ratios=[2.0, [2.0, 3.0]], steps=[4.0, 8.0], clip=True, kernel_size=3, pad=1, name="head",
    )  # fmt: skip


def one_map(n: Net) -> Any:
    return head(n, 1, min_sizes=[10.0], max_sizes=[20.0], flip=False, min_max_aspect_ratios_order=True)


def ssd_loss(n: Net, **kwargs: Any) -> Any:
    place, confidence, anchors, variances = head(n)
    loss = n.ssd_loss(place, confidence, *true(n), anchors, variances, **kwargs)
    n.fluid.backward.append_backward(n.reduce_sum(loss))
    return loss


def detected(n: Net, **kwargs: Any) -> Any:
    place, confidence, anchors, variances = head(n)
    return n.detection_output(place, confidence, anchors, variances, **kwargs)


def yolo_loss(n: Net, **kwargs: Any) -> Any:
    x = n.x(24, 4, 4)
    x.stop_gradient = False
    options = dict(
        {
            "anchors": [10, 13, 16, 30, 33, 23], "anchor_mask": [0, 1, 2], "class_num": 3,
            "ignore_thresh": 0.7, "downsample_ratio": 32,
        },
        **kwargs
    )  # fmt: skip
    true_box = n.fluid.data("true", [None, 6, 4], "float32")
    label = n.fluid.data("label", [None, 6], "int32")
    loss = n.yolov3_loss(x, true_box, label, **options)
    n.fluid.backward.append_backward(n.mean(loss))
    return loss


def yolo_score(n: Net) -> Any:
    return yolo_loss(
        n, gt_score=n.fluid.data("score", [None, 6], "float32"), use_label_smooth=False, name="y"
    )


def average(n: Net, kind: str, **kwargs: Any) -> Any:
    rows = n.fluid.data("rows", [None, 6], "float32", lod_level=1)
    box, label = true(n)
    if kwargs.pop("difficult", False):
        kwargs["gt_difficult"] = n.fluid.data("difficult", [None, 1], "int32", lod_level=1)
    module = getattr(n.fluid, kind)
    return module.DetectionMAP(rows, label, box, class_num=3, **kwargs).get_map_var()[1]


TABLE: dict[str, Callable[[Net], Any]] = {
    # anchors
    "prior_box": lambda n: n.prior_box(n.x(8, 4, 4), image(n), min_sizes=[8.0]),
    "prior_box_all": lambda n: last(*n.prior_box(
        n.x(8, 4, 4), image(n), [8.0, 16], [20.0, 30], [2.0, 3], [0.1] * 4, True, True, (4, 8), 0.3, "p",
        True)),
    "prior_box_numbers": lambda n: n.prior_box(n.x(8, 4, 4), image(n), 8, aspect_ratios=2.0)[0],
    "prior_box_zero_max": lambda n: n.prior_box(n.x(8, 4, 4), image(n), [8.0], [0.0])[0],
    "prior_box_refuses_steps": lambda n: n.prior_box(n.x(8, 4, 4), image(n), [8.0], steps=4.0),
    "prior_box_refuses_dtype": lambda n: n.prior_box(n.ids(8, 4, 4), image(n), [8.0]),
    "density_prior_box": lambda n: n.density_prior_box(
        n.x(8, 4, 4), image(n), densities=[4, 2], fixed_sizes=[8.0, 16], fixed_ratios=(1,))[0],
    "density_prior_box_flat": lambda n: n.density_prior_box(
        n.x(8, 4, 4), image(n), [4], [8.0], [1.0, 2], clip=True, steps=[4, 8], flatten_to_2d=True,
        name="d")[1],
    "density_prior_box_refuses_lengths": lambda n: n.density_prior_box(
        n.x(8, 4, 4), image(n), [4, 2], [8.0], [1.0]),
    "density_prior_box_refuses_none": lambda n: n.density_prior_box(n.x(8, 4, 4), image(n)),
    "anchor_generator": lambda n: n.anchor_generator(
        n.x(8, 4, 4), anchor_sizes=[32, 64.0], aspect_ratios=[0.5, 1.0], stride=[16, 16])[0],
    "anchor_generator_numbers": lambda n: n.anchor_generator(
        n.x(8, 4, 4), 32, 1, [0.2] * 4, (8.0, 16.0), 0.3, "a")[1],
    "anchor_generator_refuses_stride": lambda n: n.anchor_generator(n.x(8, 4, 4), [32.0], [1.0]),
    # boxes
    "box_coder": lambda n: n.box_coder(boxes(n), boxes(n, "variances"), boxes(n, "true", 1)),
    "box_coder_numbers": lambda n: n.box_coder(
        boxes(n), [0.1, 0.1, 0.2, 0.2], n.x(30, 4), "decode_center_size", False, "c", 1),
    "box_coder_refuses": lambda n: n.box_coder(boxes(n), None, boxes(n, "true")),
    "box_clip": lambda n: n.box_clip(boxes(n, level=1), n.x(3)),
    "box_clip_refuses": lambda n: n.box_clip(boxes(n, level=1), n.ids(3)),
    "box_decoder_and_assign": lambda n: last(*n.box_decoder_and_assign(
        boxes(n, level=1), n.exact(4), n.x(12), n.fluid.data("scores", [None, 3], "float32"), 4.135)),
    "iou_similarity": lambda n: n.iou_similarity(boxes(n, level=1), boxes(n, "y")),
    "iou_similarity_pixels": lambda n: n.iou_similarity(boxes(n), boxes(n, "y"), False, "iou"),
    "polygon_box_transform": lambda n: n.polygon_box_transform(n.x(8, 4, 5), "p"),
    "polygon_box_transform_refuses": lambda n: n.polygon_box_transform(n.ids(8, 4, 5)),
    # matching
    "bipartite_match": lambda n: n.bipartite_match(n.fluid.data("x", [None, 6], "float32", lod_level=1))[0],
    "bipartite_match_all": lambda n: n.bipartite_match(n.x(6), "per_prediction", 0.4, "m")[1],
    "target_assign": lambda n: n.target_assign(
        n.fluid.data("x", [None, 6, 4], "float32", lod_level=1), n.y(6, dtype="int32"), mismatch_value=0)[1],
    "target_assign_negative": lambda n: n.target_assign(
        n.fluid.data("x", [None, 6, 1], "int32", lod_level=1), n.y(6, dtype="int32"),
        n.fluid.data("negative", [None, 1], "int32", lod_level=1), 3, "t")[0],
    "target_assign_no_value": lambda n: n.target_assign(
        n.fluid.data("x", [None, 6, 4], "float32", lod_level=1), n.y(6, dtype="int32"))[0],
    # suppression
    "multiclass_nms": lambda n: n.multiclass_nms(found(n), scores(n), 0.1, 400, 200),
    "multiclass_nms_sequences": lambda n: n.multiclass_nms(
        n.fluid.data("found", [None, 3, 4], "float32", lod_level=1),
        n.fluid.data("scores", [None, 3], "float32", lod_level=1), 0.1, -1, -1, 0.5, False, 0.9, -1, "nms"),
    "multiclass_nms_refuses": lambda n: n.multiclass_nms(found(n), scores(n), 1, 400, 200),
    "multiclass_nms_refuses_name": lambda n: n.multiclass_nms("found", scores(n), 0.1, 400, 200),
    "multiclass_nms_refuses_sizes": lambda n: n.multiclass_nms(found(n, 20), scores(n), 0.1, 400, 2.0),
    "multiclass_nms2": lambda n: n.fluid.contrib.layers.multiclass_nms2(found(n), scores(n), 0.1, 400, 200),
    "multiclass_nms2_index": lambda n: n.fluid.contrib.layers.multiclass_nms2(
        found(n), scores(n), 0.1, 400, 200, 0.4, False, 0.9, -1, True, "nms")[1],
    "matrix_nms": lambda n: n.matrix_nms(found(n), scores(n), 0.1, 0.05, 400, 200),
    "matrix_nms_all": lambda n: n.matrix_nms(
        found(n), scores(n), 0.1, 0.05, 400, 200, True, 1.5, -1, False, True, "m")[1],
    "matrix_nms_refuses": lambda n: n.matrix_nms(found(n), scores(n), 0.1, 0, 400, 200),
    "locality_aware_nms": lambda n: n.locality_aware_nms(found(n, width=8), scores(n, 1), 0.1, 400, 200),
    "locality_aware_nms_all": lambda n: n.locality_aware_nms(
        found(n), scores(n, 1), 0.1, -1, -1, 0.4, False, 0.9, 0, "l"),
    "locality_aware_nms_refuses": lambda n: n.locality_aware_nms(found(n), scores(n, 2), 0.1, 400, 200),
    # ssd
    "multi_box_head": lambda n: head(n)[0],
    "multi_box_head_four": lambda n: last(*head(n, 4)),
    "multi_box_head_two": lambda n: two_maps(n)[1],
    "multi_box_head_one": lambda n: one_map(n)[0],
    "multi_box_head_step_w": lambda n: head(n, 3, step_w=[4.0] * 3, step_h=[8.0] * 3)[2],
    "multi_box_head_refuses": lambda n: n.multi_box_head(n.x(8, 4, 4), image(n), 64, 3, [2.0]),
    "multi_box_head_refuses_ratios": lambda n: head(n, 3, aspect_ratios=[2.0]),
    "multi_box_head_refuses_steps": lambda n: head(n, 3, steps=[2.0]),
    "ssd_loss": lambda n: ssd_loss(n),
    "ssd_loss_all": lambda n: ssd_loss(
        n, background_label=1, overlap_threshold=0.4, neg_pos_ratio=2.0, neg_overlap=0.3, loc_loss_weight=0.5,
        conf_loss_weight=2.0, match_type="bipartite", normalize=False, sample_size=5),
    "ssd_loss_refuses": lambda n: ssd_loss(n, mining_type="hard_example"),
    "detection_output": lambda n: detected(n),
    "detection_output_index": lambda n: detected(
        n, background_label=1, nms_threshold=0.4, nms_top_k=50, keep_top_k=20, score_threshold=0.1,
        nms_eta=0.9, return_index=True)[1],
    # yolo
    "yolo_box": lambda n: n.yolo_box(
        n.x(24, 4, 4), n.y(2, dtype="int32"), [10, 13, 16, 30, 33, 23], 3, 0.01, 32)[1],
    "yolo_box_all": lambda n: n.yolo_box(
        n.x(16, 4, 4), n.y(2, dtype="int32"), (10, 13, 16, 30), 3, 0.01, 32, False, "y", 1.2)[0],
    "yolo_box_refuses": lambda n: n.yolo_box(n.x(24, 4, 4), n.y(2, dtype="int32"), [10, 13], 3, 1, 32),
    "yolo_box_refuses_anchors": lambda n: n.yolo_box(n.x(24, 4, 4), n.y(2, dtype="int32"), 10, 3, 0.01, 32),
    "yolov3_loss": yolo_loss,
    "yolov3_loss_score": yolo_score,
    "yolov3_loss_scaled": lambda n: yolo_loss(n, scale_x_y=1.2),
    "yolov3_loss_refuses_classes": lambda n: yolo_loss(n, class_num=3.0),
    "yolov3_loss_refuses_threshold": lambda n: yolo_loss(n, ignore_thresh=1),
    "yolov3_loss_refuses_score": lambda n: yolo_loss(n, gt_score=[1.0]),
    "yolov3_loss_refuses_smooth": lambda n: yolo_loss(n, use_label_smooth=1),
    # mean average precision
    "detection_map": lambda n: n.detection.detection_map(
        n.fluid.data("rows", [None, 6], "float32", lod_level=1),
        n.fluid.data("l", [None, 5], "float32", lod_level=1),
        3, background_label=1, evaluate_difficult=False, ap_version="11point"),
    "metric_map": lambda n: average(n, "metrics"),
    "metric_map_difficult": lambda n: average(n, "metrics", difficult=True, overlap_threshold=0.4),
    "evaluator_map": lambda n: average(n, "evaluator"),
    "evaluator_map_difficult": lambda n: average(n, "evaluator", difficult=True, ap_version="11point"),
}  # fmt: skip


def _call(build: Callable[[Net], Any]) -> Callable[[Any], Any]:
    def call(fluid: Any) -> Any:
        out = build(Net(fluid))
        return out[0] if isinstance(out, tuple) else out

    return call


CALLS = {name: _call(build) for name, build in TABLE.items()}
