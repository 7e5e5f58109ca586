"""Points at which deformable and perspective operators are compared with real Fluid 1.8.5."""

from functools import partial

import numpy as np

from tests.ops.detection.region_cases import F32, F64, I32, LOD, real, rois
from tests.ops.harness.recorded import add_case

__all__ = ["CASES"]

CASES = {}
case = partial(add_case, CASES)


def add_conv(note, x, w, counts, dtype=F32, deformable=1, **attrs):
    """A convolution with a mask, and one without. Offsets reach over the border."""
    batch, elements = x[0], deformable * w[2] * w[3]
    given = {
        "Input": real(*x, dtype=dtype),
        "Offset": real(batch, 2 * elements, *counts, dtype=dtype) * np.array(2.5, dtype),
        "Filter": real(*w, dtype=dtype),
    }
    attrs = dict({"strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1], "groups": 1}, **attrs)
    attrs.update(deformable_groups=deformable, im2col_step=1)
    if dtype == F32:  # the real kernel without a mask has no other
        case("deformable_conv_v1", given, {"Output": dtype}, "Input Offset Filter", note, **attrs)
    given = dict(given, Mask=np.abs(real(batch, elements, *counts, dtype=dtype)))
    case("deformable_conv", given, {"Output": dtype}, "Input Offset Mask Filter", note, **attrs)


add_conv("", (2, 3, 6, 7), (4, 3, 3, 3), (6, 7), paddings=[1, 1])
add_conv(
    "groups", (1, 4, 6, 7), (6, 2, 2, 3), (4, 3), groups=2, deformable=2, strides=[2, 2], paddings=[1, 0]
)
add_conv("dilated", (2, 2, 7, 8), (3, 2, 3, 2), (5, 9), dilations=[2, 1], paddings=[1, 1])
add_conv("float64", (1, 2, 5, 5), (2, 2, 3, 3), (5, 5), F64, paddings=[1, 1])


def add_pooling(note, channels, trans, dtype=F32, **attrs):
    defaults = {"no_trans": False, "spatial_scale": 1.0, "group_size": [1, 1], "sample_per_part": 2}
    attrs = dict(dict(defaults, trans_std=0.3), **attrs)
    case(
        "deformable_psroi_pooling",
        {
            "Input": real(2, channels, 8, 9, dtype=dtype),
            "ROIs": (rois(dtype=dtype), LOD),
            "Trans": real(8, *trans, dtype=dtype),
        },
        {"TopCount": I32, "Output": dtype},
        "Input" if attrs["no_trans"] else "Input Trans",
        note,
        ["Output"],
        **attrs
    )  # fmt: skip


_square = {"pooled_height": 3, "pooled_width": 3, "part_size": [3, 3], "output_dim": 2}
add_pooling("", 2, (2, 3, 3), **_square)
add_pooling("still", 2, (2, 3, 3), **dict(_square, no_trans=True))
add_pooling("classes", 4, (4, 3, 3), **dict(_square, output_dim=4, spatial_scale=0.5))
add_pooling("groups", 18, (2, 3, 3), **dict(_square, group_size=[3, 3]))
add_pooling("parts", 8, (2, 2, 2), **dict(_square, part_size=[2, 2], group_size=[2, 2], sample_per_part=3))
add_pooling("float64", 2, (2, 3, 3), F64, **_square)

QUADS = [
    [1, 1, 6, 2, 5, 6, 1, 5],
    [0, 0, 8, 0, 8, 7, 0, 7],
    [-3, -2, 3, 1, 3, 4, -2, 3],
    [2.5, 1.5, 7.5, 0.5, 8.2, 4.5, 3.1, 6.5],
]
for _note, _scale, _size in (("", 1.0, (3, 4)), ("scaled", 0.5, (4, 6)), ("row", 1.0, (1, 5))):
    case(
        "roi_perspective_transform",
        {"X": real(2, 3, 8, 9), "ROIs": (np.array(QUADS, F32) / np.array(_scale, F32), [[0, 1, 4]])},
        {"Out": F32, "Mask": I32, "TransformMatrix": F32, "Out2InIdx": I32, "Out2InWeights": F32},
        "X", _note, spatial_scale=_scale, transformed_height=_size[0], transformed_width=_size[1]
    )  # fmt: skip
