"""Cases of slice and strided_slice."""

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
