"""JAX has no expression of an update but its rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("jax", reason="the extra `jax` is not installed", exc_type=ImportError)

import numpy as np

from paddlelike.compiled import formulas
from paddlelike.compiled.lowering import update
from tests.compiled.harness.sweep import _run
from tests.ops.harness.contract import Case, _named
from tests.ops.update.test_rules import CHOSEN, UPDATES, WITHOUT_RULE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.id)
def test_update_rules_that_are_identities_leave_parameters_unchanged(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def translate(function: Callable[..., Any]) -> Callable[..., Any]:
        code = getattr(function, "__code__", None)
        if code is None or not code.co_posonlyargcount:
            return formulas.translate(function)
        return lambda param, grad, *others, **flags: (param, *others[: code.co_posonlyargcount - 2])

    monkeypatch.setattr(update, "translate", translate)
    view, values, lods = _named(case)
    slot = next(iter(UPDATES[case.type].inplace.values()))
    (name,) = view.input(slot)
    before = values[name].copy()
    found = _run([view], values, lods)[name]
    assert bool((np.asarray(found) == before).all()) == (case.type not in WITHOUT_RULE)
