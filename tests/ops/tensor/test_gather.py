"""Reading and writing at indices, besides the cases of these operators."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core import VarType
from paddlelike.errors import EnforceNotMet, ShapeError
from paddlelike.framework.opdef import Spec
from paddlelike.ops.tensor.gather import Gather, GatherNd, Scatter
from paddlelike.ops.tensor.one_hot import OneHotV2

X = np.arange(6.0).reshape(3, 2)
TWICE = np.array([1, 1])


def test_the_overwriting_gradient_of_gather_keeps_the_last_repeated_row() -> None:
    # as Paddle 1.8.5 does
    d_x = Gather.backward(np.array([[1.0, 1], [5, 5]]), X, TWICE, overwrite=True)
    assert d_x.tolist() == [[0, 0], [5, 5], [0, 0]]


def test_the_gradient_of_scatter_passes_the_whole_output_gradient_to_x() -> None:
    # as Paddle 1.8.5 does, also where Updates took the place of X
    d_x, d_updates = Scatter.backward(X + 1, TWICE, X[:2])
    assert d_x.tolist() == (X + 1).tolist()
    assert d_updates.tolist() == [[3, 4], [3, 4]]


@pytest.mark.parametrize("wrong", [3, -1])
def test_an_index_out_of_range_is_refused(wrong: int) -> None:
    with pytest.raises(EnforceNotMet, match=rf"{wrong}.* 3 rows"):
        Gather.forward(X, np.array([0, wrong]))
    with pytest.raises(EnforceNotMet, match=r"outside of an array of shape \[3, 2\]"):
        GatherNd.forward(X, np.array([[0, 1], [wrong, 1]]))


def test_an_index_with_too_many_dims_is_refused_when_the_program_is_built() -> None:
    with pytest.raises(ShapeError, match=r"Index has shape \(2, 2\), expected \(N,\) or \(N, 1\)"):
        Gather.infer(Spec((3, 2), VarType.FP32), Spec((2, 2), VarType.INT64))


def test_one_hot_refuses_a_class_beyond_the_depth_unless_allowed() -> None:
    ids = np.array([1, 7])
    common = {"depth": 3, "dtype": int(VarType.FP32)}
    with pytest.raises(EnforceNotMet, match=r"one_hot: X holds 7, expected 0 \.\. 2"):
        OneHotV2.forward(ids, None, allow_out_of_range=False, **common)
    assert OneHotV2.forward(ids, None, allow_out_of_range=True, **common).tolist() == [
        [0, 1, 0],
        [0, 0, 0],
    ]
