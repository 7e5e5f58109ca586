"""Operators that declare ``any_order`` give the same results whichever dim is last in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.framework.opdef import registry
from paddlelike.ops.kernels.nn.image.layouts import as_channels_last, view_channels_first
from tests.ops.harness import contract
from tests.ops.harness.collect import CASES
from tests.ops.harness.contract import Case, check_gradient, check_value_and_shape
from tests.ops.test_ops import differentiable


def reorder(value: Any) -> Any:
    if isinstance(value, list):
        return [reorder(one) for one in value]
    if isinstance(value, np.ndarray) and value.ndim > 2:
        return view_channels_first(as_channels_last(value).copy())
    return value


def takes_any_order(case: Case) -> bool:
    cls = registry.find(case.type)
    values = (v for value in case.inputs.values() for v in (value if isinstance(value, list) else [value]))
    return (cls.any_order or cls.reorders) and any(isinstance(v, np.ndarray) and v.ndim > 2 for v in values)


CONCERNED = [case for case in CASES if takes_any_order(case)]


@pytest.fixture(autouse=True)
def reordered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every operator of a case get its arrays with dim 1 last in memory."""
    plain = contract.make_arguments
    monkeypatch.setattr(contract, "make_arguments", lambda *given: reorder(plain(*given)))


@pytest.mark.parametrize("case", CONCERNED, ids=lambda case: case.id)
def test_equal_numbers_are_ordered_as_in_fluid(case: Case) -> None:
    check_value_and_shape(case)


@pytest.mark.usefixtures("textbook")
@pytest.mark.parametrize("case", list(filter(differentiable, CONCERNED)), ids=lambda case: case.id)
def test_the_gradient_goes_to_the_elements_that_fluid_chooses(case: Case) -> None:
    check_gradient(case)
