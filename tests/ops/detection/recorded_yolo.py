"""Points at which yolo_box and yolov3_loss are compared with real Fluid 1.8.5.

This file runs under Python 3.7 as well:

    python3.7 -m tests.interop.dumps.dump_cases tests.ops.detection.recorded_yolo OUT.json.gz
"""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

CASES = {}
case = partial(add_case, CASES)
F32, F64, I32 = "float32", "float64", "int32"
ANCHORS = [10, 13, 16, 30, 33, 23, 30, 61, 62, 45, 59, 119]
_rng = np.random.RandomState(22)


def real(*shape, dtype=F32):
    return _rng.uniform(-2, 2, shape).astype(dtype)


for _dtype in (F32, F64):
    for _note, _attrs in {
        "plain": {},
        "whole": {"clip_bbox": False},
        "low": {"conf_thresh": 0.0},
        "scaled": {"scale_x_y": 1.2},
        "ratio": {"downsample_ratio": 8},
    }.items():
        case(
            "yolo_box",
            {
                "X": real(2, 16, 3, 4, dtype=_dtype),
                "ImgSize": np.array([[100, 120], [33, 47]], I32),
            },
            {"Boxes": _dtype, "Scores": _dtype},
            note=_note + "-" + _dtype,
            **dict({"anchors": ANCHORS[:4], "class_num": 3, "conf_thresh": 0.4}, **_attrs),
        )

_OUT = {"ObjectnessMask": I32, "GTMatchMask": I32}  # as the layer declares them
for _dtype in (F32, F64):
    _boxes = _rng.uniform(0.05, 0.95, (2, 5, 4)).astype(_dtype)
    _boxes[..., 2:] *= 0.5
    _boxes[0, 3:] = 0  # padding
    _boxes[1, 2] = _boxes[1, 1]  # two boxes in one cell
    _labels = _rng.randint(0, 3, (2, 5)).astype(I32)
    for _note, _attrs in {
        "plain": {},
        "sharp": {"use_label_smooth": False},
        "ignore-none": {"ignore_thresh": 1.0},
        "ignore-many": {"ignore_thresh": 0.1},
        "scaled": {"scale_x_y": 1.2},
        "large": {"anchor_mask": [3, 4, 5]},
        "ratio": {"downsample_ratio": 8},
    }.items():
        for _more in ({}, {"GTScore": _rng.uniform(0, 1, (2, 5)).astype(_dtype)}):
            case(
                "yolov3_loss",
                dict({"X": real(2, 24, 4, 4, dtype=_dtype), "GTBox": _boxes, "GTLabel": _labels}, **_more),
                dict({"Loss": _dtype}, **_OUT),
                "X",
                _note + "-" + _dtype + "-scores" * len(_more),
                **dict(
                    {
                        "anchors": ANCHORS, "anchor_mask": [0, 1, 2], "class_num": 3,
                        "ignore_thresh": 0.4, "downsample_ratio": 32,
                    },
                    **_attrs
                )
            )  # fmt: skip
    case(
        "yolov3_loss",
        {
            "X": real(1, 24, 4, 4, dtype=_dtype),
            "GTBox": np.zeros((1, 3, 4), _dtype),
            "GTLabel": np.zeros((1, 3), I32),
        },
        dict({"Loss": _dtype}, **_OUT),
        "X",
        "no-boxes-" + _dtype,
        anchors=ANCHORS, anchor_mask=[0, 1, 2], class_num=3, ignore_thresh=0.4, downsample_ratio=32,
    )  # fmt: skip

# Many boxes on few cells: of those at one cell and anchor, the last decides.
_crowd = _rng.uniform(0.05, 0.95, (2, 60, 4)).astype(F32)
_crowd[..., 2:] *= 0.3
case(
    "yolov3_loss",
    {
        "X": real(2, 24, 3, 3),
        "GTBox": _crowd,
        "GTLabel": _rng.randint(0, 3, (2, 60)).astype(I32),
        "GTScore": _rng.uniform(0, 1, (2, 60)).astype(F32),
    },
    dict({"Loss": F32}, **_OUT),
    "X",
    "crowd",
    anchors=ANCHORS, anchor_mask=[0, 1, 2], class_num=3, ignore_thresh=0.4, downsample_ratio=32,
)  # fmt: skip
