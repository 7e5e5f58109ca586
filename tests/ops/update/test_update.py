"""Optimizer updates: sparse gradients, blocks, noise; numbers of the real system."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from paddlelike.core.dtypes import VarType
from paddlelike.core.random import Generator
from paddlelike.core.tensor import SelectedRows
from paddlelike.errors import ShapeError, UnsupportedError
from paddlelike.framework.opdef import Spec, registry
from paddlelike.ops.update import blocks as updating
from paddlelike.ops.update.adam import Adam, AdamAttrs
from tests.ops.harness.contract import FakeContext, View, full_attrs

P = np.array([[1, -1], [2, 0.5], [-0.25, 3]], np.float32)
G = SelectedRows([2, 0, 2], 3, np.array([[0.5, -1], [2, 0.25], [1, 0.5]], np.float32))
_one = lambda value: np.array([value], np.float32)


def step(type: str, inputs: dict[str, Any], **given: Any) -> dict[str, Any]:
    """The outputs of an update on copies of its inputs, float32 and attributes as a program holds them."""
    op = registry.find(type)
    attrs = full_attrs(op, given)
    attrs = {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in attrs.items()}
    copies = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in inputs.items()}
    args = [copies.get(slot.name) for slot in op.input_slots]
    if op.context:
        args.insert(0, FakeContext(View(type, {}, {}, {}), {}, {}))
    results = op.forward(*args, **op.make_forward_keywords(attrs))
    many = results if len(op.output_slots) > 1 else (results,)
    return {slot.name: value for slot, value in zip(op.output_slots, many, strict=True)}


ADAM = {"Param": P, "Grad": G, "LearningRate": _one(0.1), "Moment1": P / 2, "Moment2": P * P}
ADAM |= {"Beta1Pow": _one(0.9), "Beta2Pow": _one(0.999)}
MOMENTS = {
    "Moment1Out": [0.65000004, -0.42499998, 0.89999998, 0.22499999, 0.037500039, 1.3],
    "Moment2Out": [1.003, 0.99906254, 3.9960001, 0.24975, 0.064687476, 8.99125],
}

# One step of Paddle 1.8.5 on the CPU: sparse gradients, and the rules that differ from their papers.
REAL: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, list[float]]]] = {
    "sparse adam corrects by the powers of the next step": (
        "adam",
        ADAM,
        {},
        {
            "ParamOut": [0.98472744, -0.98999447, 1.9894055, 0.48940554, -0.25346953, 2.9897981],
            "Beta1PowOut": [0.80999994],
            "Beta2PowOut": [0.99800104],
        }
        | MOMENTS,
    ),
    "lazy adam leaves the other rows alone": (
        "adam",
        ADAM,
        {"lazy_mode": True},
        {
            "ParamOut": [0.98472744, -0.98999447, 2.0, 0.5, -0.25346953, 2.9897981],
            "Moment1Out": [0.65000004, -0.42499998, 1.0, 0.25, 0.037500039, 1.3],
        },
    ),
    "lamb corrects nothing": (
        "lamb",
        ADAM,
        {"weight_decay": 0.01},
        {"ParamOut": [0.77276307, -0.84994042, 1.8378632, 0.34303552, -0.29997686, 2.8401668]} | MOMENTS,
    ),
    "sparse momentum decays every row": (
        "momentum",
        {"Param": P, "Grad": G, "LearningRate": _one(0.1), "Velocity": P / 2},
        {"mu": 0.9, "use_nesterov": True},
        {
            "ParamOut": [0.57949996, -1.007, 1.919, 0.47975001, -0.52487504, 2.9735],
            "VelocityOut": [2.45, -0.19999999, 0.89999998, 0.22499999, 1.3875, 0.8499999],
        },
    ),
    "sparse centered rmsprop": (
        "rmsprop",
        {
            "Param": P,
            "Grad": G,
            "LearningRate": _one(0.1),
            "Moment": P / 2,
            "MeanSquare": P * P,
            "MeanGrad": P * np.float32(0.1),
        },
        {"centered": True, "momentum": 0.9, "decay": 0.95, "epsilon": 1e-6},
        {
            "ParamOut": [0.36033714, -0.57569933, 1.1, 0.27500001, -0.50210917, 1.6671551],
            "MomentOut": [0.63966286, -0.4243007, 0.89999998, 0.22499999, 0.2521092, 1.3328449],
            "MeanSquareOut": [1.1500001, 0.953125, 3.8, 0.2375, 0.17187503, 8.5625],
            "MeanGradOut": [0.19500002, -0.082499996, 0.19, 0.047499999, 0.051250018, 0.25999999],
        },
    ),
    "adadelta steps by the new average of updates": (
        "adadelta",
        {
            "Param": P,
            "Grad": P * 3,
            "AvgSquaredGrad": P * P,
            "AvgSquaredUpdate": P * P * np.float32(0.1),
        },
        {},
        {"ParamOut": [0.095923305, -0.095923305, 0.19185305, 0.047955245, -0.023964733, 0.28778124]},
    ),
    "lars without weight decay still has a rate of its own": (
        "lars_momentum",
        {"Param": P, "Grad": P * 3, "LearningRate": _one(0.1), "Velocity": P / 2},
        {"mu": 0.9, "lars_weight_decay": 0.0},
        {"ParamOut": [0.54990005, -0.54990005, 1.0998001, 0.27495003, -0.13747501, 1.6497]},
    ),
    "dpsgd gives all elements one noise": (
        "dpsgd",
        {"Param": P, "Grad": P * 3, "LearningRate": _one(0.1)},
        {"seed": 7, "clip": 2.0, "sigma": 3.0, "batch_size": 4.0},
        {"ParamOut": [1.0050067, -0.89277309, 1.9538965, 0.53056169, -0.18110569, 2.9027865]},
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_a_step_of_the_real_system(name: str) -> None:
    type, inputs, attrs, expected = REAL[name]
    got = step(type, inputs, **attrs)
    for slot, want in expected.items():
        assert got[slot].dtype == np.float32
        np.testing.assert_allclose(got[slot].ravel(), want, rtol=1e-6, err_msg=slot)  # float32 sums


def test_an_update_writes_into_the_arrays_it_gets_and_returns_them() -> None:
    param, velocity = P.copy(), P.copy()
    out = registry.find("momentum").forward(param, P, velocity, _one(0.5), mu=0.5, use_nesterov=False)
    assert out[0] is param
    assert out[1] is velocity
    np.testing.assert_array_equal(velocity, 1.5 * P)
    np.testing.assert_array_equal(param, 0.25 * P)


@pytest.mark.parametrize("type", ["sgd", "momentum", "adagrad", "adam", "rmsprop", "lamb"])
def test_a_sparse_gradient_without_rows_changes_nothing(type: str) -> None:
    op = registry.find(type)
    state = {slot.name: P * P + 1 for slot in op.input_slots if not slot.optional}
    scalars = {name: _one(0.5) for name in ("LearningRate", "Beta1Pow", "Beta2Pow") if name in state}
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
    inputs = {"Param": param, "Grad": grad, "Velocity": velocity, "LearningRate": _one(0.1)}
    whole = step("momentum", inputs, mu=0.9)
    monkeypatch.setattr(updating, "BLOCK", 16)
    blocks = step("momentum", inputs, mu=0.9)
    for slot in whole:
        np.testing.assert_array_equal(blocks[slot], whole[slot])


def test_arrays_that_are_not_contiguous_are_updated_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(updating, "BLOCK", 2)
    param = np.ones((3, 4), np.float32).T
    registry.find("sgd").forward(param, _one(0.5), np.ones((4, 3), np.float32))
    assert (param == 0.5).all()


def test_sgd_moves_the_held_rows_of_a_table_of_selected_rows() -> None:
    table = SelectedRows([5, 2, 0], 6, np.ones((3, 2), np.float32))
    grad = SelectedRows([2, 5, 2], 6, np.array([[1, 0], [0, 1], [1, 1]], np.float32))
    out = registry.find("sgd").forward(table, _one(0.5), grad)
    assert out is table
    assert out.array.tolist() == [[1, 0.5], [0, 0.5], [1, 1]]
    with pytest.raises(ShapeError, match=r"rows among them|selected rows without it"):
        registry.find("sgd").forward(table, _one(0.5), SelectedRows([1], 6, np.ones((1, 2), np.float32)))


def test_noise_without_a_seed_comes_from_the_generator_of_the_scope() -> None:
    op = registry.find("dpsgd")
    ctx = FakeContext(View("dpsgd", {}, {}, {}), {}, {})
    steps = []
    for state in (1, 2, 1):
        ctx.scope.generator.state = Generator(state).state
        param = P.copy()
        steps.append(op.forward(ctx, param, P, _one(0.1), **op.make_forward_keywords({})))
    np.testing.assert_array_equal(steps[0], steps[2])
    assert (steps[0] != steps[1]).all()


def test_operands_that_do_not_fit_are_refused_before_anything_changes() -> None:
    state = {"Moment1": P.copy(), "Moment2": P * P, "Beta1Pow": _one(0.9), "Beta2Pow": _one(0.9)}
    args = [P.copy(), P[:2], _one(0.1), *state.values(), None, None]
    adam = registry.find("adam")
    with pytest.raises(ShapeError, match=r"Param has shape \(3, 2\) and Grad \(2, 2\)"):
        adam.forward(*args, **adam.make_forward_keywords({}))
    assert state["Beta1Pow"] == _one(0.9)
    beyond = SelectedRows([3], 4, np.ones((1, 2), np.float32))
    with pytest.raises(ShapeError, match=r"Param has shape \(3, 2\); the sparse Grad holds rows 3 to 3"):
        registry.find("sgd").forward(P.copy(), _one(0.1), beyond)


@pytest.mark.parametrize("type", ["lars_momentum", "adamax", "adadelta", "decayed_adagrad", "proximal_gd"])
def test_some_updates_take_dense_gradients_only(type: str) -> None:
    op = registry.find(type)
    inputs = {slot.name: P.copy() for slot in op.input_slots} | {"Grad": G}
    inputs |= {name: _one(0.5) for name in ("LearningRate", "Beta1Pow") if name in inputs}
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
