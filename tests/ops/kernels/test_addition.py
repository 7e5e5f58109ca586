"""Sums of values that arrive one by one."""

from __future__ import annotations

import numpy as np

from paddlelike.core.tensor import LoDTensor, LoDTensorArray
from paddlelike.ops.kernels.addition import Totals, add_values


def test_a_total_leaves_what_was_added_as_it_was() -> None:
    parts = [np.full(3, float(n)) for n in (1, 2, 4)]
    totals = Totals()
    for part in parts:
        totals.add("x", part)
    assert totals["x"].tolist() == [7.0, 7.0, 7.0]
    assert [part[0] for part in parts] == [1.0, 2.0, 4.0]


def test_elements_of_arrays_that_have_no_partner_are_kept() -> None:
    one, two = LoDTensorArray(), LoDTensorArray()
    one.extend([LoDTensor(np.ones(2)), LoDTensor(), LoDTensor(np.full(2, 5.0))])
    two.extend([LoDTensor(np.ones(2)), LoDTensor(np.full(2, 3.0))])
    total = add_values([one, two])
    assert isinstance(total, LoDTensorArray)
    assert [np.asarray(each).tolist() for each in total] == [[2.0, 2.0], [3.0, 3.0], [5.0, 5.0]]
    assert np.asarray(one[0]).tolist() == [1.0, 1.0]
