"""Training programs for comparison with the real system: clips, regularizers, schedules, optimizers together.

Every case takes the `fluid` module to build with (ours, or in another process the real one, so this
file keeps to what Python 3.7 understands), builds into the default programs and returns the loss. The
golden table `training.json.gz` holds what the real system made of each of them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

SEED = 11
STEPS = 5


def feeds() -> list[dict[str, Any]]:
    """One batch per step; a network takes what it has variables for."""
    rng = np.random.RandomState(3)
    batches = []
    for _ in range(STEPS):
        x = rng.uniform(-1, 1, (3, 4)).astype("float32")
        ids = rng.randint(0, 9, (3, 1)).astype("int64")
        # Fluid's momentum and rmsprop lose rows of a sparse gradient that are not in order.
        ordered = np.sort(rng.permutation(9)[:3]).reshape(3, 1).astype("int64")
        batches.append({"x": x, "y": x.sum(1, keepdims=True) * 2, "ids": ids, "ordered": ordered})
    return batches


def _inputs(fluid: Any) -> Any:
    return fluid.data("x", [None, 4], "float32"), fluid.data("y", [None, 1], "float32")


def _loss(fluid: Any, out: Any, y: Any) -> Any:
    return fluid.layers.mean(fluid.layers.square_error_cost(out, y))


def dense(fluid: Any, w: Any = None, b: Any = None, act: str = "tanh") -> Any:
    """fc 4 -> 3, fc 3 -> 1; ``w`` and ``b`` are the first layer's attributes."""
    x, y = _inputs(fluid)
    hidden = fluid.layers.fc(x, 3, act=act, param_attr=w, bias_attr=b)
    return _loss(fluid, fluid.layers.fc(hidden, 1, bias_attr=False), y)


def sparse(fluid: Any, words: str = "ids", **attrs: Any) -> Any:
    """A table of 9 words with sparse gradients beside the features."""
    x, y = _inputs(fluid)
    ids = fluid.data(words, [None, 1], "int64")
    table = fluid.layers.embedding(
        ids, [9, 2], is_sparse=True, param_attr=fluid.ParamAttr(name="table", **attrs)
    )
    both = fluid.layers.concat([x, table], axis=1)
    return _loss(fluid, fluid.layers.fc(both, 1), y)


def _sgd(fluid: Any, rate: Any, loss: Any = None, **options: Any) -> Any:
    loss = dense(fluid) if loss is None else loss
    fluid.optimizer.SGD(rate, **options).minimize(loss)
    return loss


# Learning rates


def rate_per_parameter(fluid: Any) -> Any:
    loss = dense(fluid, fluid.ParamAttr(learning_rate=0.5), fluid.ParamAttr(learning_rate=2))
    fluid.optimizer.Momentum(0.1, 0.5).minimize(loss)
    return loss


def rate_per_parameter_with_schedule(fluid: Any) -> Any:
    loss = dense(fluid, fluid.ParamAttr(learning_rate=0.5))
    return _sgd(fluid, fluid.layers.exponential_decay(0.1, 2, 0.5, staircase=True), loss)


def two_optimizers(fluid: Any) -> Any:
    loss = dense(fluid)
    fluid.optimizer.SGD(0.1, parameter_list=["fc_0.w_0", "fc_0.b_0"]).minimize(loss)
    fluid.optimizer.Adam(0.01).minimize(loss, parameter_list=["fc_1.w_0"])
    return loss


def without_gradient_of(fluid: Any) -> Any:
    loss = dense(fluid)
    fluid.optimizer.Adagrad(0.1).minimize(loss, no_grad_set={"fc_0.w_0"})
    return loss


def frozen_parameter(fluid: Any) -> Any:
    loss = dense(fluid, fluid.ParamAttr(trainable=False))
    fluid.optimizer.RMSProp(0.1).minimize(loss)
    return loss


def float64_parameters(fluid: Any) -> Any:
    x, y = _inputs(fluid)
    out = fluid.layers.fc(fluid.layers.cast(x, "float64"), 1)
    loss = _loss(fluid, out, fluid.layers.cast(y, "float64"))
    fluid.optimizer.Adam(0.1).minimize(loss)
    return loss


def on_devices(fluid: Any) -> Any:
    x, y = _inputs(fluid)
    with fluid.device_guard("cpu"):
        hidden = fluid.layers.fc(x, 3, act="tanh")
    loss = _loss(fluid, fluid.layers.fc(hidden, 1, bias_attr=False), y)
    fluid.optimizer.Adam(
        0.1,
        regularization=fluid.regularizer.L2Decay(0.1),
        grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0),
    ).minimize(loss)
    return loss


def in_name_scope(fluid: Any) -> Any:
    with fluid.name_scope("model"):
        loss = dense(fluid)
        with fluid.name_scope("update"):
            fluid.optimizer.Adamax(0.1, regularization=fluid.regularizer.L1Decay(0.1)).minimize(loss)
    return loss


# Schedules


def noam_with_rate(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.noam_decay(16, 3, learning_rate=2.0))


def noam_with_rate_variable(fluid: Any) -> Any:
    rate = fluid.layers.create_global_var([1], 0.5, "float32", persistable=True, name="base")
    return _sgd(fluid, fluid.layers.noam_decay(16, 3, learning_rate=rate))


def exponential_of_variable(fluid: Any) -> Any:
    rate = fluid.layers.create_global_var([1], 0.1, "float32", persistable=True, name="base")
    return _sgd(fluid, fluid.layers.exponential_decay(rate, 2, 0.5))


def natural_exp_staircase(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.natural_exp_decay(0.1, 2, 0.5, staircase=True))


def inverse_time_staircase(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.inverse_time_decay(0.1, 2, 0.5, staircase=True))


def inverse_time_integers(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.inverse_time_decay(1, 2, 3))


def polynomial_default(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.polynomial_decay(0.1, 3))


def polynomial_cycle(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.polynomial_decay(0.1, 2, 0.01, power=2, cycle=True))


def piecewise_one_boundary(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.piecewise_decay([2], [0.1, 0.01]))


def piecewise_many(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.piecewise_decay([1, 2, 3], [0.1, 0.05, 0.02, 0.01]))


def cosine_each_step(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.cosine_decay(0.1, 1, 4))


def warmup_of_number(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.linear_lr_warmup(0.1, 3, 0.01, 0.07))


def warmup_of_integer(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.linear_lr_warmup(1, 3, 0.0, 1.0))


def warmup_of_piecewise(fluid: Any) -> Any:
    pieces = fluid.layers.piecewise_decay([3, 4], [0.1, 0.05, 0.01])
    return _sgd(fluid, fluid.layers.linear_lr_warmup(pieces, 2, 0.0, 0.1))


def warmup_of_cosine(fluid: Any) -> Any:
    return _sgd(fluid, fluid.layers.linear_lr_warmup(fluid.layers.cosine_decay(0.1, 2, 3), 2, 0.0, 0.1))


def warmup_and_counter(fluid: Any) -> Any:
    loss = dense(fluid)
    fluid.layers.autoincreased_step_counter()
    return _sgd(fluid, fluid.layers.linear_lr_warmup(fluid.layers.noam_decay(16, 3), 2, 0.0, 0.1), loss)


def schedule_before_the_network(fluid: Any) -> Any:
    rate = fluid.layers.exponential_decay(0.1, 2, 0.5)
    return _sgd(fluid, rate)


# Regularizers


def regularizer_per_parameter(fluid: Any) -> Any:
    loss = dense(fluid, fluid.ParamAttr(regularizer=fluid.regularizer.L1Decay(0.1)), False)
    return _sgd(fluid, 0.1, loss, regularization=fluid.regularizer.L2Decay(0.2))


def regularizer_of_one_parameter_alone(fluid: Any) -> Any:
    loss = dense(fluid, fluid.ParamAttr(regularizer=fluid.regularizer.L2Decay(0.1)))
    fluid.optimizer.Adam(0.1).minimize(loss)
    return loss


def regularizer_of_sparse_l2(fluid: Any) -> Any:
    return _sgd(fluid, 0.1, sparse(fluid), regularization=fluid.regularizer.L2Decay(0.1))


def regularizer_of_sparse_l1(fluid: Any) -> Any:
    loss = sparse(fluid)
    fluid.optimizer.Adam(0.1, regularization=fluid.regularizer.L1Decay(0.1)).minimize(loss)
    return loss


# Clips


def clip_regularizer_schedule_rates(fluid: Any) -> Any:
    loss = dense(fluid, fluid.ParamAttr(learning_rate=0.5, regularizer=fluid.regularizer.L1Decay(0.01)))
    fluid.optimizer.Momentum(
        fluid.layers.piecewise_decay([2, 4], [0.1, 0.05, 0.01]),
        0.9,
        use_nesterov=True,
        regularization=fluid.regularizer.L2Decay(0.1),
        grad_clip=fluid.clip.GradientClipByGlobalNorm(0.5),
    ).minimize(loss)
    return loss


def clip_by_value_limits(fluid: Any) -> Any:
    return _sgd(fluid, 0.1, grad_clip=fluid.clip.GradientClipByValue(0.2, -0.1))


def clip_by_norm_some(fluid: Any) -> Any:
    clip = fluid.clip.GradientClipByNorm(0.2, need_clip=lambda p: p.name.endswith("w_0"))
    return _sgd(fluid, 0.1, grad_clip=clip)


def clip_by_value_some(fluid: Any) -> Any:
    clip = fluid.clip.GradientClipByValue(0.1, need_clip=lambda p: p.name == "fc_0.b_0")
    return _sgd(fluid, 0.1, grad_clip=clip)


def clip_by_global_norm_some(fluid: Any) -> Any:
    clip = fluid.clip.GradientClipByGlobalNorm(0.2, need_clip=lambda p: p.name != "fc_0.w_0")
    return _sgd(fluid, 0.1, grad_clip=clip)


def clip_by_global_norm_none(fluid: Any) -> Any:
    clip = fluid.clip.GradientClipByGlobalNorm(0.2, need_clip=lambda p: False)
    return _sgd(fluid, 0.1, grad_clip=clip)


def clip_sparse_by_value(fluid: Any) -> Any:
    return _sgd(fluid, 0.1, sparse(fluid), grad_clip=fluid.clip.GradientClipByValue(0.05))


def clip_sparse_by_norm(fluid: Any) -> Any:
    return _sgd(fluid, 0.1, sparse(fluid), grad_clip=fluid.clip.GradientClipByNorm(0.2))


def clip_sparse_by_global_norm(fluid: Any) -> Any:
    loss = sparse(fluid)
    fluid.optimizer.Adam(0.1, grad_clip=fluid.clip.GradientClipByGlobalNorm(0.2)).minimize(loss)
    return loss


def _set_clip(fluid: Any, *args: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated
        fluid.clip.set_gradient_clip(*args)


def set_clip_everywhere(fluid: Any) -> Any:
    loss = dense(fluid)
    _set_clip(fluid, fluid.clip.GradientClipByGlobalNorm(0.2))
    return _sgd(fluid, 0.1, loss, regularization=fluid.regularizer.L2Decay(0.1))


def set_clip_by_value(fluid: Any) -> Any:
    loss = dense(fluid)
    _set_clip(fluid, fluid.clip.GradientClipByValue(0.1))
    return _sgd(fluid, 0.1, loss)


def set_clip_by_parameter(fluid: Any) -> Any:
    loss = dense(fluid)
    clip = fluid.clip
    _set_clip(fluid, clip.GradientClipByNorm(0.1), ["fc_0.w_0"])
    _set_clip(fluid, clip.GradientClipByValue(0.1), ["fc_0.b_0"])
    return _sgd(fluid, 0.1, loss)


def set_clip_in_groups(fluid: Any) -> Any:
    loss = dense(fluid)
    clip = fluid.clip
    _set_clip(fluid, clip.GradientClipByGlobalNorm(0.1, group_name="one"), ["fc_0.w_0", "fc_1.w_0"])
    _set_clip(fluid, clip.GradientClipByGlobalNorm(0.3, group_name="two"), ["fc_0.b_0"])
    return _sgd(fluid, 0.1, loss)


def set_clip_and_argument(fluid: Any) -> Any:
    loss = dense(fluid)
    _set_clip(fluid, fluid.clip.GradientClipByValue(0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _sgd(fluid, 0.1, loss, grad_clip=fluid.clip.GradientClipByNorm(0.3))


def error_clip(fluid: Any) -> Any:
    loss = dense(fluid)
    block = fluid.default_main_program().global_block()
    block.var("fc_0.tmp_1")._set_error_clip(fluid.clip.ErrorClipByValue(0.02))
    block.var("fc_0.tmp_0")._set_error_clip(fluid.clip.ErrorClipByValue(0.02, -0.01))
    return _sgd(fluid, 0.1, loss)


# Optimizers


def sparse_momentum(fluid: Any) -> Any:
    loss = sparse(fluid, "ordered")
    fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
    return loss


def sparse_adam_lazy(fluid: Any) -> Any:
    loss = sparse(fluid)
    fluid.optimizer.Adam(0.1, lazy_mode=True).minimize(loss)
    return loss


def sparse_adagrad(fluid: Any) -> Any:
    loss = sparse(fluid, learning_rate=0.3)
    fluid.optimizer.Adagrad(0.1).minimize(loss)
    return loss


def sparse_rmsprop(fluid: Any) -> Any:
    loss = sparse(fluid, "ordered")
    fluid.optimizer.RMSProp(0.1).minimize(loss)
    return loss


def table_on_servers(fluid: Any) -> Any:
    x, y = _inputs(fluid)
    ids = fluid.data("ids", [None, 1], "int64")
    attr = fluid.ParamAttr(name="table", learning_rate=0.5)
    table = fluid.layers.embedding(ids, [9, 2], is_sparse=True, is_distributed=True, param_attr=attr)
    loss = _loss(fluid, fluid.layers.fc(fluid.layers.concat([x, table], axis=1), 1), y)
    fluid.optimizer.Adam(
        fluid.layers.exponential_decay(0.1, 2, 0.5),
        regularization=fluid.regularizer.L2Decay(0.1),
        grad_clip=fluid.clip.GradientClipByGlobalNorm(0.2),
    ).minimize(loss)
    return loss


def adam_with_tensor_betas(fluid: Any) -> Any:
    loss = dense(fluid)
    make = fluid.layers.create_global_var
    beta1 = make([1], 0.8, "float32", persistable=True, name="beta1")
    beta2 = make([1], 0.9, "float32", persistable=True, name="beta2")
    fluid.optimizer.Adam(0.1, beta1=beta1, beta2=beta2).minimize(loss)
    return loss


def lamb_without_decay_of_biases(fluid: Any) -> Any:
    loss = dense(fluid)
    fluid.optimizer.Lamb(
        0.1, lamb_weight_decay=0.1, exclude_from_weight_decay_fn=lambda p: p.name.endswith(".b_0")
    ).minimize(loss)
    return loss


def ftrl_named(fluid: Any) -> Any:
    loss = dense(fluid)
    fluid.optimizer.Ftrl(0.1, l1=0.01, l2=0.02, lr_power=-0.4, name="mine").minimize(loss)
    return loss


def adadelta_named(fluid: Any) -> Any:
    loss = dense(fluid)
    fluid.optimizer.Adadelta(0.1, epsilon=1e-4, rho=0.9, name="mine").minimize(loss)
    return loss


def dpsgd_quiet(fluid: Any) -> Any:
    loss = dense(fluid)
    fluid.optimizer.Dpsgd(0.1, clip=0.2, batch_size=16.0, sigma=0.0).minimize(loss)
    return loss


def lookahead_of_momentum(fluid: Any) -> Any:
    loss = dense(fluid)
    inner = fluid.optimizer.Momentum(0.1, 0.9)
    fluid.optimizer.LookaheadOptimizer(inner, alpha=0.8, k=2).minimize(loss)
    return loss


def average_and_moving_average(fluid: Any) -> Any:
    loss = _sgd(fluid, 0.1)
    fluid.optimizer.ExponentialMovingAverage(0.9, name="ema").update()
    fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=3)
    return loss


def moving_average_with_steps(fluid: Any) -> Any:
    loss = _sgd(fluid, 0.1)
    steps = fluid.layers.cast(fluid.layers.autoincreased_step_counter(), "float32")
    fluid.optimizer.ExponentialMovingAverage(0.3, thres_steps=steps).update()
    return loss


def moving_average_with_whole_steps(fluid: Any) -> Any:
    loss = _sgd(fluid, 0.1)
    steps = fluid.layers.autoincreased_step_counter()
    fluid.optimizer.ExponentialMovingAverage(0.5, thres_steps=steps).update()
    return loss


def average_without_some(fluid: Any) -> Any:
    loss = _sgd(fluid, 0.1, dense(fluid, fluid.ParamAttr(do_model_average=False)))
    fluid.optimizer.ModelAverage(0.5, min_average_window=2, max_average_window=3)
    return loss


def switch(fluid: Any) -> Any:
    layers = fluid.layers
    rate = layers.create_global_var([1], 0.0, "float32", persistable=True, name="rate")
    step = layers.cast(layers.autoincreased_step_counter(), "float32")
    with layers.Switch() as cases:
        with cases.case(step < 2.0):
            layers.assign(layers.fill_constant([1], "float32", 0.1), rate)
        with cases.case(step < 4.0):
            layers.assign(rate * 0.5, rate)
        with cases.default():
            layers.assign(layers.fill_constant([1], "float32", 0.02), rate)
    return _sgd(fluid, rate)


CASES = {
    name: case
    for name, case in list(globals().items())
    if callable(case)
    and getattr(case, "__module__", None) == __name__
    and not name.startswith("_")
    and name not in ("feeds", "dense", "sparse")
}
