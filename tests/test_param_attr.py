"""Attributes of parameters: what may stand for one, and what they do to a parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import regularizer
from paddlelike.param_attr import ParamAttr
from tests.optimizer.harness.training import follow


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ("w", "name", "w"),
        (None, "name", None),
        (fluid.initializer.Constant(2.0), "initializer", fluid.initializer.ConstantInitializer),
        (fluid.regularizer.L2Decay(0.1), "regularizer", fluid.regularizer.L2DecayRegularizer),
    ],
    ids=["name", "none", "initializer", "regularizer"],
)
def test_param_attr_accepts_a_name_an_initializer_or_a_regularizer(
    given: Any, field: str, value: Any
) -> None:
    found = getattr(ParamAttr._to_attr(given), field)
    assert isinstance(found, value) if isinstance(value, type) else found == value


def test_param_attr_returns_false_and_existing_attrs_unchanged() -> None:
    attr = ParamAttr(name="w")
    assert ParamAttr._to_attr(False) is False
    assert ParamAttr._to_attr(attr) is attr


def test_param_attr_refuses_other_types() -> None:
    with pytest.raises(TypeError, match=r"3\.5 does not describe a parameter"):
        ParamAttr._to_attr(3.5)


def test_a_parameter_has_the_options_of_its_attr() -> None:
    decay = fluid.regularizer.L1Decay(0.5)
    attr = ParamAttr(name="w", learning_rate=0.1, regularizer=decay, trainable=False, do_model_average=False)
    fluid.layers.fc(fluid.data("x", [None, 3]), 2, param_attr=attr, bias_attr=False)
    weight = fluid.default_main_program().global_block().var("w")
    assert weight.optimize_attr == {"learning_rate": 0.1}
    assert weight.regularizer is decay
    assert weight.trainable is False
    assert weight.do_model_average is False


def test_layers_with_the_same_parameter_name_share_the_parameter() -> None:
    x = fluid.data("x", [None, 3])
    for _ in range(2):
        fluid.layers.fc(x, 2, param_attr="shared", bias_attr=False)
    assert [p.name for p in fluid.default_main_program().all_parameters()] == ["shared"]


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
def test_the_regularization_term_is_added_to_the_gradient(one: Any, term: Any) -> None:
    (found,) = follow(fluid.optimizer.SGD(1.0, regularization=one), START, [GRADIENT])
    np.testing.assert_allclose(found, np.array(START) - (np.array(GRADIENT) + term), rtol=1e-6)  # float32


def test_the_regularizer_of_a_parameter_replaces_the_one_of_the_optimizer() -> None:
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
