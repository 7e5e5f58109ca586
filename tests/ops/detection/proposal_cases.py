"""Points at which proposals and their targets are compared with real Fluid 1.8.5."""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

__all__ = ["CASES"]

CASES = {}
case = partial(add_case, CASES)
F32, F64, I32, I64 = "float32", "float64", "int32", "int64"
_rng = np.random.RandomState(31)


def boxes(count, width=60.0, height=40.0, dtype=F32):
    """Boxes of many sizes within an image."""
    corner = _rng.uniform(0, 0.8, (count, 2)) * [width, height]
    size = _rng.uniform(0.1, 0.7, (count, 2)) * [width, height]
    return np.concatenate([corner, np.minimum(corner + size, [width - 1, height - 1])], 1).astype(dtype)


def grid(height, width, sizes, stride=8, dtype=F32):
    """Anchors (H, W, A, 4) of square and wide boxes."""
    out = np.empty((height, width, len(sizes), 4), dtype)
    for y, x, a in np.ndindex(*out.shape[:3]):
        w, h = sizes[a]
        cx, cy = x * stride + stride / 2.0, y * stride + stride / 2.0
        out[y, x, a] = [cx - w / 2.0, cy - h / 2.0, cx + w / 2.0, cy + h / 2.0]
    return out


SIZES = [(8, 8), (16, 16), (30, 14)]
INFO = np.array([[40, 60, 1.0], [30, 45, 1.5]], F32)


def add_proposals(note, scores, info=INFO, variance=0.5, dtype=F32, spread=0.4, **attrs):
    n, a, h, w = scores.shape
    given = {
        "Scores": scores.astype(dtype),
        "BboxDeltas": (_rng.standard_normal((n, 4 * a, h, w)) * spread).astype(dtype),
        "ImInfo": info.astype(dtype),
        "Anchors": grid(h, w, SIZES[:a], dtype=dtype),
        "Variances": np.full((h, w, a, 4), variance, dtype),
    }
    settings = {"pre_nms_topN": 40, "post_nms_topN": 10, "nms_thresh": 0.6, "min_size": 2.0, "eta": 1.0}
    outputs = {"RpnRois": dtype, "RpnRoiProbs": dtype, "RpnRoisLod": I64}
    case("generate_proposals", given, outputs, "", note, **dict(settings, **attrs))


def different(*shape):
    """Scores of which no two are equal."""
    return _rng.permutation(np.prod(shape)).reshape(shape) / float(np.prod(shape))


add_proposals("", different(2, 3, 5, 7))
add_proposals("all", different(2, 3, 5, 7), pre_nms_topN=-1, post_nms_topN=-1)
add_proposals(
    "adaptive", different(2, 3, 5, 7), nms_thresh=0.9, eta=0.8, pre_nms_topN=6000, post_nms_topN=1000
)
add_proposals("strict", different(2, 3, 5, 7), nms_thresh=0.05)
add_proposals("large", different(2, 3, 5, 7), min_size=30.0)
add_proposals("none", different(2, 2, 3, 4), min_size=1000.0)
add_proposals("far", different(1, 3, 5, 7), INFO[:1], spread=9.0)
add_proposals("unsuppressed", different(1, 2, 3, 4), INFO[:1], nms_thresh=0.0, pre_nms_topN=6000)
add_proposals(
    "ties", np.round(different(1, 3, 5, 7) * 4) / 4, INFO[:1], pre_nms_topN=6000, post_nms_topN=1000
)
add_proposals("float64", different(2, 3, 5, 7), dtype=F64)

for _note, _offsets, _levels in (("", [0, 6, 14], (2, 5)), ("-one", [0, 14], (4, 4))):
    _rois = boxes(14, 600.0, 400.0)
    _rois[3] = [5, 5, 4, 4]
    _rois[9] = [0, 0, 223, 223]
    case(
        "distribute_fpn_proposals",
        {"FpnRois": (_rois, [_offsets])},
        {"MultiFpnRois": [F32] * (_levels[1] - _levels[0] + 1), "RestoreIndex": I32},
        "", "levels" + _note, min_level=_levels[0], max_level=_levels[1], refer_level=4, refer_scale=224
    )  # fmt: skip
for _note, _count, _decimals in (("", 8, 4), ("more", 100, 4), ("ties", 9, 1)):
    _offsets = ([[0, 5, 9]], [[0, 2, 6]], [[0, 0, 3]])
    case(
        "collect_fpn_proposals",
        {
            "MultiLevelRois": [(boxes(lod[0][-1]), lod) for lod in _offsets],
            "MultiLevelScores": [
                (np.round(_rng.uniform(0, 1, (lod[0][-1], 1)), _decimals).astype(F32), lod)
                for lod in _offsets
            ],
        },
        {"FpnRois": F32}, "", _note, post_nms_topN=_count
    )  # fmt: skip

ANCHORS = grid(5, 7, SIZES).reshape(-1, 4)


def add_targets(note, objects, lod, crowd=(), dtype=F32, info=INFO, **attrs):
    single = np.zeros((len(objects), 1), I32)
    single[list(crowd)] = 1
    given = {
        "Anchor": ANCHORS.astype(dtype),
        "GtBoxes": (objects.astype(dtype), lod),
        "IsCrowd": (single, lod),
        "ImInfo": info.astype(dtype),
    }
    index = {"LocationIndex": I32, "ScoreIndex": I32, "TargetBBox": dtype, "TargetLabel": I32}
    outputs = dict(index, BBoxInsideWeight=dtype)
    settings = {"rpn_straddle_thresh": 0.0, "use_random": False, "rpn_batch_size_per_im": 24}
    case("rpn_target_assign", given, outputs, "", note, **dict(settings, **attrs))
    labels = (_rng.randint(1, 5, (len(objects), 1)).astype(I32), lod)
    outputs = dict(outputs, ForegroundNumber=I32)
    overlaps = {"positive_overlap": 0.5, "negative_overlap": 0.4}
    case("retinanet_target_assign", dict(given, GtLabels=labels), outputs, "", note, **overlaps)


_objects = np.concatenate([boxes(3), boxes(4) / np.array(1.5, F32)])
LOD = [[0, 3, 7]]
add_targets("", _objects, LOD)
add_targets("crowd", _objects, LOD, crowd=(1, 3))
add_targets("beyond", _objects, LOD, rpn_straddle_thresh=-1.0, rpn_fg_fraction=0.5)
add_targets("few", _objects, LOD, rpn_batch_size_per_im=4, rpn_fg_fraction=0.25)
#: Anchors that are the best of an object and far from it: foreground and background at once.
add_targets("twice", _objects, LOD, rpn_negative_overlap=0.6, rpn_batch_size_per_im=512, rpn_fg_fraction=1.0)
add_targets("margin", _objects, LOD, rpn_straddle_thresh=4.0, rpn_positive_overlap=0.4)
add_targets("float64", _objects, LOD, dtype=F64)


def add_labels(note, dtype=F32, crowd=(), **attrs):
    lod, offsets = [[0, 3, 7]], [[0, 20, 45]]
    objects = np.concatenate([boxes(3), boxes(4) / np.array(1.5, F32)]).astype(dtype)
    rois = np.concatenate([boxes(20), boxes(25)])
    rois[[2, 5]] = objects[[0, 1]] + np.array(0.5, F32)
    rois[30] = objects[4] * 1.5
    single = np.zeros((7, 1), I32)
    single[list(crowd)] = 1
    given = {
        "RpnRois": (rois.astype(dtype), offsets),
        "GtClasses": (_rng.randint(1, 5, (7, 1)).astype(I32), lod),
        "IsCrowd": (single, lod),
        "GtBoxes": (objects, lod),
        "ImInfo": INFO.astype(dtype),
    }
    outputs = {"Rois": dtype, "LabelsInt32": I32}
    outputs.update(dict.fromkeys(["BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"], dtype))
    settings = {
        "batch_size_per_im": 16, "fg_fraction": 0.25, "fg_thresh": 0.5, "bg_thresh_hi": 0.5,
        "bg_thresh_lo": 0.0,
        "bbox_reg_weights": [0.1, 0.1, 0.2, 0.2], "class_nums": 5, "use_random": False,
    }  # fmt: skip
    case("generate_proposal_labels", given, outputs, "", note, **dict(settings, **attrs))


add_labels("")
add_labels("crowd", crowd=(0, 5))
add_labels("agnostic", is_cls_agnostic=True, class_nums=2)
add_labels("cascade", is_cascade_rcnn=True, batch_size_per_im=512)
add_labels("all", batch_size_per_im=512, fg_thresh=0.3, bg_thresh_hi=0.3, bg_thresh_lo=0.1)
add_labels("float64", F64)


def add_masks(note, labels, crowd=(), resolution=7, rois_lod=(0, 4, 9)):
    """Two images: with a square and a ring of two polygons; with a star and a sliver."""
    star = np.array(
        [[20, 2], [24, 14], [38, 14], [27, 22], [31, 35], [20, 27], [9, 35], [13, 22], [2, 14], [16, 14]]
    )
    points = [
        np.array([[5, 5], [25, 5], [25, 25], [5, 25]]),
        np.array([[30.5, 3.2], [50.1, 8.7], [41.3, 30.9]]),
        np.array([[33.0, 30.0], [45.0, 31.0], [44.0, 39.0], [35.0, 38.0]]),
        star,
        np.array([[1.2, 3.4], [28.3, 4.1], [28.1, 4.4], [1.1, 5.6], [0.4, 4.4]]),
    ]
    counts = np.cumsum([0] + [len(each) for each in points]).tolist()
    rois = np.concatenate([boxes(3), [[4, 4, 26, 26]], boxes(5) * 1.2]).astype(F32)
    single = np.zeros((4, 1), I32)
    single[list(crowd)] = 1
    case(
        "generate_mask_labels",
        {
            "ImInfo": INFO,
            "GtClasses": (np.array([[1], [3], [2], [1]], I32), [[0, 2, 4]]),
            "IsCrowd": (single, [[0, 2, 4]]),
            "GtSegms": (np.concatenate(points).astype(F32), [[0, 2, 4], [0, 1, 3, 4, 5], counts]),
            "Rois": (rois, [list(rois_lod)]),
            "LabelsInt32": (np.array(labels, I32).reshape(-1, 1), [list(rois_lod)]),
        },
        {"MaskRois": F32, "RoiHasMaskInt32": I32, "MaskInt32": I32},
        "", note, num_classes=4, resolution=resolution
    )  # fmt: skip


add_masks("", [1, 0, 3, 1, 0, 2, 2, 1, 0])
add_masks("fine", [1, 3, 3, 1, 1, 2, 2, 1, 2], resolution=28)
add_masks("none", [0, 0, 0, 0, 0, 2, 2, 1, 0])
add_masks("crowd", [1, 0, 3, 1, 0, 2, 2, 1, 0], crowd=(1,))
add_masks("empty", [1, 0, 3, 1, 0, 2, 2, 1, 0], rois_lod=(0, 0, 9))


def add_output(note, info=INFO, decimals=6, dtype=F32, **attrs):
    levels = (12, 6)
    given = {
        "BBoxes": [(_rng.standard_normal((len(info), n, 4)) * 0.4).astype(dtype) for n in levels],
        "Scores": [np.round(_rng.uniform(0, 1, (len(info), n, 3)), decimals).astype(dtype) for n in levels],
        "Anchors": [boxes(n, dtype=dtype) for n in levels],
        "ImInfo": info.astype(dtype),
    }
    settings = {
        "score_threshold": 0.3,
        "nms_top_k": 10,
        "keep_top_k": 8,
        "nms_threshold": 0.4,
        "nms_eta": 1.0,
    }
    case("retinanet_detection_output", given, {"Out": dtype}, "", note, **dict(settings, **attrs))


add_output("")
add_output("ties", decimals=1)
add_output("all", nms_top_k=-1, keep_top_k=1000, nms_threshold=0.9)
add_output("adaptive", nms_threshold=0.8, nms_eta=0.7)
add_output("float64", dtype=F64)
