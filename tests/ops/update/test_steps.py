"""Update operators, one step each."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core import Generator, SelectedRows, VarType
from paddlelike.errors import ShapeError, UnsupportedError
from paddlelike.framework.opdef import Spec, registry
from paddlelike.ops.update.adam import Adam, AdamAttrs
from tests.ops.harness.contract import FakeContext, View
from tests.ops.update.one_step import SPARSE, P, one, step


@pytest.mark.parametrize("share", [0.02, 0.2, 0.9])
def test_adam_updates_every_row_that_has_moments_or_a_sparse_gradient(share: float) -> None:
    rng = np.random.default_rng(7)
    height, width = 40_000, 4
    moving = rng.random(height) < share
    m1, m2 = (np.where(moving[:, None], rng.random((height, width)), 0).astype("f4") for _ in range(2))
    rows = rng.permutation(height)[:300]
    values = rng.standard_normal((300, width)).astype("f4")
    dense = np.zeros((height, width), "f4")
    dense[rows] = values
    found = []
    for grad in (SelectedRows(rows, height, values), dense):
        arrays = [np.ones((height, width), "f4"), m1.copy(), m2.copy()]
        powers = [np.float32([0.9]), np.float32([0.999])]
        if grad is dense:  # as in Fluid, a sparse gradient is corrected by the powers of the next step
            powers = [power * power for power in powers]
        Adam.forward(arrays[0], grad, np.float32([0.1]), *arrays[1:], *powers, None, None, attrs=AdamAttrs())
        found.append(arrays)
    for sparse, whole in zip(*found, strict=True):
        assert sparse.tobytes() == whole.tobytes()


def test_sgd_updates_the_existing_rows_of_a_selected_rows_table() -> None:
    table = SelectedRows([5, 2, 0], 6, np.ones((3, 2), np.float32))
    grad = SelectedRows([2, 5, 2], 6, np.array([[1, 0], [0, 1], [1, 1]], np.float32))
    out = registry.find("sgd").forward(table, one(0.5), grad)
    assert out is table
    assert out.array.tolist() == [[1, 0.5], [0, 0.5], [1, 1]]
    with pytest.raises(ShapeError, match=r"rows among them|selected rows without it"):
        registry.find("sgd").forward(table, one(0.5), SelectedRows([1], 6, np.ones((1, 2), np.float32)))


def test_noise_without_a_seed_is_drawn_from_the_generator_of_the_scope() -> None:
    op = registry.find("dpsgd")
    ctx = FakeContext(View("dpsgd", {}, {}, {}), {}, {})
    steps = []
    for state in (1, 2, 1):
        ctx.scope.generator.state = Generator(state).state
        param = P.copy()
        steps.append(op.forward(ctx, param, P, one(0.1), **op.make_forward_keywords({})))
    np.testing.assert_array_equal(steps[0], steps[2])
    assert (steps[0] != steps[1]).all()


def test_operands_that_do_not_fit_are_refused_before_anything_changes() -> None:
    state = {"Moment1": P.copy(), "Moment2": P * P, "Beta1Pow": one(0.9), "Beta2Pow": one(0.9)}
    args = [P.copy(), P[:2], one(0.1), *state.values(), None, None]
    adam = registry.find("adam")
    with pytest.raises(ShapeError, match=r"Param has shape \(3, 2\) and Grad \(2, 2\)"):
        adam.forward(*args, **adam.make_forward_keywords({}))
    assert state["Beta1Pow"] == one(0.9)
    beyond = SelectedRows([3], 4, np.ones((1, 2), np.float32))
    with pytest.raises(ShapeError, match=r"Param has shape \(3, 2\); the sparse Grad holds rows 3 to 3"):
        registry.find("sgd").forward(P.copy(), one(0.1), beyond)


@pytest.mark.parametrize("type", ["lars_momentum", "adamax", "adadelta", "decayed_adagrad", "proximal_gd"])
def test_some_updates_accept_only_dense_gradients(type: str) -> None:
    op = registry.find(type)
    inputs = {slot.name: P.copy() for slot in op.input_slots} | {"Grad": SPARSE}
    inputs |= {name: one(0.5) for name in ("LearningRate", "Beta1Pow") if name in inputs}
    given = {"mu": 0.9} if type == "lars_momentum" else {}
    with pytest.raises(UnsupportedError, match=rf"{type}: Grad is sparse \(3 rows of 3\)"):
        step(type, inputs, **given)


def test_shapes_are_compared_when_the_program_is_built() -> None:
    param, grad = Spec((3, 2), VarType.FP32), Spec((-1, 2), VarType.FP32)
    rate = Spec((1,), VarType.FP32)
    sgd = registry.find("sgd")
    assert sgd.infer(param, rate, grad) == param
    sparse = Spec((1, 2), VarType.FP32, kind=VarType.SELECTED_ROWS)
    assert sgd.infer(param, rate, sparse) == param
    with pytest.raises(ShapeError, match=r"sgd: Param has shape \(3, 2\) and Grad \(3,\)"):
        sgd.infer(param, rate, Spec((3,), VarType.FP32))
    with pytest.raises(ShapeError, match=r"LearningRate has shape \(2,\)"):
        sgd.infer(param, Spec((2,), VarType.FP32), grad)
