"""Cases of anchors, boxes and their targets, one box at a time."""

import math

import numpy as np

from paddlelike.core import LoDTensor
from tests.ops.harness.contract import Case

_rng = np.random.default_rng(31)


def _boxes(count, scale=1.0):
    low = _rng.uniform(0, 0.6, (count, 2))
    return np.concatenate([low, low + _rng.uniform(0.1, 0.4, (count, 2))], 1) * scale


def _sequences(array, *lengths):
    tensor = LoDTensor(array)
    tensor.set_recursive_sequence_lengths([list(lengths)])
    return tensor


def _prior_boxes(Input, Image, min_sizes, max_sizes, offset):
    height, width = Image.shape[2:]
    sides = []
    for small, large in zip(min_sizes, max_sizes, strict=True):
        sides += [(small * math.sqrt(r), small / math.sqrt(r)) for r in (1, 2, 0.5)]
        sides += [(math.sqrt(small * large),) * 2]
    out = np.empty((*Input.shape[2:], len(sides), 4))
    for row, column, i in np.ndindex(*out.shape[:3]):
        x, y = (column + offset) * width / out.shape[1], (row + offset) * height / out.shape[0]
        w, h = sides[i]
        out[row, column, i] = [
            (x - w / 2) / width,
            (y - h / 2) / height,
            (x + w / 2) / width,
            (y + h / 2) / height,
        ]
    return {"Boxes": out}


def _anchors(Input, anchor_sizes, aspect_ratios, stride, offset):
    out = np.empty((*Input.shape[2:], len(aspect_ratios) * len(anchor_sizes), 4))
    for row, column in np.ndindex(*Input.shape[2:]):
        x, y = column * stride[0] + offset * (stride[0] - 1), row * stride[1] + offset * (stride[1] - 1)
        for i, ratio in enumerate(aspect_ratios):
            base = math.floor(math.sqrt(stride[0] * stride[1] / ratio) + 0.5)
            for j, size in enumerate(anchor_sizes):
                w = size / stride[0] * base - 1
                h = size / stride[1] * math.floor(base * ratio + 0.5) - 1
                box = [x - w / 2, y - h / 2, x + w / 2, y + h / 2]
                out[row, column, i * len(anchor_sizes) + j] = box
    return {"Anchors": out}


def _center(box):
    return (box[:2] + box[2:]) / 2, box[2:] - box[:2]


def _encode(PriorBox, PriorBoxVar, TargetBox):
    out = np.empty((len(TargetBox), len(PriorBox), 4))
    for i, j in np.ndindex(*out.shape[:2]):
        (middle, sides), (other, other_sides) = _center(TargetBox[i]), _center(PriorBox[j])
        code = np.concatenate([(middle - other) / other_sides, np.log(sides / other_sides)])
        out[i, j] = code / PriorBoxVar[j]
    return out


def _decode(PriorBox, TargetBox, variance):
    out = np.empty(TargetBox.shape)
    for i, j in np.ndindex(*out.shape[:2]):
        middle, sides = _center(PriorBox[i])
        code = TargetBox[i, j] * variance
        middle, sides = middle + code[:2] * sides, sides * np.exp(code[2:])
        out[i, j] = np.concatenate([middle - sides / 2, middle + sides / 2])
    return out


def _overlap(X, Y):
    """By counting: boxes with whole edges, in squares of the plane."""

    def squares(box):
        x1, y1, x2, y2 = box.astype(int)
        return {(x, y) for x in range(x1, x2) for y in range(y1, y2)}

    return np.array([[len(squares(a) & squares(b)) / len(squares(a) | squares(b)) for b in Y] for a in X])


def _clip(Input, ImInfo):
    out = Input.copy()
    for row, image in enumerate([0, 0, 1, 1, 1]):
        height, width = np.round(ImInfo[image, :2] / ImInfo[image, 2])
        for i in range(4):
            out[row, i] = min(max(out[row, i], 0), (width if i % 2 == 0 else height) - 1)
    return out


def _places(Input):
    out = np.empty(Input.shape)
    for n, c, h, w in np.ndindex(*Input.shape):
        out[n, c, h, w] = 4 * (h if c % 2 else w) - Input[n, c, h, w]
    return out


def _assign(X, MatchIndices, NegIndices, mismatch_value):
    out = np.full((*MatchIndices.shape, X.shape[2]), float(mismatch_value))
    weight = np.zeros((*MatchIndices.shape, 1), np.float32)
    first = (0, 2)  # the rows of X where the images start
    for i, j in np.ndindex(*MatchIndices.shape):
        if MatchIndices[i, j] >= 0:
            out[i, j], weight[i, j] = X[first[i] + MatchIndices[i, j], j], 1
    for image, anchor in zip((0, 1, 1), NegIndices[:, 0], strict=True):
        out[image, anchor], weight[image, anchor] = mismatch_value, 1
    return {"Out": out, "OutWeight": weight}


_IMAGE = np.zeros((1, 3, 20, 30))
_X = np.array([[0, 0, 4, 4], [1, 2, 6, 5], [7, 7, 9, 8]], float)
_Y = np.array([[2, 2, 5, 6], [0, 0, 9, 9]], float)

CASES = [
    Case(
        "prior_box",
        {"Input": np.zeros((1, 2, 3, 4)), "Image": _IMAGE},
        _prior_boxes,
        {
            "min_sizes": [4.0, 8.0],
            "max_sizes": [6.0, 12.0],
            "aspect_ratios": [2.0],
            "variances": [1.0] * 4,
            "clip": False,
        },
        rtol=1e-6,  # ratios are float32
    ),
    Case(
        "anchor_generator",
        {"Input": np.zeros((1, 2, 3, 4))},
        _anchors,
        {
            "anchor_sizes": [32.0, 64.0],
            "aspect_ratios": [0.5, 1.0, 2.0],
            "stride": [16.0, 8.0],
            "variances": [1.0] * 4,
        },
    ),
    Case(
        "box_coder",
        {"PriorBox": _boxes(4), "PriorBoxVar": _rng.uniform(0.1, 1, (4, 4)), "TargetBox": _boxes(3)},
        _encode,
        note="encode",
    ),
    Case(
        "box_coder",
        {"PriorBox": _boxes(4), "TargetBox": _rng.standard_normal((4, 3, 4))},
        _decode,
        {"code_type": "decode_center_size", "axis": 1, "variance": [0.5, 0.25, 0.125, 0.5]},
        note="decode",
    ),
    Case("iou_similarity", {"X": _X, "Y": _Y}, _overlap, rtol=1e-8),  # 1e-10 is added to the union
    Case(
        "box_clip",
        {
            "Input": _sequences(_rng.uniform(-20, 90, (5, 4)), 2, 3),
            "ImInfo": np.array([[60, 80, 1], [30.0, 41.0, 0.7]]),
        },
        _clip,
    ),
    Case("polygon_box_transform", {"Input": _rng.standard_normal((2, 4, 3, 5))}, _places),
    Case(
        "target_assign",
        {
            "X": _sequences(_rng.standard_normal((5, 3, 2)), 2, 3),
            "MatchIndices": np.array([[1, -1, -1], [-1, 2, 0]], np.int32),
            "NegIndices": _sequences(np.array([[1], [0], [2]], np.int32), 1, 2),
        },
        _assign,
        {"mismatch_value": 7},
    ),
]
