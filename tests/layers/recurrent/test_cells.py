"""Cells: the names of their parameters."""

from __future__ import annotations

import paddlelike as fluid
from tests.helpers.small_networks import x

layers = fluid.layers


def test_cells_use_the_names_of_given_attributes() -> None:
    cell = layers.GRUCell(4, param_attr=fluid.ParamAttr(name="w"), bias_attr=fluid.ParamAttr(name="b"))
    data = x(None, 3)
    cell(data, cell.get_initial_states(data))
    cell(data, cell.get_initial_states(data))  # the same parameters again
    names = sorted(p.name for p in fluid.default_main_program().all_parameters())
    assert names == ["b_candidate", "b_gate", "w_candidate", "w_gate"]
