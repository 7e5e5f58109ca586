"""Points at which operators on anchors, boxes and matches are compared with real Fluid 1.8.5.

This file runs under Python 3.7 as well:

    python3.7 -m tests.interop.dumps.dump_cases tests.ops.detection.recorded_boxes detection_boxes.json.gz
"""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

CASES = {}
case = partial(add_case, CASES)

F32, F64, I32, I64 = "float32", "float64", "int32", "int64"
VARIANCES = [0.1, 0.1, 0.2, 0.2]
_rng = np.random.RandomState(20)


def boxes(*counts, scale=1.0, dtype=F32, rng=_rng):
    """Boxes (xmin, ymin, xmax, ymax) in [0, scale], of shape ``counts + (4,)``."""
    low = rng.uniform(0, 0.7, (*counts, 2))
    high = low + rng.uniform(0.05, 0.5, (*counts, 2))
    return (np.concatenate([low, high], -1) * scale).astype(dtype)


def real(*shape, dtype=F32, low=-1.0, high=1.0):
    return _rng.uniform(low, high, shape).astype(dtype)


# Anchors

for _dtype in (F32, F64):
    for _note, _attrs in {
        "plain": {},
        "flip-clip": {"flip": True, "clip": True},
        "order": {"flip": True, "clip": False, "min_max_aspect_ratios_order": True},
        "steps": {"flip": False, "clip": False, "step_w": 5.3, "step_h": 4.7, "offset": 0.3},
        "one-step": {"flip": False, "clip": False, "step_w": 5.3},
        "no-max": {"flip": True, "clip": False, "max_sizes": []},
        "ratios": {"flip": True, "clip": False, "aspect_ratios": [1.0, 2.0, 0.5, 2.0, 3.0]},
    }.items():
        case(
            "prior_box",
            {"Input": real(2, 3, 4, 5, dtype=_dtype), "Image": real(2, 3, 31, 37, dtype=_dtype)},
            {"Boxes": _dtype, "Variances": _dtype},
            note=_note + "-" + _dtype,
            **dict(
                {
                    "min_sizes": [4.0, 7.7], "max_sizes": [9.0, 15.3], "aspect_ratios": [2.0, 3.3],
                    "variances": VARIANCES,
                },
                **_attrs
            )
        )  # fmt: skip
    for _note, _attrs in {
        "plain": {},
        "clip": {"clip": True},
        "flat": {"flatten_to_2d": True},
        "steps": {"step_w": 8.0, "step_h": 6.5, "offset": 0.4},
    }.items():
        case(
            "density_prior_box",
            {"Input": real(2, 3, 4, 5, dtype=_dtype), "Image": real(2, 3, 40, 52, dtype=_dtype)},
            {"Boxes": _dtype, "Variances": _dtype},
            note=_note + "-" + _dtype,
            **dict(
                {
                    "densities": [4, 2, 1], "fixed_sizes": [7.0, 13.3, 26.1], "fixed_ratios": [1.0, 2.3],
                    "variances": VARIANCES, "clip": False,
                },
                **_attrs
            )
        )  # fmt: skip
    for _note, _attrs in {
        "plain": {},
        "stride": {"stride": [7.5, 12.0], "offset": 0.3},
    }.items():
        case(
            "anchor_generator",
            {"Input": real(2, 3, 4, 5, dtype=_dtype)},
            {"Anchors": _dtype, "Variances": _dtype},
            note=_note + "-" + _dtype,
            anchor_sizes=[32.0, 64.7, 128.0],
            aspect_ratios=[0.5, 1.0, 2.3],
            variances=VARIANCES,
            **_attrs,
        )

# Boxes

for _dtype in (F32, F64):
    for _normalized in (True, False):
        _scale = 1.0 if _normalized else 60.0
        _note = f"{_dtype}-{'unit' if _normalized else 'pixels'}"
        _prior, _target = boxes(6, scale=_scale, dtype=_dtype), boxes(5, scale=_scale, dtype=_dtype)
        _variance = real(6, 4, dtype=_dtype, low=0.1, high=0.3)
        for _kind, _given, _attrs in (
            ("variances", {"PriorBoxVar": _variance}, {}),
            ("numbers", {}, {"variance": VARIANCES}),
            ("none", {}, {}),
        ):
            case(
                "box_coder",
                {"PriorBox": _prior, "TargetBox": (_target, [[0, 2, 2, 5]]), **_given},
                {"OutputBox": _dtype},
                note=f"encode-{_kind}-{_note}",
                code_type="encode_center_size",
                box_normalized=_normalized,
                **_attrs,
            )
            # The real one reads float32 numbers as float64 here.
            if _kind != "numbers" or _dtype == F32:
                for _axis, _rows in ((0, (3, 6)), (1, (6, 3))):
                    case(
                        "box_coder",
                        {"PriorBox": _prior, "TargetBox": real(*_rows, 4, dtype=_dtype), **_given},
                        {"OutputBox": _dtype},
                        note=f"decode-{_kind}-{_axis}-{_note}",
                        code_type="decode_center_size",
                        box_normalized=_normalized,
                        axis=_axis,
                        **_attrs,
                    )
        for _lod in ([], [[0, 2, 2, 5]]):
            _x = boxes(5, scale=_scale, dtype=_dtype)
            _x[1] = [0.3 * _scale, 0.3 * _scale, 0.2 * _scale, 0.25 * _scale]  # upside down
            _y = np.concatenate([boxes(3, scale=_scale, dtype=_dtype), _x[:2], _x[3:4] + _scale * 2])
            case(
                "iou_similarity",
                {"X": (_x, _lod), "Y": _y},
                {"Out": _dtype},
                note=f"{_note}-{len(_lod)}",
                box_normalized=_normalized,
            )
    _info = np.array([[60, 80, 1], [33, 47.5, 0.7]], _dtype)
    for _shape in ((5, 4), (5, 3, 4)):
        case(
            "box_clip",
            {
                "Input": (real(*_shape, dtype=_dtype, low=-30, high=120), [[0, 2, 5]]),
                "ImInfo": (_info, [[0, 1, 2]]),
            },
            {"Output": _dtype},
            note=f"{_dtype}-" + "x".join(map(str, _shape)),
        )
    case(
        "polygon_box_transform",
        {"Input": real(2, 8, 3, 5, dtype=_dtype, low=-9, high=9)},
        {"Output": _dtype},
        note=_dtype,
    )

# The real one's kernel for float64 fails.
_score = real(5, 3, low=0)
_score[2] = [0.9, 0.1, 0.1]
case(
    "box_decoder_and_assign",
    {
        "PriorBox": boxes(5, scale=60),
        "PriorBoxVar": np.array(VARIANCES, F32),
        "TargetBox": real(5, 12, low=-3, high=9),
        "BoxScore": _score,
    },
    {"DecodeBox": F32, "OutputAssignBox": F32},
    box_clip=1.3,
)
case(
    "box_decoder_and_assign",
    {
        "PriorBox": (boxes(3, scale=60), [[0, 1, 3]]),
        "PriorBoxVar": np.array(VARIANCES, F32),
        "TargetBox": (real(3, 8), [[0, 1, 3]]),
        "BoxScore": (real(3, 2), [[0, 1, 3]]),
    },
    {"DecodeBox": F32, "OutputAssignBox": F32},
    note="sequences",
    box_clip=4.135,
)
case(
    "box_decoder_and_assign",
    {
        "PriorBox": boxes(3, scale=60),
        "PriorBoxVar": np.array(VARIANCES, F32),
        "TargetBox": real(3, 4),
        "BoxScore": real(3, 1),
    },
    {"DecodeBox": F32, "OutputAssignBox": F32},
    note="background",
    box_clip=4.135,
)

# Matching

_TIES = np.array([[0.5, 0.5, 0.2, 0, 0.7], [0.5, 0.5, 0.2, 0, 0.7], [0.3, 0.5, 0.9, 1e-7, 0]], F32)
_MANY = real(140, 160, low=-0.1)
for _dtype in (F32, F64):
    for _note, _matrix in {
        "one": real(4, 7, dtype=_dtype, low=0),
        "more-rows": real(7, 4, dtype=_dtype, low=0),
        "ties": _TIES.astype(_dtype),
        "sequences": (real(9, 8, dtype=_dtype, low=-0.3), [[0, 3, 8, 9]]),
        "one-sequence": (real(3, 8, dtype=_dtype, low=0), [[0, 3]]),
        "zeros": np.zeros((2, 3), _dtype),
        "many": _MANY.astype(_dtype),
    }.items():
        for _attrs in ({}, {"match_type": "per_prediction", "dist_threshold": 0.5}):
            case(
                "bipartite_match",
                {"DistMat": _matrix},
                {"ColToRowMatchIndices": I32, "ColToRowMatchDist": _dtype},
                note=f"{_note}-{_dtype}-{len(_attrs)}",
                **_attrs,
            )

_MATCH = np.array([[0, -1, 1, 2, -1, 0], [-1, 3, -1, 1, 0, 0]], I32)
_NEGATIVE = (np.array([1, 4, 0, 2], I32).reshape(-1, 1), [[0, 2, 4]])
for _note, _x in {
    "labels": _rng.randint(0, 9, (7, 1, 1)).astype(I32),
    "targets": real(7, 6, 4),
    "some-columns": real(7, 3, 4),
}.items():
    # With several numbers in a row of X the real one writes weights of negatives past the end of the array.
    for _more in ({}, {"NegIndices": _NEGATIVE}) if _note == "labels" else ({},):
        case(
            "target_assign",
            {"X": (_x, [[0, 3, 7]]), "MatchIndices": _MATCH, **_more},
            {"Out": str(_x.dtype), "OutWeight": F32},
            note=f"{_note}-{len(_more)}",
            mismatch_value=5,
        )

for _dtype in (F32, F64):
    _index = np.where(_rng.uniform(size=(3, 40)) < 0.2, 3, -1).astype(I32)
    _index[2] = -1
    _distance = real(3, 40, dtype=_dtype, low=0)
    _flat = np.full((3, 40), 0.25, _dtype)  # ties: an unstable sort decides
    _few = np.round(real(3, 40, dtype=_dtype, low=0), 1)
    for _note, _loss in (("", real(3, 40, dtype=_dtype, low=0)), ("-flat", _flat), ("-ties", _few)):
        case(
            "mine_hard_examples",
            {"ClsLoss": _loss, "MatchIndices": _index, "MatchDist": _distance},
            {"NegIndices": I32, "UpdatedMatchIndices": I32},
            note=f"negatives{_note}-{_dtype}",
            neg_pos_ratio=2.5,
            neg_dist_threshold=0.6,
        )
        case(
            "mine_hard_examples",
            {
                "ClsLoss": _loss,
                "LocLoss": np.round(real(3, 40, dtype=_dtype, low=0), 1 if _note else 6),
                "MatchIndices": _index,
                "MatchDist": _distance,
            },
            {"NegIndices": I32, "UpdatedMatchIndices": I32},
            note=f"hard{_note}-{_dtype}",
            mining_type="hard_example",
            sample_size=18,
        )
