"""Sums of values that arrive one by one."""

from __future__ import annotations

import numpy as np

from paddlelike.core import LoDTensor, LoDTensorArray
from paddlelike.ops.kernels.addition import Totals, add_values


def test_a_total_does_not_change_its_summands() -> None:
    parts = [np.full(3, float(n)) for n in (1, 2, 4)]
    totals = Totals()
    for part in parts:
        totals.add("x", part)
    assert totals["x"].tolist() == [7.0, 7.0, 7.0]
    assert [part[0] for part in parts] == [1.0, 2.0, 4.0]


def test_elements_present_in_one_array_only_are_kept() -> None:
    one, two = LoDTensorArray(), LoDTensorArray()
    one.extend([LoDTensor(np.ones(2)), LoDTensor(), LoDTensor(np.full(2, 5.0))])
    two.extend([LoDTensor(np.ones(2)), LoDTensor(np.full(2, 3.0))])
    total = add_values([one, two])
    assert isinstance(total, LoDTensorArray)
    assert [np.asarray(each).tolist() for each in total] == [[2.0, 2.0], [3.0, 3.0], [5.0, 5.0]]
    assert np.asarray(one[0]).tolist() == [1.0, 1.0]


def test_a_total_of_tensor_arrays_is_the_sum_of_all() -> None:
    """As the gradients of a loop come: every step fills one element, now and then one that others filled."""
    filled = [(4, 3), (3, 2), (3, 1), (1, 0), (5, 4)]  # elements, and the one that is filled
    arrays, want = [], np.zeros((5, 2))
    for number, (count, at) in enumerate([*filled, (4, 2)], 1):
        array = LoDTensorArray(LoDTensor() for _ in range(count))
        array[at] = LoDTensor(np.full(2, 10.0**number))
        want[at] += 10.0**number
        arrays.append(array)
    totals = Totals()
    for array in arrays:
        totals.add("x", array)
    assert [np.asarray(each).tolist() for each in totals["x"]] == want.tolist()
    assert np.asarray(arrays[0][3]).tolist() == [10.0, 10.0]
