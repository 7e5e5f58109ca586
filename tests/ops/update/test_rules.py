"""Rules and their steps: one rule for every engine; in place, in blocks, by rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.core import SelectedRows
from paddlelike.framework.opdef import registry
from paddlelike.ops.kernels.recording import Recording
from paddlelike.ops.update import rules
from paddlelike.ops.update.base import Update
from tests.helpers.fast_kernels import force_kernels
from tests.ops.harness.collect import CASES
from tests.ops.harness.contract import Case, _named, check_value_and_shape, run
from tests.ops.update.one_step import P, one, step

UPDATES = {type: op for type, op in registry.all_ops().items() if issubclass(op, Update)}
CHOSEN = [case for case in CASES if case.type in UPDATES]

#: Updates whose expression stands in two places, or that have no compiled loop, by the reason.
WITHOUT_RULE = {
    "average_accumulates": "counts decide whether sums move: numpy mostly touches none, XLA always does",
    "sgd-sparse": "rows step one after the other, by numpy's subtract.at",
}
WITHOUT_LOOP = WITHOUT_RULE | {"ftrl-power": "numba's powers have other bits than numpy's"}


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.id)
def test_numpy_uses_only_update_formulas_of_the_rules(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """With rules that do nothing, parameters stay as they are."""
    idle = Recording(lambda *arrays: None, (), None, None)
    monkeypatch.setattr(rules.Rule, "record", lambda self, flags, gradient=True: idle)
    view, values, lods = _named(case)
    slot = next(iter(UPDATES[case.type].inplace.values()))
    (name,) = view.input(slot)
    before = values[name].copy()
    run(view, values, lods)
    has_rule = case.type not in WITHOUT_RULE and case.id not in WITHOUT_RULE
    assert (values[name] == before).all() == has_rule


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.id)
def test_compiled_loops_of_a_rule_match_the_second_formula(case: Case) -> None:
    with force_kernels(compiled=False) as called:
        check_value_and_shape(case)
    named = {name.partition(".")[0] for name in called}
    assert named <= {op.__module__.rpartition(".")[2] for op in UPDATES.values()} | {"sums"}
    assert bool(called) == (case.type not in WITHOUT_LOOP and case.id not in WITHOUT_LOOP)


def test_an_update_writes_into_the_arrays_it_gets_and_returns_them() -> None:
    param, velocity = P.copy(), P.copy()
    out = registry.find("momentum").forward(param, P, velocity, one(0.5), mu=0.5, use_nesterov=False)
    assert out[0] is param
    assert out[1] is velocity
    np.testing.assert_array_equal(velocity, 1.5 * P)
    np.testing.assert_array_equal(param, 0.25 * P)


@pytest.mark.parametrize("type", ["sgd", "momentum", "adagrad", "adam", "rmsprop", "lamb"])
def test_a_sparse_gradient_without_rows_changes_nothing(type: str) -> None:
    op = registry.find(type)
    state = {slot.name: P * P + 1 for slot in op.input_slots if not slot.optional}
    scalars = {name: one(0.5) for name in ("LearningRate", "Beta1Pow", "Beta2Pow") if name in state}
    inputs = state | scalars | {"Grad": SelectedRows([], 3, np.empty((0, 2), np.float32))}
    given = {"mu": 0.9} if type == "momentum" else {"weight_decay": 0.1} if type == "lamb" else {}
    for slot, value in step(type, inputs, **given).items():
        if value is not None:
            np.testing.assert_array_equal(value, inputs[op.inplace[slot]], err_msg=slot)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_large_parameters_are_updated_block_by_block(monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    rng = np.random.default_rng(3)
    param, velocity = rng.standard_normal((2, 23, 3))
    grad: Any = rng.standard_normal((23, 3))
    if sparse:
        grad = SelectedRows([22, 0, 7, 22], 23, rng.standard_normal((4, 3)))
    inputs = {"Param": param, "Grad": grad, "Velocity": velocity, "LearningRate": one(0.1)}
    whole = step("momentum", inputs, mu=0.9)
    monkeypatch.setattr(rules, "BLOCK", 16)
    blocks = step("momentum", inputs, mu=0.9)
    for slot in whole:
        np.testing.assert_array_equal(blocks[slot], whole[slot])


def test_arrays_that_are_not_contiguous_are_updated_in_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "BLOCK", 2)
    param = np.ones((3, 4), np.float32).T
    registry.find("sgd").forward(param, one(0.5), np.ones((4, 3), np.float32))
    assert (param == 0.5).all()
