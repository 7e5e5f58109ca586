"""Every operator keeps the contract, and none is forgotten."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from paddlelike.framework.opdef import registry
from tests.ops import cases as case_modules
from tests.ops.contract import Case, check_gradient, check_value_and_shape

MODULES = [
    importlib.import_module(f"{case_modules.__name__}.{module.name}")
    for module in pkgutil.iter_modules(case_modules.__path__)
]
CASES: list[Case] = [case for module in MODULES for case in module.CASES]
#: Operators whose promise is checked in a test of their own: {type: where and why}.
ELSEWHERE: dict[str, str] = {k: v for m in MODULES for k, v in getattr(m, "ELSEWHERE", {}).items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_value_and_shape(case: Case) -> None:
    check_value_and_shape(case)


def differentiable(case: Case) -> bool:
    op = registry.find(case.type)
    return case.wrt != () and (op.gradient is not None or "make_grad" in vars(op))


@pytest.mark.parametrize("case", list(filter(differentiable, CASES)), ids=lambda case: case.id)
def test_gradient(case: Case) -> None:
    check_gradient(case)


def test_no_operator_is_forgotten() -> None:
    tested = {case.type for case in CASES} | set(ELSEWHERE)
    forward = {name for name, op in registry.all_ops().items() if op.forward_of is None}
    assert sorted(forward - tested) == []
