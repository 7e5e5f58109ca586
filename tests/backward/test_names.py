"""Names of gradients of the first and of later passes over one program."""

from __future__ import annotations

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike.backward.names import PassNames
from paddlelike.backward.transform import Step
from paddlelike.errors import QuirkWarning
from paddlelike.framework.opdef import GradOp

L = fluid.layers


def test_the_first_pass_has_plain_names() -> None:
    y = L.relu(fluid.data("x", [None, 4]))
    names = PassNames(y.block)
    assert names.start_at(y.name) == f"{y.name}@GRAD"
    grad = GradOp("relu_grad", {"Out@GRAD": [f"{y.name}@GRAD"]}, {"X@GRAD": ["x@GRAD"]}, {})
    assert names.rename([Step(grad, y.op)])[0].grad == grad
    assert names.get_gradient("x") == "x@GRAD"
    assert names.get_gradient("nobody") is None


def test_a_second_backward_pass_does_not_reuse_names() -> None:
    y = L.relu(fluid.data("x", [None, 4]))
    block = y.block
    PassNames(block)
    for name in (f"{y.name}@GRAD", "x@GRAD"):
        block.create_var(name=name, shape=[-1, 4], dtype="float32")
    names = PassNames(block)
    start = names.start_at(y.name)
    assert start == f"{y.name}@GRAD_0"
    grad = GradOp("relu_grad", {"Out@GRAD": [f"{y.name}@GRAD"]}, {"X@GRAD": ["x@GRAD"]}, {})
    (renamed,) = names.rename([Step(grad, y.op)])
    assert renamed.grad.inputs == {"Out@GRAD": [start]}
    assert renamed.grad.outputs == {"X@GRAD": ["grad/grad/x@GRAD"]}
    assert names.get_gradient("x") == "grad/grad/x@GRAD"
    assert names.get_variable("grad/grad/x@GRAD") == "x"
    assert names.get_variable(start) == y.name


def test_a_gradient_given_by_the_caller_keeps_its_name() -> None:
    y = L.relu(fluid.data("x", [None, 4]))
    names = PassNames(y.block)
    assert names.start_at(y.name, "given") == "given"
    assert names.get_gradient(y.name) == "given"
    assert names.get_variable("given") == y.name


def _multiply_thrice(x: fluid.Variable, y: fluid.Variable) -> fluid.Variable:
    """Return the mean of ``x * y ** 3``, by a loop over an array."""
    index, count = L.fill_constant([1], "int64", 0), L.fill_constant([1], "int64", 3)
    condition = L.less_than(index, count)
    array = L.array_write(x, index)
    loop = L.While(condition)
    with loop.block():
        product = L.array_read(array, index) * y
        L.increment(index, in_place=True)
        L.array_write(product, index, array=array)
        L.less_than(index, count, cond=condition)
    return L.reduce_mean(L.array_read(array, count))


def _declare_inputs() -> tuple[fluid.Variable, fluid.Variable]:
    x, y = (fluid.data(name, [2, 3]) for name in "xy")
    x.stop_gradient = y.stop_gradient = False
    return x, y


def test_a_later_pass_through_a_loop_keeps_the_gradients_of_the_first() -> None:
    x, y = _declare_inputs()
    loss = _multiply_thrice(x, y)
    first = fluid.gradients(L.reduce_mean(x + y), x)
    later = fluid.gradients(loss, [x, y])
    assert [one.name for one in [*first, *later]] == ["x@GRAD", "grad/grad/x@GRAD", "grad/grad/y@GRAD"]
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3) - 2, np.linspace(0.1, 1, 6, dtype=np.float32)
    b = b.reshape(2, 3)
    sums, by_x, by_y = fluid.Executor().run(feed={"x": a, "y": b}, fetch_list=[*first, *later])
    np.testing.assert_allclose(sums, np.full((2, 3), 1 / 6), rtol=1e-6)
    np.testing.assert_allclose(by_x, b**3 / 6, rtol=1e-5)
    np.testing.assert_allclose(by_y, a * b**2 / 2, rtol=1e-5)


def test_a_later_pass_through_a_branch_keeps_the_gradients_of_the_first() -> None:
    x, y = _declare_inputs()
    is_less = L.less_than(L.reduce_mean(x), L.reduce_mean(y))
    loss = L.cond(is_less, lambda: L.reduce_mean(x * y), lambda: L.reduce_mean(x))
    found = [*fluid.gradients(L.reduce_mean(x + y), x), *fluid.gradients(loss, [x, y])]
    a, b = np.full((2, 3), -1, np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)
    sums, by_x, by_y = fluid.Executor().run(feed={"x": a, "y": b}, fetch_list=found)
    np.testing.assert_allclose(sums, np.full((2, 3), 1 / 6), rtol=1e-6)
    np.testing.assert_allclose(by_x, b / 6, rtol=1e-6)
    np.testing.assert_allclose(by_y, a / 6, rtol=1e-6)


def test_a_second_pass_ends_at_a_loop_of_the_first_as_in_fluid() -> None:
    x, y = _declare_inputs()
    loss = _multiply_thrice(x, y)
    fluid.gradients(loss, x)
    with pytest.warns(QuirkWarning, match="called again"):
        assert fluid.gradients(loss, y) == []
    assert [op.type for op in loss.block.ops].count("while_grad") == 1
