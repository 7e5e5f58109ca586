"""What all optimizers do besides their programs: signatures, results, checks."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import optimizer
from paddlelike.errors import GraphError, UnsupportedError
from tests.optimizer.harness.cases import dense
from tests.optimizer.harness.training import PLAIN, make, train

#: The signatures of Fluid 1.8.5.
SIGNATURES = {
    "SGD": "(learning_rate, parameter_list=None, regularization=None, grad_clip=None, name=None)",
    "Momentum": "(learning_rate, momentum, parameter_list=None, use_nesterov=False, "
    "regularization=None, grad_clip=None, name=None)",
    "LarsMomentum": "(learning_rate, momentum, lars_coeff=0.001, lars_weight_decay=0.0005, "
    "parameter_list=None, regularization=None, grad_clip=None, name=None)",
    "Adagrad": "(learning_rate, epsilon=1e-06, parameter_list=None, regularization=None, "
    "grad_clip=None, name=None, initial_accumulator_value=0.0)",
    "DecayedAdagrad": "(learning_rate, decay=0.95, epsilon=1e-06, parameter_list=None, "
    "regularization=None, grad_clip=None, name=None)",
    "Adadelta": "(learning_rate, epsilon=1e-06, rho=0.95, parameter_list=None, "
    "regularization=None, grad_clip=None, name=None)",
    "Adam": "(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameter_list=None, "
    "regularization=None, grad_clip=None, name=None, lazy_mode=False)",
    "Adamax": "(learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameter_list=None, "
    "regularization=None, grad_clip=None, name=None)",
    "Lamb": "(learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-06, "
    "parameter_list=None, regularization=None, grad_clip=None, exclude_from_weight_decay_fn=None, "
    "name=None)",
    "RMSProp": "(learning_rate, rho=0.95, epsilon=1e-06, momentum=0.0, centered=False, "
    "parameter_list=None, regularization=None, grad_clip=None, name=None)",
    "Ftrl": "(learning_rate, l1=0.0, l2=0.0, lr_power=-0.5, parameter_list=None, "
    "regularization=None, grad_clip=None, name=None)",
    "Dpsgd": "(learning_rate=0.001, clip=0.9, batch_size=0.999, sigma=1e-08, parameter_list=None)",
    "ModelAverage": "(average_window_rate, min_average_window=10000, max_average_window=10000, "
    "regularization=None, name=None)",
    "ExponentialMovingAverage": "(decay=0.999, thres_steps=None, name=None)",
    "LookaheadOptimizer": "(inner_optimizer, alpha=0.5, k=5)",
    "RecomputeOptimizer": "(optimizer)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_match_fluid(name: str) -> None:
    parameters = inspect.signature(getattr(optimizer, name)).parameters.values()
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    assert str(inspect.Signature(bare)) == SIGNATURES[name]


@pytest.mark.parametrize("name", PLAIN)
def test_both_names_of_an_optimizer_are_the_same_class(name: str) -> None:
    assert getattr(optimizer, name) is getattr(optimizer, f"{name}Optimizer")


@pytest.mark.parametrize("name", PLAIN)
def test_minimize_returns_the_updates_and_the_pairs(name: str) -> None:
    tool = make(name)
    updates, pairs = tool.minimize(dense(fluid))
    assert {op.type for op in updates} - {"scale"} == {tool.type}
    assert [(p.name, g.name) for p, g in pairs] == [
        (n, f"{n}@GRAD") for n in ("fc_0.w_0", "fc_0.b_0", "fc_1.w_0")
    ]
    block = fluid.default_main_program().global_block()
    kept = [v.name for v in block.vars.values() if v.belong_to_optimizer]
    assert tool.get_opti_var_name_list() == kept


def test_backward_and_apply_gradients_together_equal_minimize() -> None:
    loss = dense(fluid)
    tool = optimizer.Adam(0.1)
    pairs = tool.backward(loss)
    updates = tool.apply_gradients(pairs)
    assert [op.type for op in updates] == ["adam"] * 3
    assert train(loss)[0] > train(loss)[-1]


def test_a_loss_that_is_not_a_number_is_refused() -> None:
    out = fluid.layers.fc(fluid.data("x", [None, 4]), 2)
    with pytest.raises(GraphError, match=r"shape \[-1, 2\], expected \[1\]") as refused:
        optimizer.SGD(0.1).minimize(out)
    assert "layers.mean" in str(refused.value)
    with pytest.raises(TypeError, match="loss must be a variable"):
        optimizer.SGD(0.1).minimize(3)  # type: ignore[arg-type]


def test_a_clip_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match=r"gradient clip of fluid\.clip, got 3"):
        optimizer.SGD(0.1, grad_clip=3)  # type: ignore[arg-type]


def test_minimize_without_trained_parameters_warns() -> None:
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(
        fluid.layers.fc(x, 2, param_attr=fluid.ParamAttr(trainable=False), bias_attr=False)
    )
    with pytest.warns(UserWarning, match="SGDOptimizer: 'mean_0.tmp_0' does not depend on any trained param"):
        assert optimizer.SGD(0.1).minimize(loss) == ([], [])


@pytest.mark.parametrize("listed", [["fc_0.w_0"], None])
def test_the_parameter_list_of_minimize_has_precedence(listed: Any) -> None:
    loss = dense(fluid)
    _, pairs = optimizer.SGD(0.1, parameter_list=["fc_0.b_0"]).minimize(loss, parameter_list=listed)
    assert [p.name for p, _ in pairs] == (listed or ["fc_0.b_0"])


@pytest.mark.parametrize("method", ["state_dict", "set_dict", "current_step_lr", "clear_gradients"])
def test_methods_of_imperative_mode_are_refused(method: str) -> None:
    tool = optimizer.Adam(0.1)
    with pytest.raises(UnsupportedError, match=f"Adam.*{method}.*imperative mode"):
        getattr(tool, method)(*[{}] * (method == "set_dict"))


def test_a_second_optimizer_for_the_same_parameters_causes_a_warning() -> None:
    loss = dense(fluid)
    optimizer.SGD(0.1, parameter_list=["fc_0.w_0"]).minimize(loss)
    with pytest.warns(UserWarning, match="updates 'fc_0.w_0' already, so that every run updates them twice"):
        _, pairs = optimizer.SGD(0.1).minimize(loss)
    assert len(pairs) == 3


def test_a_script_may_define_its_own_optimizer() -> None:
    class Sign(optimizer.Optimizer):
        """Steps of one length."""

        type = "sgd"

        def _append_optimize_op(self, block: Any, param_and_grad: Any) -> Any:
            param, grad = param_and_grad
            step = block.create_var(shape=param.shape, dtype=param.dtype)
            block.append_op(type="sign", inputs={"X": grad}, outputs={"Out": step})
            return super()._append_optimize_op(block, (param, step))

    loss = dense(fluid)
    updates, _ = Sign(0.01).minimize(loss)
    assert [op.type for op in updates] == ["sign", "sgd"] * 3
    train(loss)


def test_a_subclass_can_read_the_private_attributes_of_fluid() -> None:
    """As real Paddle Fluid 1.8.5 runs the same class: weights of 1 are halved."""

    class Halving(optimizer.AdamOptimizer):
        def _append_optimize_op(self, block: Any, param_and_grad: Any) -> Any:
            weight, _ = param_and_grad
            assert self._get_accumulator(self._moment1_acc_str, weight).shape == weight.shape
            return block.append_op("scale", {"X": [weight]}, {"Out": [weight]}, {"scale": self._beta1})

    ones = fluid.initializer.Constant(1.0)
    loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [2, 3]), 1, param_attr=ones, bias_attr=False))
    Halving(0.1, beta1=0.5).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    (found,) = exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=["fc_0.w_0"])
    assert found.ravel().tolist() == [0.5, 0.5, 0.5]


def test_accumulators_have_the_names_that_fluid_gives_them() -> None:
    rmsprop, adadelta = fluid.optimizer.RMSProp(0.1), fluid.optimizer.Adadelta(0.1)
    assert rmsprop._momentum_acc_str == "momentum"
    assert (rmsprop._rho, rmsprop._momentum, fluid.optimizer.Momentum(0.1, 0.9)._momentum) == (0.95, 0.0, 0.9)
    assert (adadelta._avg_squared_grad_acc_str, adadelta._rho) == ("_avg_squared_grad", 0.95)
    with pytest.raises(AttributeError, match="_velocity_acc_str"):
        _ = rmsprop._velocity_acc_str


def test_one_optimizer_can_train_two_programs() -> None:
    tool = optimizer.SGD(0.1)
    for _ in range(2):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            tool.minimize(dense(fluid))
        rates = [n for n in main.global_block().vars if n.startswith("learning_rate")]
        assert len(rates) == 1
        assert startup.global_block().has_var(rates[0])


def test_a_schedule_of_another_program_is_refused() -> None:
    rate = fluid.layers.exponential_decay(0.1, 10, 0.5)
    tool = optimizer.SGD(rate)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        loss = dense(fluid)
        with pytest.raises(GraphError, match="belongs to another program"):
            tool.minimize(loss)


@pytest.mark.parametrize("rate", [1, "0.1", np.float32(0.1), None])
def test_a_learning_rate_of_another_kind_is_refused(rate: Any) -> None:
    with pytest.raises(TypeError, match="learning_rate must be a float or a variable"):
        optimizer.SGD(rate)


def test_sgd_takes_a_rate_of_integers_as_in_fluid() -> None:
    loss = fluid.layers.reduce_sum(
        fluid.layers.create_parameter(
            [2], "float32", "w", default_initializer=fluid.initializer.Constant(1.0)
        )
    )
    optimizer.SGD(fluid.layers.fill_constant([1], "int64", 3)).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    assert exe.run(feed={}, fetch_list=["w"])[0].tolist() == [-2.0, -2.0]  # 1.8.5's values
    with pytest.raises(GraphError, match="has dtype INT64, expected a floating-point type"):
        optimizer.Momentum(fluid.layers.fill_constant([1], "int64", 3), 0.9)


@pytest.mark.parametrize("name", sorted(set(PLAIN) - {"SGD", "Dpsgd"}))
def test_a_second_minimize_is_refused_before_anything_changes(name: str) -> None:
    tool, loss = make(name), dense(fluid)
    tool.minimize(loss)
    block = fluid.default_main_program().global_block()
    before = len(block.ops), len(block.vars)
    with pytest.raises(GraphError, match="accumulators already") as refused:
        tool.minimize(loss)
    assert "make a new optimizer" in str(refused.value)
    assert (len(block.ops), len(block.vars)) == before
