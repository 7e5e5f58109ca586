"""Names of gradients of the first and of later passes over one program."""

from __future__ import annotations

import paddlelike as fluid
from paddlelike.backward.names import PassNames
from paddlelike.backward.transform import Step
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
