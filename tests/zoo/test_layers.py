"""Every layer builds the program that real Fluid 1.8.5 builds: main, startup, backward."""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid
from tests.helpers.canonical import assert_same_program, canonical
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table
from tests.zoo.layers import LAYERS

GOLDEN = table("layers")


def test_the_table_of_cases_is_complete() -> None:
    assert sorted(LAYERS) == sorted(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_layer_builds_the_operators_of_fluid(name: str) -> None:
    golden = GOLDEN[name]
    if "error" in golden:
        with fresh_programs(), pytest.raises(ValueError, match=name):
            LAYERS[name]()
    else:
        built_alike(name, golden)


def built_alike(name: str, golden: dict[str, Any]) -> None:
    with fresh_programs() as (main, startup):
        out = LAYERS[name]()
        assert_same_program(canonical(main), golden["main"])
        assert_same_program(canonical(startup), golden["startup"])
        found = facts(main, out)
        assert found == {key: golden[key] for key in found}
        if "with_backward" in golden:
            pairs = fluid.backward.append_backward(fluid.layers.mean(out))
            assert_same_program(canonical(main), golden["with_backward"])
            assert [[p.name, g.name] for p, g in pairs] == golden["params_grads"]
    if "backward_with_data_grad" in golden:
        differentiable_data(name, golden)


def differentiable_data(name: str, golden: dict[str, Any]) -> None:
    """The same where the fed data is differentiable too (the real one refused it otherwise)."""
    with fresh_programs() as (main, _):
        out = LAYERS[name]()
        for var in main.global_block().vars.values():
            if var.is_data and var.dtype.name == "FP32":
                var.stop_gradient = False
        out.stop_gradient = False
        pairs = fluid.backward.append_backward(fluid.layers.mean(out))
        assert_same_program(canonical(main), golden["backward_with_data_grad"])
        assert [[p.name, g.name] for p, g in pairs] == golden["params_grads_data_grad"]


def facts(main: Any, out: Any) -> dict[str, Any]:
    """What a ProgramDesc does not hold: kinds and flags of the Python variables, in order."""
    return {
        "out": out.name,
        "out_shape": list(out.shape),
        "out_dtype": out.dtype.name,
        "out_persistable": out.persistable,
        "out_stop_gradient": out.stop_gradient,
        "python_vars": [
            [
                block.idx,
                var.name,
                "Parameter" if fluid.io.is_parameter(var) else "Variable",
                var.persistable,
                var.stop_gradient,
            ]
            for block in main.blocks
            for var in block.vars.values()
        ],
    }
