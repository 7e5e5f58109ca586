"""Compiled operators give odd numbers where the kernels of numpy give them, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

from paddlelike.compiled.packing import RefusedError
from paddlelike.core import LoDTensor, VarType
from tests.compiled.harness.sweep import check_case
from tests.ops.harness.contract import Case

pytestmark = pytest.mark.slow

IMAGE = np.arange(2 * 3 * 5 * 6, dtype="float32").reshape(2, 3, 5, 6)
IMAGE[0, 1, 2, 3], IMAGE[1, 0, 4, 5] = np.nan, np.inf
ROWS = np.arange(1, 8, dtype="float32").reshape(7, 1)
ROWS[1] = np.nan
LABELS = np.array([[0], [2], [1]])
FLOATS = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, -1.0, 2.5, -0.5, 200.0], "float32")


def unfold() -> Any:
    padded = np.pad(IMAGE, ((0, 0), (0, 0), (1, 0), (0, 2)))
    parts = [padded[:, :, i : i + 3 : 2, j : j + 6] for i in (0, 2) for j in (0, 2)]
    return np.stack(parts, 2).reshape(2, 12, -1)


CASES = {
    "unfold": Case(
        "unfold",
        {"X": IMAGE},
        unfold,
        {"kernel_sizes": [2, 2], "strides": [2, 1], "paddings": [1, 0, 0, 2], "dilations": [2, 2]},
    ),
    "im2sequence": Case("im2sequence", {"X": IMAGE}, lambda: None, {"kernels": [2, 3], "strides": [2, 1]}),
    "sequence_softmax": Case(
        "sequence_softmax", {"X": LoDTensor(ROWS, [[0, 2, 5, 7]])}, lambda: None, wrt=()
    ),
    "psroi_pool": Case(
        "psroi_pool",
        {
            "X": np.arange(48, dtype="float32").reshape(1, 4, 3, 4),
            "ROIs": LoDTensor(np.array([[3e38, 1, -3e38, 2], [0, 0, 3e38, np.nan]], "float32"), [[0, 2]]),
        },
        lambda: None,
        {"output_channels": 1, "pooled_height": 2, "pooled_width": 2, "spatial_scale": 1.0},
        wrt=("X",),
        note="corners that no int32 holds",
    ),
    "prroi_pool": Case(
        "prroi_pool",
        {
            "X": np.arange(24, dtype="int32").reshape(1, 2, 3, 4),
            "ROIs": LoDTensor(np.array([[0, 0, 2, 2]], "int32"), [[0, 1]]),
        },
        lambda: None,
        {"pooled_height": 2, "pooled_width": 2, "spatial_scale": 1.0},
        wrt=(),
        note="means of whole numbers are whole",
    ),
    "max_pool2d_with_index": Case(
        "max_pool2d_with_index",
        {"X": np.where(IMAGE > 150, -np.inf, IMAGE)},
        lambda: None,
        {"ksize": [2, 2], "strides": [2, 2]},
        note="the greatest of a window with NaN is another one",
    ),
    "spp": Case(
        "spp",
        {"X": IMAGE[..., :5]},
        lambda: None,
        {"pyramid_height": 2, "pooling_type": "max"},
    ),
    "pool2d": Case(
        "pool2d",
        {"X": IMAGE},
        lambda: None,
        {"ksize": [5, 6], "pooling_type": "max"},
        note="no element equals a maximum that is NaN",
    ),
    "yolo_box": Case(
        "yolo_box",
        {"X": IMAGE[:, :, :2, :3].repeat(2, 1) / 100, "ImgSize": np.array([[30, 40], [50, 20]], "int32")},
        lambda: None,
        {"anchors": [10, 13], "class_num": 1, "conf_thresh": 0.6},
        wrt=(),
        note="NaN is not below the threshold",
    ),
    "auc": Case(
        "auc",
        {
            "Predict": np.array([[0.2, 0.8], [0.7, 0.3], [0.4, 0.6]], "float32"),
            "Label": np.array([[1], [0], [1]]),
            "StatPos": np.array([2**62, 5, 2**62, 2**61] * 3 + [4]),
            "StatNeg": np.array([3, 2**61, 2**60, 2**62] * 3 + [7]),
        },
        lambda: None,
        {"num_thresholds": 3, "slide_steps": 2},
        wrt=(),
        note="sums beyond int64 go on at its other end, and the positives count the steps",
    ),
    "tdm_child": Case(
        "tdm_child",
        {"X": np.array([[1, 2]]), "TreeInfo": np.array([[0] * 5, [0, 0, 0, 2, 0], [7, 1, 1, 0, 0]])},
        lambda: None,
        {"child_nums": 1, "dtype": 2},
        wrt=(),
        note="more children in the tree than are taken",
    ),
    "bpr_loss": Case(
        "bpr_loss",
        {"X": np.array([[-100, 0, 1], [0, 1e10, 1], [1, 2, np.inf]], "float32"), "Label": LABELS},
        lambda: None,
        note="differences whose power of e overflows",
    ),
    "fake_quantize_range_abs_max": Case(
        "fake_quantize_range_abs_max",
        {"X": FLOATS[1:].reshape(2, 4), "InScale": np.ones(1, "float32"), "Iter": np.array([2])},
        lambda: None,
        {"window_size": 3},
        wrt=(),
        note="an infinite size",
    ),
    "ctc_align": Case(
        "ctc_align",
        {"Input": LoDTensor(np.array([[-1], [2**40], [3], [3], [-1]]), [[0, 4, 5]])},
        lambda: None,
        {"blank": 0, "merge_repeated": True},
        wrt=(),
        note="ids whose lower half is the blank, and -1 at the beginning",
    ),
    "mean_iou": Case(
        "mean_iou",
        {"Predictions": np.zeros((0, 1), "int32"), "Labels": np.zeros((0, 1), "int32")},
        lambda: None,
        {"num_classes": 3},
        wrt=(),
        note="no class occurs",
    ),
    "sigmoid_focal_loss": Case(
        "sigmoid_focal_loss",
        {
            "X": np.array([[-1e9, 0.5, 20], [-100, 30, 100], [1, -3e38, 17]], "float32"),
            "Label": np.array([[1], [2], [0]], "int32"),
            "FgNum": np.array([2], "int32"),
        },
        lambda: None,
        {"gamma": 0.5, "alpha": 0.75},
        note="logits whose sigmoid is 0 or 1",
    ),
    **{
        f"cast-{name}": Case(
            "cast",
            {"X": FLOATS},
            lambda: None,
            {"in_dtype": int(VarType.FP32), "out_dtype": int(kind)},
        )
        for name, kind in {"int64": VarType.INT64, "int32": VarType.INT32, "uint8": VarType.UINT8}.items()
    },
}


@pytest.mark.parametrize("name", CASES)
def test_a_nan_reaches_the_same_elements_as_with_the_kernel(name: str) -> None:
    with np.errstate(all="ignore"):
        assert check_case(CASES[name], alone=True)


BY_NUMPY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "psroi_pool": (
        {"X": IMAGE[:1, 1:2], "ROIs": LoDTensor(np.array([[0, 0, 3, 3]], "float32"), [[0, 1]])},
        {"output_channels": 1, "pooled_height": 1, "pooled_width": 1, "spatial_scale": 1.0},
    ),
    "warpctc": (
        {
            "Logits": LoDTensor(ROWS.repeat(2, 1), [[0, 7]]),
            "Label": LoDTensor(LABELS[2:].astype("int32"), [[0, 1]]),
        },
        {},
    ),
    "linear_chain_crf": (
        {
            "Emission": LoDTensor(np.zeros((3, 3), "float32"), [[0, 2, 3]]),
            "Transition": np.full((5, 3), 89, "float32"),  # e^89 overflows float32
            "Label": LoDTensor(LABELS, [[0, 2, 3]]),
        },
        {},
    ),
}


@pytest.mark.parametrize("type", BY_NUMPY)
def test_numpy_computes_sums_through_which_a_nan_would_spread(type: str) -> None:
    inputs, attrs = BY_NUMPY[type]
    with np.errstate(all="ignore"), pytest.raises(RefusedError, match="NaN"):
        check_case(Case(type, inputs, lambda: None, attrs))
    odd = {"psroi_pool": "X", "warpctc": "Logits", "linear_chain_crf": "Transition"}[type]
    plain = np.nan_to_num(np.array(inputs[odd])) / 2
    tame = {**inputs, odd: LoDTensor(plain, inputs[odd].lod()) if type == "warpctc" else plain}
    assert check_case(Case(type, tame, lambda: None, attrs))


def test_windows_hold_the_elements_of_the_image() -> None:
    from paddlelike.compiled.lowering.nn.conv.unfold import collect_windows

    found = collect_windows(IMAGE, (2, 2), (2, 1), (1, 0, 0, 2), (2, 2))
    np.testing.assert_array_equal(np.asarray(found).reshape(2, 12, -1), unfold())
