"""The shorter kernels of single operators give the bits of the general ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from paddlelike.core import VarType, convert_dtype
from paddlelike.framework.opdef import make_arguments, registry
from tests.ops.harness import contract
from tests.ops.harness.collect import CASES
from tests.ops.harness.contract import Case, View


def declare(value: Any) -> Any:
    """What a program says of the variable of an array."""
    if not isinstance(value, np.ndarray):
        return None
    return SimpleNamespace(
        name="x", shape=value.shape, dtype=convert_dtype(value.dtype), type=VarType.LOD_TENSOR
    )


def find_special(view: View, values: dict[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
    op = registry.find(view.type)
    arguments = make_arguments(op.input_slots, view.inputs, values.get)
    keywords = op.make_forward_keywords(view.attrs, view.outputs)
    return op.specialize(keywords, [declare(value) for value in arguments]), arguments, keywords


def is_special(case: Case) -> bool:
    view, values, _ = contract._named(case)
    return find_special(view, values)[0] is not None


SPECIAL = [case for case in CASES if is_special(case)]


@pytest.mark.parametrize("case", SPECIAL, ids=lambda case: case.id)
def test_a_specialized_kernel_gives_the_same_bits_as_the_general_one(case: Case) -> None:
    view, values, _ = contract._named(case)
    special, arguments, keywords = find_special(view, values)
    copies = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
    got, want = special(*arguments), registry.find(view.type).forward(*copies, **keywords)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_common_operators_have_specialized_calls() -> None:
    assert {case.type for case in SPECIAL} >= {"elementwise_add", "elementwise_mul", "mul", "scale", "sgd"}


@pytest.mark.parametrize("type", ["elementwise_add", "elementwise_mul", "elementwise_div"])
@pytest.mark.parametrize("fed", [(4, 3), (4, 1)])  # as declared, and as a feed may be
def test_special_arithmetic_gradients_give_the_same_bits(type: str, fed: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((4, 3)), rng.standard_normal(fed)
    out, d_out = np.add(x, y), rng.standard_normal((4, 3))
    grad = registry.find(type + "_grad")
    keywords = {"axis": -1, "wanted": (True, True)}
    declared = [declare(x)] * len(grad.input_slots)
    special = grad.specialize(keywords, declared)
    arrays = [d_out, x, y, out][: len(grad.input_slots)]
    for got, want in zip(special(*arrays), grad.forward(*arrays, **keywords), strict=True):
        np.testing.assert_array_equal(got, want)
