"""Points at which suppression of boxes and mean average precision are compared with real Fluid 1.8.5.

This file runs under Python 3.7 as well:

    python3.7 -m tests.interop.dumps.dump_cases tests.ops.detection.recorded_suppression OUT.json.gz
"""

from functools import partial

import numpy as np

from tests.ops.detection.recorded_boxes import F32, F64, I32, I64, boxes
from tests.ops.harness.recorded import add_case

CASES = {}
case = partial(add_case, CASES)
_rng = np.random.RandomState(21)


def scores(*shape, dtype=F32, decimals=6):
    return np.round(_rng.uniform(0, 1, shape), decimals).astype(dtype)


def near(count, dtype=F32, scale=1.0):
    """Boxes in groups that overlap much."""
    groups = boxes(5, rng=_rng)[_rng.randint(0, 5, count)]
    return ((groups + _rng.uniform(-0.03, 0.03, (count, 4))) * scale).astype(dtype)


_UPSIDE_DOWN = near(20)
_UPSIDE_DOWN[::4] = _UPSIDE_DOWN[::4, [2, 3, 0, 1]]
_UPSIDE_DOWN[1::4, 2] = _UPSIDE_DOWN[1::4, 0]  # without an area
_UPSIDE_DOWN[5] = _UPSIDE_DOWN[1]

_THREE = {
    "plain": {},
    "all-classes": {"background_label": -1},
    "top": {"nms_top_k": 7, "keep_top_k": 9},
    "keep-all": {"nms_top_k": -1, "keep_top_k": -1},
    "keep-few": {"nms_top_k": -1, "keep_top_k": 4},
    "keep-none": {"keep_top_k": 0},
    "adaptive": {"nms_eta": 0.8, "nms_threshold": 0.8},
    "adaptive-low": {"nms_eta": 0.8, "nms_threshold": 0.4},
    "high": {"score_threshold": 0.9},
}
for _type, _more in (("multiclass_nms", {}), ("multiclass_nms2", {"Index": I64})):
    for _dtype in (F32, F64):
        _boxes = np.stack([near(30, _dtype), near(30, _dtype)])
        for _note, _attrs in _THREE.items():
            case(
                _type,
                {"BBoxes": _boxes, "Scores": scores(2, 3, 30, dtype=_dtype)},
                dict({"Out": _dtype}, **_more),
                note=_note + "-" + _dtype,
                **dict({"score_threshold": 0.1, "nms_top_k": 20, "keep_top_k": 15}, **_attrs),
            )
        case(
            _type,
            {"BBoxes": np.stack([near(30, _dtype, 60.0)] * 2), "Scores": scores(2, 3, 30, dtype=_dtype)},
            dict({"Out": _dtype}, **_more),
            note="pixels-" + _dtype,
            normalized=False, score_threshold=0.1, nms_top_k=20, keep_top_k=15,
        )  # fmt: skip
        case(
            _type,
            {"BBoxes": _boxes, "Scores": scores(2, 3, 30, dtype=_dtype, decimals=1)},
            dict({"Out": _dtype}, **_more),
            note="ties-" + _dtype,
            score_threshold=0.1, nms_top_k=20, keep_top_k=15,
        )  # fmt: skip
        for _note, _attrs in {"sequences": {}, "few": {"keep_top_k": 5}}.items():
            case(
                _type,
                {
                    "BBoxes": (near(36, _dtype).reshape(12, 3, 4), [[0, 5, 12]]),
                    "Scores": (scores(12, 3, dtype=_dtype, decimals=2), [[0, 5, 12]]),
                },
                dict({"Out": _dtype}, **_more),
                note=_note + "-" + _dtype,
                **dict({"score_threshold": 0.1, "nms_top_k": 20, "keep_top_k": 15}, **_attrs),
            )
    _one_empty = scores(2, 2, 30)
    _one_empty[0] = 0
    case(
        _type,
        {"BBoxes": np.stack([near(30)] * 2), "Scores": _one_empty},
        dict({"Out": F32}, **_more),
        note="nothing-in-an-image",
        score_threshold=0.1, nms_top_k=20, keep_top_k=15,
    )  # fmt: skip
    case(
        _type,
        {"BBoxes": _UPSIDE_DOWN[None], "Scores": scores(1, 2, 20)},
        dict({"Out": F32}, **_more),
        note="upside-down",
        score_threshold=0.1, nms_top_k=20, keep_top_k=15,
    )  # fmt: skip
case(
    "multiclass_nms",
    {"BBoxes": np.stack([near(30)] * 2), "Scores": np.zeros((2, 3, 30), F32)},
    {"Out": F32},
    note="nothing",
    score_threshold=0.1, nms_top_k=20, keep_top_k=15,
)  # fmt: skip

for _dtype in (F32, F64):
    for _note, _attrs in {
        "plain": {},
        "all-classes": {"background_label": -1},
        "gaussian": {"use_gaussian": True, "gaussian_sigma": 1.3},
        "top": {"nms_top_k": 7, "keep_top_k": 9},
        "keep-all": {"nms_top_k": -1, "keep_top_k": -1},
        "post": {"post_threshold": 0.4},
        "pixels": {"normalized": False},
    }.items():
        case(
            "matrix_nms",
            {
                "BBoxes": np.stack([near(30, _dtype, 60.0 if "pixels" in _note else 1.0) for _ in range(2)]),
                "Scores": scores(2, 3, 30, dtype=_dtype),
            },
            {"Out": _dtype, "Index": I64},
            note=_note + "-" + _dtype,
            **dict({"score_threshold": 0.1, "nms_top_k": 20, "keep_top_k": 15}, **_attrs),
        )
    case(
        "matrix_nms",
        {"BBoxes": near(30, _dtype)[None], "Scores": scores(1, 3, 30, dtype=_dtype, decimals=1)},
        {"Out": _dtype, "Index": I64},
        note="ties-" + _dtype,
        score_threshold=0.1, nms_top_k=20, keep_top_k=15,
    )  # fmt: skip

for _dtype in (F32, F64):
    _boxes = np.stack([np.sort(near(30, _dtype), 0), np.sort(near(30, _dtype), 0)])
    for _note, _attrs in {
        "plain": {},
        "top": {"nms_top_k": 5, "keep_top_k": 3},
        "high": {"score_threshold": 0.9, "nms_threshold": 0.6},
        "adaptive": {"nms_eta": 0.8, "nms_threshold": 0.7},
        "pixels": {"normalized": False},
    }.items():
        case(
            "locality_aware_nms",
            {
                "BBoxes": (_boxes * (60 if _note == "pixels" else 1)).astype(_dtype),
                "Scores": scores(2, 1, 30, dtype=_dtype),
            },
            {"Out": _dtype},
            note=_note + "-" + _dtype,
            **dict({"score_threshold": 0.1, "nms_top_k": 20, "keep_top_k": 15}, **_attrs),
        )


def polygons(count, corners):
    """Convex polygons in groups that overlap much: corners on circles, in order."""
    angle = np.sort(_rng.uniform(0, 2 * np.pi, (4, corners)), 1)
    center, size = _rng.uniform(20, 80, (4, 1, 2)), _rng.uniform(10, 30, (4, 1, 1))
    groups = (center + size * np.stack([np.cos(angle), np.sin(angle)], -1)).reshape(4, -1)
    shift = np.tile(_rng.uniform(-3, 3, (count, 2)), corners)
    return (groups[_rng.randint(0, 4, count)] + shift).astype(F32)


for _corners in (4, 8):
    for _type in ("multiclass_nms", "locality_aware_nms"):
        case(
            _type,
            {"BBoxes": polygons(20, _corners)[None], "Scores": scores(1, 1, 20)},
            {"Out": F32},
            note="polygons-" + str(_corners),
            background_label=-1, score_threshold=0.1, nms_top_k=20, keep_top_k=15, nms_threshold=0.5,
        )  # fmt: skip


def truth(count, classes, difficult):
    rows = [_rng.randint(0, classes, (count, 1)), boxes(count, rng=_rng)]
    if difficult:
        rows.insert(1, _rng.randint(0, 2, (count, 1)))
    return np.concatenate(rows, 1).astype(F32)


def found(label, count, classes, decimals=6):
    """Detections: some of the true boxes, moved a little, and some others."""
    chosen = label[_rng.randint(0, len(label), count)]
    rows, kinds = chosen[:, -4:] + _rng.uniform(-0.03, 0.03, (count, 4)), chosen[:, :1].copy()
    rows[::3] = boxes(len(rows[::3]), rng=_rng)
    kinds[::4] = _rng.randint(0, classes, kinds[::4].shape)
    return np.concatenate([kinds, np.round(_rng.uniform(0, 1, (count, 1)), decimals), rows], 1).astype(F32)


_OUT = {"AccumPosCount": I32, "AccumTruePos": F32, "AccumFalsePos": F32, "MAP": F32}
for _difficult in (False, True):
    _label = truth(9, 3, _difficult)
    _detected = found(_label, 24, 3, 1 if _difficult else 6)
    _labels, _detections = (_label, [[0, 4, 5, 9]]), (_detected, [[0, 10, 13, 24]])
    for _note, _attrs in {
        "integral": {},
        "11point": {"ap_type": "11point"},
        "easy": {"evaluate_difficult": False},
        "strict": {"overlap_threshold": 0.8},
        "background": {"background_label": 1},
        "all": {"background_label": -1},
    }.items():
        case(
            "detection_map",
            {"DetectRes": _detections, "Label": _labels},
            _OUT,
            note=_note + ("-difficult" if _difficult else ""),
            class_num=3,
            **_attrs,
        )
    for _state in (0, 1):
        case(
            "detection_map",
            {
                "DetectRes": _detections,
                "Label": _labels,
                "HasState": np.array([_state], I32),
                "PosCount": np.array([[2], [0], [5]], I32),
                "TruePos": ((scores(5, 2, decimals=0) * [0.7, 1] + [0.1, 0]).astype(F32), [[0, 3, 3, 5]]),
                "FalsePos": ((scores(5, 2, decimals=0) * [0.7, 1] + [0.1, 0]).astype(F32), [[0, 3, 3, 5]]),
            },
            _OUT,
            note="state-" + str(_state) + ("-difficult" if _difficult else ""),
            class_num=3,
        )
