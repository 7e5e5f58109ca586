"""Convolutions: unknown dims, parts of a batch, and operands that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.core import VarType
from paddlelike.errors import ShapeError
from paddlelike.framework.opdef import Spec, registry
from paddlelike.ops.kernels.nn.conv import channels_first
from tests.ops.harness.contract import full_attrs


def infer(type: str, x: tuple[int, ...], w: tuple[int, ...], **given: Any) -> tuple[int, ...]:
    op = registry.find(type)
    attrs = full_attrs(op, given)
    others = [None] * (len(op.input_slots) - 2)
    specs = (Spec(shape, VarType.FP32) for shape in (x, w))
    shape: tuple[int, ...] = op.infer(*specs, *others, **op.make_infer_keywords(attrs)).shape
    return shape


def test_unknown_dims_stay_unknown() -> None:
    assert infer("conv2d", (-1, 3, -1, 8), (4, 3, 3, 3), strides=[2, 2]) == (-1, 4, -1, 3)
    assert infer("conv2d", (-1, -1, 8, 3), (4, 3, 3, 3), data_format="NHWC") == (-1, -1, 6, 4)
    assert infer("conv2d", (-1, 3, -1, 8), (4, 3, 3, 3), padding_algorithm="SAME") == (-1, 4, -1, 8)
    assert infer("conv2d_transpose", (-1, 3, -1, 8), (3, 4, 3, 3)) == (-1, 4, -1, 10)
    assert infer("conv2d_transpose", (-1, 3, -1, 8), (3, 4, 3, 3), output_size=[9, 10]) == (-1, 4, 9, 10)


@pytest.mark.parametrize(
    ("type", "x", "w", "given", "said"),
    [
        ("conv2d", (2, 3, 8), (4, 3, 3), {}, r"Input has shape \(2, 3, 8\) .* both need 4 dims"),
        ("conv2d", (2, 3, 8, 8), (4, 2, 3, 3), {}, r"has 3 channels; Filter of shape .* takes 2"),
        ("conv2d", (2, 4, 8, 8), (3, 2, 3, 3), {"groups": 2}, "in 2 groups"),
        ("conv2d", (2, 3, 8, 8), (4, 8, 3, 3), {"data_format": "NHWC"}, None),
        ("conv2d", (2, 3, 2, 2), (4, 3, 3, 3), {}, r"smaller than one window of \(3, 3\)"),
        ("conv2d", (2, 3, 4, 4), (4, 3, 3, 3), {"dilations": [2, 2]}, r"one window of \(5, 5\)"),
        ("conv2d_transpose", (2, 3, 4, 4), (4, 3, 3, 3), {}, "takes 4"),
        (
            "conv2d_transpose",
            (2, 3, 4, 4),
            (3, 4, 3, 3),
            {"strides": [2, 2], "output_size": [11, 9]},
            r"output_size is \[11, 9\]; .* it can be \(9, 9\) up to one stride more",
        ),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    type: str, x: tuple[int, ...], w: tuple[int, ...], given: dict[str, Any], said: str | None
) -> None:
    if said is None:  # fits: the channels are last
        assert infer(type, x, w, **given) == (2, 1, 6, 4)
        return
    with pytest.raises(ShapeError, match=said):
        infer(type, x, w, **given)


@pytest.mark.parametrize("groups", [1, 3])
def test_large_batches_of_images_are_processed_in_parts(monkeypatch: pytest.MonkeyPatch, groups: int) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((7, 3, 5, 5)), rng.standard_normal((6, 3 // groups, 2, 2))
    op = registry.find("conv2d")
    attrs = full_attrs(op, {"groups": groups, "paddings": [1, 0]})

    def run_both_passes() -> list[Any]:
        out = op.forward(x, w, None, None, **op.make_forward_keywords(attrs))
        back = registry.find("conv2d_grad")
        keywords = back.make_forward_keywords(attrs)
        return [out, *back.forward(x, w, None, out, **keywords, wanted=(True, True, True))]

    whole = run_both_passes()
    monkeypatch.setattr(channels_first, "_CHUNK", 2 * 8 * 12 * 24)  # two or three images
    for one, other in zip(run_both_passes(), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)  # another order of sums


def test_only_required_gradients_are_computed() -> None:
    x, w = np.ones((1, 1, 3, 3)), np.ones((1, 1, 2, 2))
    back = registry.find("conv2d_grad")
    attrs = full_attrs(registry.find("conv2d"), {})
    keywords = back.make_forward_keywords(attrs)
    dx, dw, db = back.forward(x, w, None, np.ones((1, 1, 2, 2)), **keywords, wanted=(False, True, False))
    assert dx is None
    assert dw.tolist() == [[[[4, 4], [4, 4]]]]
    assert db is None
