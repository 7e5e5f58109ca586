"""Parts of tensors, and padding."""

from __future__ import annotations

import numpy as np

from tests.ops.harness.contract import Case

X = np.random.default_rng(9).standard_normal((4, 5, 3))
_int = lambda *n: np.array(n, np.int32)

_SLICE = {"axes": [1], "starts": [-1], "ends": [-1], "infer_flags": [-1]}

CASES = [
    Case(
        "slice",
        {"Input": X},
        lambda Input: Input[1:3, 3:4],
        {"axes": [0, 1], "starts": [1, -2], "ends": [3, -1]},
    ),
    Case(
        "slice",
        {"Input": X},
        lambda Input: Input[:, 2:],
        {"axes": [1], "starts": [-3], "ends": [100]},
        note="beyond",
    ),
    Case(
        "slice",
        {"Input": X},
        lambda Input: Input[:, 2],
        {"axes": [1], "starts": [2], "ends": [3], "decrease_axis": [1]},
        note="one-less-dim",
    ),
    Case(
        "slice",
        {"Input": X},
        lambda Input: Input[2, 0, 1].reshape(1),
        {"axes": [0, 1, 2], "starts": [2, 0, 1], "ends": [3, 1, 2], "decrease_axis": [0, 1, 2]},
        note="one-element",
    ),
    Case(
        "slice",
        {"Input": X},
        lambda Input: Input[:, -1],
        {"axes": [1], "starts": [-1], "ends": [0], "infer_flags": [-1], "decrease_axis": [1]},
        note="last",
    ),
    Case(
        "slice",
        {"Input": X, "StartsTensor": _int(1), "EndsTensor": _int(3)},
        lambda Input: Input[:, 1:3],
        {"axes": [1], "infer_flags": [-1]},
        note="tensors",
    ),
    Case(
        "slice",
        {"Input": X, "StartsTensorList": [_int(1)], "EndsTensorList": [_int(-1)]},
        lambda Input: Input[:, 1:-1],
        _SLICE,
        note="tensor-lists",
    ),
    Case(
        "strided_slice",
        {"Input": X},
        lambda Input: Input[[1, 3]][:, [4, 3, 2, 1]],
        {"axes": [0, 1], "starts": [1, -1], "ends": [4, -5], "strides": [2, -1], "infer_flags": [1, 1]},
    ),
    Case(
        "strided_slice",
        {"Input": X},
        lambda Input: Input[:, [4, 2, 0]],
        {"axes": [1], "starts": [4], "ends": [-100], "strides": [-2], "infer_flags": [1]},
        note="backwards",
    ),
    Case(
        "strided_slice",
        {"Input": X},
        lambda Input: Input[:, [3, 2, 1, 0]],
        {"axes": [1], "starts": [3], "ends": [-1], "strides": [-1], "infer_flags": [1]},
        note="back-to-the-first",  # as real 1.8.5 reads -1
    ),
    Case(
        "strided_slice",
        {"Input": X},
        lambda Input: Input[:, 2],
        {"axes": [1], "starts": [2], "ends": [3], "strides": [1], "decrease_axis": [1], "infer_flags": [1]},
        note="one-less-dim",
    ),
    Case(
        "strided_slice",
        {
            "Input": X,
            "StartsTensorList": [_int(1)],
            "EndsTensorList": [_int(4)],
            "StridesTensorList": [_int(2)],
        },
        lambda Input: Input[:, [1, 3]],
        _SLICE | {"strides": [-1]},
        note="tensor-lists",
    ),
    Case(
        "strided_slice",
        {"Input": X, "StartsTensor": _int(1), "EndsTensor": _int(4), "StridesTensor": _int(2)},
        lambda Input: Input[:, [1, 3]],
        _SLICE | {"strides": [-1]},
        note="tensors",
    ),
]


X = np.random.default_rng(10).standard_normal((4, 5, 3))

CASES += [
    Case("crop", {"X": X}, lambda X: X[1:3, :4, 1:], {"offsets": [1, 0, 1], "shape": [2, 4, 2]}),
    Case(
        "crop",
        {"X": X, "Y": X[:2, :2, :2], "Offsets": _int(1, 3, 0)},
        lambda X: X[1:3, 3:5, :2],
        wrt=["X"],
        note="tensors",
    ),
    Case(
        "crop_tensor",
        {"X": X},
        lambda X: X[1:3, 2:, 1:],
        {"offsets": [1, 2, 1], "shape": [2, -1, -1]},
    ),
    Case(
        "crop_tensor",
        {"X": X, "Shape": _int(2, 2, -1), "Offsets": _int(1, 3, 0)},
        lambda X: X[1:3, 3:5],
        note="tensors",
    ),
    Case(
        "crop_tensor",
        {
            "X": X,
            "ShapeTensor": [_int(2), _int(2), _int(3)],
            "OffsetsTensor": [_int(0), _int(2), _int(0)],
        },
        lambda X: X[:2, 2:4],
        {"shape": [-1, 2, -1], "offsets": [-1, -1, 0]},
        note="tensor-lists",
    ),
]


_rng = np.random.default_rng(11)
X = _rng.standard_normal((2, 3))
IMAGES = _rng.standard_normal((2, 2, 3, 4))
_WIDTHS = [(0, 0), (0, 0), (2, 1), (0, 3)]


def _by_index(mode):
    """Borders by the index of what they copy: 2 rows above, 1 below, 3 columns on the right."""
    rows, columns = {
        "reflect": ([2, 1, 0, 1, 2, 1], [0, 1, 2, 3, 2, 1, 0]),
        "edge": ([0, 0, 0, 1, 2, 2], [0, 1, 2, 3, 3, 3, 3]),
    }[mode]
    return lambda X: X[:, :, rows][..., columns]


CASES += [
    Case(
        "pad",
        {"X": X},
        lambda X: np.pad(X, [(0, 1), (2, 3)], constant_values=1.5),
        {"paddings": [0, 1, 2, 3], "pad_value": 1.5},
    ),
    Case(
        "pad_constant_like",
        {"X": IMAGES[0], "Y": IMAGES[1, :, :2, :3]},
        lambda Y: np.pad(Y, [(0, 0), (0, 1), (0, 1)], constant_values=-1),
        {"pad_value": -1.0},
        wrt=["Y"],
    ),
    Case(
        "pad2d",
        {"X": IMAGES},
        lambda X: np.pad(X, _WIDTHS, constant_values=0.5),
        {"paddings": [2, 1, 0, 3], "pad_value": 0.5},
    ),
    Case(
        "pad2d",
        {"X": IMAGES, "Paddings": np.array([2, 1, 0, 3], np.int32)},
        lambda X: np.pad(X, _WIDTHS),
        {"paddings": [0, 0, 0, 0]},
        note="tensor",
    ),
    *(
        Case("pad2d", {"X": IMAGES}, _by_index(mode), {"paddings": [2, 1, 0, 3], "mode": mode}, note=mode)
        for mode in ("reflect", "edge")
    ),
    Case(
        "pad2d",
        {"X": IMAGES},
        lambda X: X[:, [1, 0, 1]][:, :, [0, 1, 2, 1, 0]],
        {"paddings": [1, 0, 0, 2], "mode": "reflect", "data_format": "NHWC"},
        note="nhwc",
    ),
]
