"""Weight decay: the terms that are added to gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import regularizer
from tests.optimizer.harness.training import follow

START = [0.5, -1.0, 2.0]
GRADIENT = [0.3, -0.2, 0.0]


@pytest.mark.parametrize(
    ("one", "term"),
    [
        (regularizer.L2Decay(0.1), 0.1 * np.array(START)),
        (regularizer.L1Decay(0.1), 0.1 * np.sign(START)),
    ],
    ids=["L2", "L1"],
)
def test_the_term_is_added_to_the_gradient(one: Any, term: Any) -> None:
    (found,) = follow(fluid.optimizer.SGD(1.0, regularization=one), START, [GRADIENT])
    np.testing.assert_allclose(found, np.array(START) - (np.array(GRADIENT) + term), rtol=1e-6)  # float32


def test_the_regularizer_of_a_parameter_replaces_the_optimizers() -> None:
    attr = fluid.ParamAttr(name="w", regularizer=regularizer.L1Decay(0.5))
    out = fluid.layers.fc(fluid.data("x", [2, 3]), 1, param_attr=attr, bias_attr="b")
    fluid.optimizer.SGD(1.0, regularization=regularizer.L2Decay(0.25)).minimize(fluid.layers.mean(out))
    scales = {
        op.input("X")[0]: op.attr("scale")
        for op in fluid.default_main_program().global_block().ops
        if op.type == "scale"
    }
    assert scales["b"] == 0.25
    assert "w" not in scales  # its term is scaled from the sign
