"""What optimizers promise besides their programs: returns, refusals, what they keep."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import paddlelike as fluid
from paddlelike import optimizer
from paddlelike.errors import GraphError, UnsupportedError
from tests.optimizer.cases import dense, feeds

PLAIN = {
    "SGD": {}, "Momentum": {"momentum": 0.9}, "LarsMomentum": {"momentum": 0.9}, "Adagrad": {},
    "DecayedAdagrad": {}, "Adadelta": {}, "Adam": {}, "Adamax": {}, "Lamb": {}, "RMSProp": {},
    "Ftrl": {}, "Dpsgd": {},
}  # fmt: skip

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


def make(name: str, **options: Any) -> Any:
    return getattr(optimizer, name)(learning_rate=0.1, **PLAIN[name], **options)


def train(loss: Any, steps: int = 5) -> list[float]:
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    batches = [{name: batch[name] for name in ("x", "y")} for batch in feeds()[:steps]]
    return [float(exe.run(feed=batch, fetch_list=[loss])[0][0]) for batch in batches]


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_fluids(name: str) -> None:
    parameters = inspect.signature(getattr(optimizer, name)).parameters.values()
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    assert str(inspect.Signature(bare)) == SIGNATURES[name]


@pytest.mark.parametrize("name", PLAIN)
def test_both_names_are_one_class(name: str) -> None:
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


def test_the_halves_of_minimize_are_the_whole() -> None:
    loss = dense(fluid)
    tool = optimizer.Adam(0.1)
    pairs = tool.backward(loss)
    updates = tool.apply_gradients(pairs)
    assert [op.type for op in updates] == ["adam"] * 3
    assert train(loss)[0] > train(loss)[-1]


def test_one_optimizer_may_serve_two_programs() -> None:
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


def test_a_loss_that_is_no_number_is_refused() -> None:
    out = fluid.layers.fc(fluid.data("x", [None, 4]), 2)
    with pytest.raises(GraphError, match=r"shape \[-1, 2\], expected \[1\]") as refused:
        optimizer.SGD(0.1).minimize(out)
    assert "layers.mean" in str(refused.value)
    with pytest.raises(TypeError, match="loss must be a variable"):
        optimizer.SGD(0.1).minimize(3)  # type: ignore[arg-type]


def test_a_clip_of_another_kind_is_refused() -> None:
    with pytest.raises(TypeError, match=r"gradient clip of fluid\.clip, got 3"):
        optimizer.SGD(0.1, grad_clip=3)  # type: ignore[arg-type]


def test_without_parameters_there_is_nothing_to_do() -> None:
    x = fluid.data("x", [None, 4])
    loss = fluid.layers.mean(
        fluid.layers.fc(x, 2, param_attr=fluid.ParamAttr(trainable=False), bias_attr=False)
    )
    assert optimizer.SGD(0.1).minimize(loss) == ([], [])


@pytest.mark.parametrize("listed", [["fc_0.w_0"], None])
def test_a_parameter_list_at_minimize_wins(listed: Any) -> None:
    loss = dense(fluid)
    _, pairs = optimizer.SGD(0.1, parameter_list=["fc_0.b_0"]).minimize(loss, parameter_list=listed)
    assert [p.name for p, _ in pairs] == (listed or ["fc_0.b_0"])


@pytest.mark.parametrize("method", ["state_dict", "set_dict", "current_step_lr", "clear_gradients"])
def test_what_belongs_to_imperative_mode_is_refused(method: str) -> None:
    tool = optimizer.Adam(0.1)
    with pytest.raises(UnsupportedError, match=f"Adam.*{method}.*imperative mode"):
        getattr(tool, method)(*[{}] * (method == "set_dict"))


@pytest.mark.parametrize("name", ["DGCMomentumOptimizer", "PipelineOptimizer"])
def test_what_needs_other_machines_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        getattr(optimizer, name)(0.1, 0.9, rampup_begin_step=0)


def test_an_l2_that_fluid_ignores_is_told() -> None:
    with pytest.warns(UserWarning, match=r"l2 takes the value of l1: 0.1 instead of 0.2"):
        optimizer.Ftrl(0.1, l1=0.1, l2=0.2)


def test_lookahead_checks_its_arguments() -> None:
    inner = optimizer.SGD(0.1)
    for options in ({"alpha": 1.5}, {"k": 0}, {"k": 1.5}):
        with pytest.raises(GraphError, match="LookaheadOptimizer"):
            optimizer.LookaheadOptimizer(inner, **options)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="inner_optimizer"):
        optimizer.LookaheadOptimizer(None)  # type: ignore[arg-type]


def test_recompute_does_what_the_optimizer_inside_does() -> None:
    fluid.default_startup_program().random_seed = 5
    loss = dense(fluid)
    tool = optimizer.RecomputeOptimizer(optimizer.Momentum(0.1, 0.9))
    with pytest.raises(GraphError, match="no checkpoints"):
        tool.minimize(loss)
    tool._set_checkpoints([fluid.default_main_program().global_block().var("fc_0.tmp_2")])
    updates, pairs = tool.minimize(loss)
    assert [op.type for op in updates] == ["momentum"] * 3
    assert len(pairs) == 3
    losses = train(loss)
    assert losses[-1] < losses[0]


def test_the_second_optimizer_sees_parameters_that_still_learn() -> None:
    loss = dense(fluid)
    optimizer.SGD(0.1, parameter_list=["fc_0.w_0"]).minimize(loss)
    _, pairs = optimizer.SGD(0.1).minimize(loss)
    assert len(pairs) == 3


def test_an_optimizer_of_ones_own() -> None:
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
