"""Expressions beside numpy. The marks D.. are rows of the list of DyNet's features."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import paddlelike as fluid
import paddlelike.collection as dy
from paddlelike import bundle
from paddlelike.errors import ShapeError, UnsupportedError
from tests.collection import function_cases
from tests.collection.models import GOLDEN


def test_functions_of_the_dynet_tutorial_compute_the_same_as_numpy() -> None:  # D35
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
    exe = fluid.Executor()
    assert again.to_string(True) == program.to_string(True)
    found = exe.run(again, feed={}, fetch_list=[total.variable.name])[0]
    np.testing.assert_array_equal(found, total.npvalue())


def test_functions_compute_what_dynet_computes() -> None:
    """Values, dims and flat lists of DyNet 2.1."""
    real = json.loads((GOLDEN / "functions.json").read_text())
    ours = function_cases.compute(dy)
    assert list(ours) == list(real)
    for name, one in ours.items():
        assert one["dim"] == real[name]["dim"], name
        for key in ("value", "flat"):
            # float32: sums in another order, exp and log of another library
            np.testing.assert_allclose(one[key], real[name][key], rtol=2e-5, atol=1e-6, err_msg=name)


def test_gradients_pass_through_the_functions() -> None:
    m = dy.ParameterCollection()
    w = m.add_parameters((3, 4), init=dy.UniformInitializer(0.5))
    start = w.as_array().astype("float64")
    dy.renew_cg()
    scores = dy.logsumexp([dy.pick(dy.transpose(w), 0), dy.pick(w, 1, 1)])
    held = dy.nobackprop(dy.sum_elems(w))
    (dy.sum_elems(scores) + dy.hinge(dy.reshape(w, (12,)), 2) + held).backward()

    def compute(value: np.ndarray) -> float:
        flat = value.ravel("F")
        hinge = np.maximum(0, 1 + flat - flat[2]).sum() - 1
        return float(np.log(np.exp(value[:, 0]) + np.exp(value[:, 1])).sum() + hinge)

    direction = np.random.default_rng(1).standard_normal((3, 4))
    slope = (compute(start + 1e-6 * direction) - compute(start - 1e-6 * direction)) / 2e-6
    # float32 gradients beside a central difference in float64
    np.testing.assert_allclose((w.grad_as_array() * direction).sum(), slope, rtol=1e-4, atol=1e-5)


def test_random_expressions_are_drawn_once() -> None:
    dy.renew_cg()
    drawn, other = dy.random_normal((40, 50), 2.0, 0.5), dy.random_normal((40, 50), 2.0, 0.5)
    np.testing.assert_array_equal(drawn.npvalue(), drawn.npvalue())
    assert not np.array_equal(drawn.npvalue(), other.npvalue())
    assert abs(drawn.npvalue().mean() - 2) < 4 * 0.5 / np.sqrt(2000)  # four standard errors
    left = dy.random_uniform(2000, -1.0, 3.0).npvalue()
    assert -1 <= left.min() < -0.9 < 2.9 < left.max() <= 3
    kept = dy.dropout(dy.ones(2000), 0.25).npvalue()
    assert set(kept.tolist()) == {0.0, np.float32(1 / 0.75).item()}
    assert abs(np.mean(kept == 0) - 0.25) < 0.04  # four standard errors


def test_mismatched_names_and_shapes_are_errors() -> None:
    with pytest.raises(AttributeError, match=r"has no 'conv2d'.*dy\.Expression"):
        dy.conv2d  # noqa: B018
    dy.renew_cg()
    x = dy.inputTensor(np.ones((2, 3)))
    with pytest.raises(IndexError, match="0 to 1, not 2"):
        dy.pick(x, 2)
    with pytest.raises(ShapeError, match=r"\(2, 3\) does not have as many elements as \(4, 2\)"):
        dy.reshape(x, (4, 2))
    with pytest.raises(ShapeError, match="pairs of W and x, not 2"):
        dy.affine_transform([x, x])
    builder = dy.GRUBuilder(1, 3, 4, dy.ParameterCollection())
    builder.disable_dropout()
    with pytest.raises(UnsupportedError, match="no dropout inside"):
        builder.set_dropout(0.5)


def test_parameters_change_in_place() -> None:
    m = dy.ParameterCollection()
    w = m.add_parameters(3, init=dy.NumpyInitializer([1.0, -2.0, 3.0]))
    w.scale(2.0)
    w.clip_inplace(-3.0, 5.0)
    assert w.as_array().tolist() == [2.0, -3.0, 5.0]
    table = m.add_lookup_parameters((4, 2), init=dy.ConstInitializer(1.0))
    table.init_row(2, [5.0, 6.0])
    assert table.rows_as_array([2, 0]).tolist() == [[5.0, 6.0], [1.0, 1.0]]
    with pytest.raises(IndexError, match="rows 0 to 3, not 4"):
        table.row_as_array(4)
    drawn = m.add_parameters((50, 40), init=dy.NormalInitializer(1.0, 4.0)).as_array()
    assert abs(drawn.std() - 2) < 0.2
    assert np.abs(m.add_parameters((50, 40), init=dy.GlorotInitializer()).as_array()).max() < 0.26
