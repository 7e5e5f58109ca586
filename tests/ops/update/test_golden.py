"""Steps of Paddle 1.8.5 on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.update.one_step import SPARSE, P, one, step

ADAM = {"Param": P, "Grad": SPARSE, "LearningRate": one(0.1), "Moment1": P / 2, "Moment2": P * P}
ADAM |= {"Beta1Pow": one(0.9), "Beta2Pow": one(0.999)}
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
        {"Param": P, "Grad": SPARSE, "LearningRate": one(0.1), "Velocity": P / 2},
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
            "Grad": SPARSE,
            "LearningRate": one(0.1),
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
        {"Param": P, "Grad": P * 3, "LearningRate": one(0.1), "Velocity": P / 2},
        {"mu": 0.9, "lars_weight_decay": 0.0},
        {"ParamOut": [0.54990005, -0.54990005, 1.0998001, 0.27495003, -0.13747501, 1.6497]},
    ),
    "dpsgd gives all elements one noise": (
        "dpsgd",
        {"Param": P, "Grad": P * 3, "LearningRate": one(0.1)},
        {"seed": 7, "clip": 2.0, "sigma": 3.0, "batch_size": 4.0},
        {"ParamOut": [1.0050067, -0.89277309, 1.9538965, 0.53056169, -0.18110569, 2.9027865]},
    ),
}


@pytest.mark.parametrize("name", REAL)
def test_an_update_matches_fluid(name: str) -> None:
    type, inputs, attrs, expected = REAL[name]
    got = step(type, inputs, **attrs)
    for slot, want in expected.items():
        assert got[slot].dtype == np.float32
        np.testing.assert_allclose(got[slot].ravel(), want, rtol=1e-6, err_msg=slot)  # float32 sums
