"""Every operator keeps the contract, and none is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlelike.framework.opdef import registry
from tests.ops.harness.collect import CASES, MODULES
from tests.ops.harness.contract import Case, check_gradient, check_value_and_shape
from tests.ops.harness.exempt import EXEMPT
from tests.ops.harness.points import WITHOUT_FORMULA


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_operator_follows_its_second_formula_in_value_and_shape(case: Case) -> None:
    check_value_and_shape(case)


def differentiable(case: Case) -> bool:
    op = registry.find(case.type)
    return case.wrt != () and (op.gradient is not None or "make_grad" in vars(op))


@pytest.mark.usefixtures("textbook")  # where Fluid's gradient is odd, differences are not
@pytest.mark.parametrize("case", list(filter(differentiable, CASES)), ids=lambda case: case.id)
def test_the_gradient_of_an_operator_matches_finite_differences(case: Case) -> None:
    check_gradient(case)


def test_every_operator_is_tested_or_exempt() -> None:
    exempt = [name for _, names in EXEMPT.values() for name in names]
    forward = {name for name, op in registry.all_ops().items() if op.forward_of is None}
    recorded = {
        case.type for case in WITHOUT_FORMULA.values()
    }  # compared with the real system's, see test_recorded.py
    assert sorted(forward - {case.type for case in CASES} - recorded - set(exempt)) == []
    assert sorted(set(exempt) - forward) == []
    assert len(exempt) == len(set(exempt))


def test_the_tests_of_exempt_operators_exist() -> None:
    root = Path(__file__).parents[2]
    assert [name for name in EXEMPT if not (root / name).exists()] == []


def test_cases_are_in_the_family_of_their_operators() -> None:
    family = {
        name: op.__module__.removeprefix("paddlelike.ops.").partition(".")[0]
        for name, op in registry.all_ops().items()
    }
    misplaced = [
        (module.__name__, case.type)
        for module in MODULES
        for case in module.CASES
        if module.__name__.split(".")[2] != family[case.type]
    ]
    assert misplaced == []
