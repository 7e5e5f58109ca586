"""Expressions beside numpy. The marks D.. are rows of the list of DyNet's features."""

from __future__ import annotations

import io

import numpy as np
import pytest

import paddlelike as fluid
import paddlelike.collection as dy
from paddlelike import bundle


def test_what_dynet_s_tutorial_calls_computes_the_same_as_numpy() -> None:  # D35
    m = dy.ParameterCollection()
    w, b, table = m.add_parameters((4, 3)), m.add_parameters(4), m.add_lookup_parameters((6, 3))
    x, y = table.as_array()[3], w.as_array() @ table.as_array()[3] + b.as_array()
    row = table[3]
    np.testing.assert_array_equal(row.npvalue(), x)
    near = {"rtol": 1e-5, "atol": 1e-6}  # float32, sums in another order
    for total in (w * row + b, dy.parameter(w) * row + dy.parameter(b), b + w * row):
        np.testing.assert_allclose(total.npvalue(), y, **near)
    np.testing.assert_allclose(dy.tanh(total).npvalue(), np.tanh(y), **near)
    np.testing.assert_allclose(dy.rectify(total).npvalue(), np.maximum(y, 0), **near)
    np.testing.assert_allclose(dy.softmax(total).npvalue(), np.exp(y) / np.exp(y).sum(), **near)
    assert dy.parameter(row) is row  # on an expression it does nothing
    with pytest.raises(IndexError, match="rows 0 to 5, not 6"):
        table[6]


def test_a_graph_of_expressions_is_pickled_as_a_program() -> None:
    dy.renew_cg()
    m = dy.ParameterCollection()
    total = m.add_parameters((4, 3)) * dy.inputVector([1.0, 2.0, 3.0])
    program = total.variable.block.program
    file = io.BytesIO()
    bundle.dump(program, file)
    again = bundle.load(file)
    exe = fluid.Executor(fluid.CPUPlace())
    assert again.to_string(True) == program.to_string(True)
    found = exe.run(again, feed={}, fetch_list=[total.variable.name])[0]
    np.testing.assert_array_equal(found, total.npvalue())
