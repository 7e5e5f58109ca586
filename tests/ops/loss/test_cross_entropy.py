"""Cross entropies, besides their cases."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core.dtypes import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Spec
from paddlelike.ops.loss.cross_entropy import CrossEntropy, SoftmaxWithCrossEntropy

P = np.array([[0.5, 0.0, 0.5]], np.float32)


def test_the_logarithm_of_zero_is_large_and_finite() -> None:
    # Paddle 1.8.5 gives 1.0000000200408773e+20
    loss = CrossEntropy.forward(P, np.array([[1]]), soft_label=False, ignore_index=-100)
    assert loss.dtype == np.float32
    assert loss.tolist() == [[np.float32(1e20)]]


def test_logits_far_below_the_largest_count_as_64_below() -> None:
    # Paddle 1.8.5: losses 64 and 45.781..., softmax 1.6038109e-28
    logits = np.array([[0, 100, -100]], np.float32)
    softmax, loss = SoftmaxWithCrossEntropy.forward(
        logits, np.array([[0]]), soft_label=False, ignore_index=-100, axis=-1
    )
    np.testing.assert_allclose(softmax, [[1.6038109e-28, 1, 1.6038109e-28]], rtol=1e-6)
    assert loss.tolist() == [[64]]


@pytest.mark.parametrize("wrong", [3, -1])
def test_a_label_that_is_no_class_is_refused_with_its_index(wrong: int) -> None:
    with pytest.raises(EnforceNotMet, match=rf"Label holds {wrong} \(element 0 of 1\).* 3 classes"):
        CrossEntropy.forward(P, np.array([[wrong]]), soft_label=False, ignore_index=-100)


@pytest.mark.parametrize("shape", [(4, 3), (5, 1), (4, 1, 1)])
def test_a_label_of_another_shape_is_refused_with_both_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"Label has shape .* and X \(4, 3\)"):
        CrossEntropy.infer(Spec((4, 3), VarType.FP32), Spec(shape, VarType.INT64), soft_label=False)
