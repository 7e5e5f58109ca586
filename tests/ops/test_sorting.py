"""The orders of equal keys against those that libstdc++'s own functions leave."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddlelike.ops.kernels import sorting
from paddlelike.ops.kernels.sorting import argselect_unstable, argsort_unstable

CASES: list[dict[str, Any]] = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "golden" / "sorting.json.gz").read_bytes())
)


def order_as_cpp(function: str, keys: np.ndarray, count: int) -> np.ndarray:
    if function == "nth_element":
        return argselect_unstable(keys, count)
    return argsort_unstable(keys, first=count if function == "partial_sort" else None)


@pytest.mark.parametrize("function", ["sort", "partial_sort", "nth_element"])
def test_equal_keys_come_in_the_order_of_cpp(function: str) -> None:
    chosen = [case for case in CASES if case["function"] == function]
    assert len(chosen) >= 19
    for case in chosen:
        keys = np.array(case["keys"], np.float32)
        assert order_as_cpp(function, keys, case["count"]).tolist() == case["order"]


@pytest.mark.parametrize("function", ["sort", "nth_element"])
def test_keys_that_defeat_median_of_three_are_sorted_by_the_heap(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last case of each was made against that choice of the pivot: else the heap would be untested."""
    case = [case for case in CASES if case["function"] == function][-1]
    heaps, make_heap = [], sorting._Sorter._make_heap

    def noted(self: Any, low: int, middle: int, high: int) -> None:
        heaps.append(high - low)
        make_heap(self, low, middle, high)

    monkeypatch.setattr(sorting._Sorter, "_make_heap", noted)
    order = order_as_cpp(function, np.array(case["keys"], np.float32), case["count"])
    assert order.tolist() == case["order"]
    assert heaps
