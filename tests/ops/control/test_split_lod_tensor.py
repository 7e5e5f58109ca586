"""Rows and sequences split by a mask and merged again."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core import LoD
from paddlelike.errors import EnforceNotMet
from tests.ops.harness.contract import call

X = np.arange(14, dtype=np.float64).reshape(7, 2)
ONE: LoD = [[0, 2, 6, 7]]
MASK = np.array([[True], [False], [True]])


@pytest.mark.parametrize("lod", [[], ONE], ids=["rows", "sequences"])
@pytest.mark.parametrize("merge", ["merge_lod_tensor", "merge_lod_tensor_infer"])
def test_rows_that_are_split_merge_to_the_same_tensor(lod: LoD, merge: str) -> None:
    x = X if lod else X[:3]
    (true, false), ctx = call("split_lod_tensor", x, MASK, lods={"X": lod})
    np.testing.assert_array_equal(true, x[[0, 1, 6]] if lod else x[[0, 2]])
    np.testing.assert_array_equal(false, x[[2, 3, 4, 5]] if lod else x[[1]])
    lods = {"InTrue": ctx.lods["OutTrue"], "InFalse": ctx.lods["OutFalse"]}
    back, ctx = call(merge, x, MASK, true, false, lods=lods)
    np.testing.assert_array_equal(back, x)
    assert ctx.lods["Out"] == lod


@pytest.mark.parametrize("value", [True, False])
def test_one_branch_may_be_empty(value: bool) -> None:
    mask = np.full((3, 1), value)
    (true, false), _ = call("split_lod_tensor", X[:3], mask)
    assert (len(true), len(false)) == ((3, 0) if value else (0, 3))
    back, _ = call("merge_lod_tensor", X[:3], mask, true, false)
    np.testing.assert_array_equal(back, X[:3])


def test_a_mask_must_be_bool() -> None:
    with pytest.raises(EnforceNotMet, match="Mask must be bool"):
        call("split_lod_tensor", X[:3], np.ones((3, 1)))
