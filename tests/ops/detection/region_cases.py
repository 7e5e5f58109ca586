"""Points at which pools over regions of images are compared with real Fluid 1.8.5."""

from functools import partial

import numpy as np

from tests.ops.harness.recorded import add_case

__all__ = ["CASES"]

CASES = {}
case = partial(add_case, CASES)
F32, F64, I32, I64 = "float32", "float64", "int32", "int64"
_rng = np.random.RandomState(23)


def real(*shape, dtype=F32):
    return _rng.uniform(-1, 1, shape).astype(dtype)


#: Inside, over each border, outside, a point, with corners exchanged, one on half pixels.
PLACES = [
    [0.3, 1.2, 5.5, 6.1],
    [2, 3, 7.9, 7.3],
    [-3.5, -2, 4, 4],
    [6, 5, 14, 12],
    [20, 20, 25, 30],
    [3, 3, 3, 3],
    [6, 5, 2, 1],
    [0.5, 1.5, 2.5, 6.5],
]
LOD = [[0, 3, 8]]
EMPTY_IMAGE = [[0, 0, 8]]


def rois(scale=1.0, dtype=F32):
    return np.array(PLACES, dtype) * np.array(scale, dtype)


def sizes(height, width, scale=1.0, **more):
    return dict(pooled_height=height, pooled_width=width, spatial_scale=scale, **more)


for _dtype in (F32, F64):
    _x = real(2, 3, 8, 9, dtype=_dtype)
    for _note, _lod, _scale in (("", LOD, 1.0), ("-scaled", LOD, 0.5), ("-empty", EMPTY_IMAGE, 1.0)):
        _given = {"X": _x, "ROIs": (rois(1 / _scale, _dtype), _lod)}
        _name = _dtype + _note
        case("roi_pool", _given, {"Out": _dtype, "Argmax": I32}, "X", _name, **sizes(3, 2, _scale))
        for _ratio in (-1, 2):
            case(
                "roi_align", _given, {"Out": _dtype}, "X", f"{_name}-{_ratio}",
                **sizes(2, 3, _scale, sampling_ratio=_ratio)
            )  # fmt: skip
        case(
            "psroi_pool",
            {"X": real(2, 12, 8, 9, dtype=_dtype), "ROIs": _given["ROIs"]},
            {"Out": _dtype}, "X", _name, **sizes(2, 3, _scale, output_channels=2)
        )  # fmt: skip
        case("prroi_pool", _given, {"Out": _dtype}, "X", _name, **sizes(2, 3, _scale))

_x, _offsets = real(2, 2, 6, 7), np.array([0, 3, 8], I64)
for _type, _outputs in (("roi_pool", {"Out": F32, "Argmax": I32}), ("roi_align", {"Out": F32})):
    _given = {"X": _x, "ROIs": rois(), "RoisLod": _offsets}
    case(_type, _given, _outputs, "X", "offsets", **sizes(2, 2))
case(
    "prroi_pool",
    {"X": _x, "ROIs": rois(), "BatchRoINums": np.array([3, 5], I64)},
    {"Out": F32}, "X", "counts", **sizes(2, 2)
)  # fmt: skip
#: The gradient by the corners, for regions with an area.
case(
    "prroi_pool",
    {"X": _x, "ROIs": (rois()[:4], [[0, 2, 4]])},
    {"Out": F32}, "X ROIs", "corners", **sizes(2, 3, 0.75)
)  # fmt: skip
#: Equal maxima, and values that compare with nothing.
_steps = np.round(real(1, 2, 6, 7) * 2)
_steps[0, 1, 2:4, 1:5] = [-np.inf, np.nan, -np.inf, np.nan]
case(
    "roi_pool",
    {"X": _steps, "ROIs": (rois(), [[0, 8]])},
    {"Out": F32, "Argmax": I32}, "X", "ties", **sizes(3, 3)
)  # fmt: skip
