"""Normalisations: defined gradients, slots of gradients, and operands that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.errors import ShapeError, UnsupportedError
from paddlelike.framework.opdef import Spec, registry
from tests.helpers.small_networks import run
from tests.ops.harness.contract import View, full_attrs

X = np.array([[1.0, 2, 0, 4], [-1, 0, 3, 2], [0, 5, 1, 1]])
MEANS, SCALES = np.array([0.5, 1, -1, 0]), np.array([1.0, 2, 1, 0.5])


def test_data_norm_accumulates_batch_sums() -> None:
    back = registry.find("data_norm").backward
    dy = np.ones_like(X)
    *_, dx, size, total, square = back(
        X, None, None, MEANS, SCALES, dy, epsilon=0.5, slot_dim=-1, enable_scale_and_shift=False
    )
    assert dx.tolist() == [SCALES.tolist()] * 3
    assert size.tolist() == [3, 3, 3, 3]
    assert total.tolist() == [0, 7, 4, 7]
    np.testing.assert_allclose(square, ((X - MEANS) ** 2).sum(0) + 1.5)


def test_data_norm_means_ignore_slots_that_a_row_does_not_show() -> None:
    # Columns 0, 1 and 2, 3 are slots; row 2 does not show the first one, row 0 not the second one.
    back = registry.find("data_norm").backward
    *_, size, total, square = back(
        X, None, None, MEANS, SCALES, X, epsilon=0.5, slot_dim=2, enable_scale_and_shift=False
    )
    assert size.tolist() == [1, 1, 1, 1]
    assert total.tolist() == [0, 1, 2, 1.5]
    shown = [X[:2, :2], X[1:, 2:]]
    means = [((x - m) ** 2).mean(0) for x, m in zip(shown, (MEANS[:2], MEANS[2:]), strict=True)]
    np.testing.assert_allclose(square, np.concatenate(means) + 2 * 0.5)


def test_the_batch_norm_gradient_uses_moving_statistics_if_the_forward_pass_did() -> None:
    op = registry.find("batch_norm")
    inputs = {slot.name: [slot.name.lower()] for slot in op.input_slots if not slot.optional}
    outputs = {slot.name: [slot.name.lower()] for slot in op.output_slots if not slot.optional}

    def slots(**given: Any) -> dict[str, list[str]]:
        return op.make_grad(View("batch_norm", inputs, outputs, full_attrs(op, given)))[0].inputs

    plain = {"X", "Scale", "Bias", "SavedMean", "SavedVariance", "Y@GRAD"}
    assert set(slots()) == plain
    used = slots(use_global_stats=True)
    assert set(used) == plain | {"Mean", "Variance"}
    assert used["Mean"] == ["meanout"]


def test_moving_statistics_are_changed_in_place_and_only_in_training() -> None:
    op = registry.find("batch_norm")
    x = np.array([[1.0], [3.0]], np.float32)
    mean, variance = np.zeros(1, np.float32), np.ones(1, np.float32)
    one = np.ones(1, np.float32)
    for is_test, want in ((True, (0.0, 1.0)), (False, (1.0, 1.0)), (True, (1.0, 1.0))):
        attrs = full_attrs(op, {"momentum": 0.5, "is_test": is_test})
        _, mean_out, variance_out, *_ = op.forward(
            x, one, one, mean, variance, None, **op.make_forward_keywords(attrs)
        )
        assert mean_out is mean
        assert variance_out is variance
        assert (mean.item(), variance.item()) == want


def test_a_scale_of_zero_in_group_norm_gives_finite_gradients() -> None:
    op = registry.find("group_norm")
    x, scale = np.random.default_rng(0).standard_normal((2, 2, 3)), np.array([0.0, 2.0])
    attrs = full_attrs(op, {"groups": 1})
    attrs = op.make_forward_keywords(attrs)
    y, _, variance = op.forward(x, scale, None, **attrs)
    for grad in op.backward(y, scale, None, variance, x, **attrs):
        assert np.isfinite(grad).all()


def test_an_unknown_activation_of_inplace_abn_is_refused() -> None:
    op = registry.find("inplace_abn")
    attrs = full_attrs(op, {"activation": "tanh"})
    one = np.ones(2)
    with pytest.raises(UnsupportedError, match="'tanh'; it can be identity, leaky_relu, elu"):
        op.forward(np.ones((2, 2)), one, one, one, one, None, **op.make_forward_keywords(attrs))


@pytest.mark.parametrize(
    ("type", "shapes", "given", "said"),
    [
        ("batch_norm", [(8,), (3,), (3,), (3,), (3,), None], {}, r"X has shape \(8,\); it needs 2 to 5"),
        ("batch_norm", [(8, 4), (4,), (3,), (4,), (4,), None], {}, r"4 channels, Bias has shape \(3,\)"),
        ("layer_norm", [(8, 4), None, None], {"begin_norm_axis": 2}, r"axis is 2; .* it can be 1 to 1"),
        ("layer_norm", [(8, 4, 2), (4,), None], {}, r"Scale has shape \(4,\); .* needs \(8,\)"),
        ("group_norm", [(8, 4), None, None], {"groups": 0}, "4 channels, which 0 groups do not divide"),
        ("instance_norm", [(8, 4, 2), (4,), (3,)], {}, r"Bias has shape \(3,\); .* has 4 channels"),
        ("data_norm", [None, None, (8, 4), (4,), (3,), (4,)], {}, r"BatchSum has shape \(3,\)"),
        ("spectral_norm", [(4, 6), (4,), (4,)], {}, r"needs \(4,\) and \(6,\)"),
        ("lrn", [(8, 4, 2, 2)], {"n": 4}, "n is 4; it must be odd"),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    type: str, shapes: list[tuple[int, ...] | None], given: dict[str, Any], said: str
) -> None:
    op = registry.find(type)
    attrs = full_attrs(op, given)
    specs = [None if shape is None else Spec(shape, VarType.FP32) for shape in shapes]
    with pytest.raises(ShapeError, match=said):
        op.infer(*specs, **op.make_infer_keywords(attrs))


def test_batch_norm_returns_a_batch_of_one_element_per_channel_unchanged() -> None:
    """As Fluid 1.8.5 computed it: Y is X, X@GRAD is Y@GRAD, nothing moves."""
    x = fluid.data("x", [None, 3, 1, 1])
    x.stop_gradient = False
    y = fluid.layers.batch_norm(
        x, param_attr="scale", bias_attr="bias", moving_mean_name="mean", moving_variance_name="variance"
    )
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.reduce_sum(y * y))
    fetches = [y, "x@GRAD", "scale@GRAD", "bias@GRAD", "mean", "variance", *_saved(y.block)]
    found = run(fetches, x=np.array([1, 2, 3], "float32").reshape(1, 3, 1, 1))
    wanted = [[1, 2, 3], [2, 4, 6], [0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert [value.ravel().tolist() for value in found] == wanted


def _saved(block: Any) -> list[str]:
    (op,) = [op for op in block.ops if op.type == "batch_norm"]
    return [op.output("SavedMean")[0], op.output("SavedVariance")[0]]
