"""Attributes of parameters: what may stand for one, and what they do to a parameter."""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.param_attr import ParamAttr


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
def test_one_attribute_stands_for_a_param_attr(given: Any, field: str, value: Any) -> None:
    found = getattr(ParamAttr._to_attr(given), field)
    assert isinstance(found, value) if isinstance(value, type) else found == value


def test_false_stays_false_and_an_attr_itself() -> None:
    attr = ParamAttr(name="w")
    assert ParamAttr._to_attr(False) is False
    assert ParamAttr._to_attr(attr) is attr


def test_anything_else_is_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"3\.5 does not describe a parameter"):
        ParamAttr._to_attr(3.5)


def test_a_parameter_has_what_its_attr_says() -> None:
    decay = fluid.regularizer.L1Decay(0.5)
    attr = ParamAttr(name="w", learning_rate=0.1, regularizer=decay, trainable=False, do_model_average=False)
    fluid.layers.fc(fluid.data("x", [None, 3]), 2, param_attr=attr, bias_attr=False)
    weight = fluid.default_main_program().global_block().var("w")
    assert weight.optimize_attr == {"learning_rate": 0.1}
    assert weight.regularizer is decay
    assert weight.trainable is False
    assert weight.do_model_average is False


def test_layers_with_one_name_share_the_parameter() -> None:
    x = fluid.data("x", [None, 3])
    for _ in range(2):
        fluid.layers.fc(x, 2, param_attr="shared", bias_attr=False)
    assert [p.name for p in fluid.default_main_program().all_parameters()] == ["shared"]
