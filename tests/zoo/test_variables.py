"""Programs hold their variables in the order in which Fluid 1.8.5 writes them, and say what its own say.

Of most layers the bytes are compared (``test_encoded.py``); here are those whose bytes vary.
"""

from __future__ import annotations

from typing import Any

import pytest

import paddlelike as fluid
from paddlelike.core import VarType
from paddlelike.framework.codec.schema import messages
from paddlelike.framework.graph.order import order_as_hashed
from tests.helpers.fresh import fresh_programs
from tests.helpers.golden_data import table
from tests.zoo.layers import LAYERS

GOLDEN = table("variables")
#: Other fields: ``lod_level`` of gradients in a loop.
DIFFERENT = {"dynamic_rnn": {"with_backward"}}


def list_variables(program: Any) -> list[list[list[str]]]:
    message = messages().ProgramDesc.FromString(program.desc.serialize_to_string())
    return [[[var.name, describe(var)] for var in block.vars] for block in message.blocks]


def describe(var: Any) -> str:
    array = var.type.type == VarType.LOD_TENSOR_ARRAY
    part = var.type.tensor_array if array else var.type.lod_tensor
    found = "l" if part.HasField("lod_level") else ""
    return found + "".join(name[0] for name in ("persistable", "need_check_feed") if var.HasField(name))


@pytest.mark.parametrize("name", GOLDEN)
def test_variables_of_a_layer_match_fluid(name: str) -> None:
    golden = GOLDEN[name]
    with fresh_programs() as (main, startup):
        out = LAYERS[name]()
        found = {"main": list_variables(main), "startup": list_variables(startup)}
        if "with_backward" in golden:
            fluid.backward.append_backward(fluid.layers.mean(out))
            found["with_backward"] = list_variables(main)
    different = {which for which in golden if found[which] != golden[which]}
    assert different == DIFFERENT.get(name, set())


def test_variables_are_listed_in_the_order_of_the_hash_table_of_fluid() -> None:
    # written by a std::unordered_map: the startup program of convolution, norm and fc by Momentum
    conv, norm, fc = "conv2d_0", "batch_norm_0", "fc_0"
    parameters = [f"{conv}.w_0", f"{conv}.b_0", f"{norm}.w_0", f"{norm}.b_0", f"{norm}.w_1", f"{norm}.w_2"]
    parameters += [f"{fc}.w_0", f"{fc}.b_0"]
    moments = [f"{each}_velocity_0" for each in (f"{norm}.b_0", f"{norm}.w_0", f"{conv}.b_0", f"{conv}.w_0")]
    moments += [f"{fc}.b_0_velocity_0", f"{fc}.w_0_velocity_0"]
    wanted = (
        "conv2d_0.w_0_velocity_0 conv2d_0.b_0 conv2d_0.w_0 batch_norm_0.b_0 batch_norm_0.w_0 learning_rate_0 "
        "batch_norm_0.w_1 fc_0.w_0_velocity_0 fc_0.b_0_velocity_0 batch_norm_0.w_0_velocity_0 "
        "batch_norm_0.w_2 fc_0.w_0 conv2d_0.b_0_velocity_0 fc_0.b_0 batch_norm_0.b_0_velocity_0"
    )
    assert order_as_hashed([*parameters, *moments, "learning_rate_0"]) == wanted.split()
