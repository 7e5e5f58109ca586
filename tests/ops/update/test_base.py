"""What updates refuse, when a program is built and when it runs."""

from __future__ import annotations

import numpy as np
import pytest

from paddlelike.core.dtypes import VarType
from paddlelike.core.tensor import SelectedRows
from paddlelike.errors import ShapeError, UnsupportedError
from paddlelike.framework.opdef import Spec, registry
from tests.ops.update.one_step import SPARSE, P, one, step


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
def test_some_updates_take_dense_gradients_only(type: str) -> None:
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
