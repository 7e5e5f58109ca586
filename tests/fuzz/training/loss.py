"""Losses, and the optimizers that minimize them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddlelike as fluid
from tests.fuzz.training.network import Network

__all__ = ["add_loss", "minimize"]

L = fluid.layers
O = fluid.optimizer  # noqa: E741
R = fluid.regularizer


def add_loss(net: Network) -> Any:
    """Return the loss of one of the values."""
    rng = net.rng
    value = net.take("row") if rng.random() < 0.8 else net.take(rng.choice(["cube", "image", "seq"]))
    x = value.variable
    if value.kind != "row":
        return L.mean(L.square(x))
    width = value.dims[0]
    form = rng.randrange(10)
    if form == 0 and width > 1:
        return L.mean(L.softmax_with_cross_entropy(x, net.feed("label", (1,), ids=width)))
    if form == 1 and width > 1:
        return L.mean(L.cross_entropy(L.softmax(x), net.feed("label", (1,), ids=width)))
    if form == 2:
        return L.mean(L.sigmoid_cross_entropy_with_logits(x, net.feed("y", (width,))))
    if form == 3:
        return L.mean(L.huber_loss(L.fc(x, 1), net.feed("y", (1,)), 1.0))
    if form == 4:
        return L.mean(L.smooth_l1(x, net.feed("y", (width,))))
    if form == 5:
        return L.mean(L.log_loss(L.sigmoid(L.fc(x, 1)), L.sigmoid(net.feed("y", (1,)))))
    if form == 6 and width > 1:
        soft = L.label_smooth(L.one_hot(net.feed("label", (1,), ids=width), width))
        return L.mean(L.softmax_with_cross_entropy(x, soft, soft_label=True))
    if form == 7:
        return L.reduce_mean(L.abs(x)) + L.reduce_sum(L.square(x)) * 0.01
    if form == 8 and width > 1:
        return L.mean(L.hsigmoid(L.fc(x, 4), net.feed("label", (1,), ids=width), width))
    return L.mean(L.square_error_cost(L.fc(x, 1), net.feed("y", (1,))))


def _rate(net: Network) -> Any:
    choices: list[Callable[[], Any]] = [
        lambda: 0.05,
        lambda: 0.02,
        lambda: L.exponential_decay(0.05, 2, 0.5, staircase=net.maybe()),
        lambda: L.natural_exp_decay(0.05, 3, 0.5),
        lambda: L.inverse_time_decay(0.05, 2, 0.5),
        lambda: L.polynomial_decay(0.05, 5, 0.01, cycle=net.maybe()),
        lambda: L.piecewise_decay([1, 3], [0.05, 0.02, 0.01]),
        lambda: L.cosine_decay(0.05, 2, 3),
        lambda: L.noam_decay(64, 10) * 0.3,
        lambda: L.linear_lr_warmup(0.05, 3, 0.0, 0.05),
        lambda: L.linear_lr_warmup(L.exponential_decay(0.05, 2, 0.5), 2, 0.0, 0.05),
        lambda: L.create_global_var([1], 0.04, "float32", persistable=True, name=net.name("rate")),
    ]
    return net.rng.choice(choices)()


def _optimizer(net: Network) -> Any:
    rng = net.rng
    options: dict[str, Any] = {}
    if net.maybe(0.3):
        options["regularization"] = rng.choice([R.L2Decay, R.L1Decay])(0.01)
    if net.maybe(0.35):
        clip = fluid.clip
        options["grad_clip"] = rng.choice(
            [clip.GradientClipByGlobalNorm(0.5), clip.GradientClipByNorm(0.3), clip.GradientClipByValue(0.05)]
        )
    rate = _rate(net)
    choices: list[Callable[[], Any]] = [
        lambda: O.SGD(rate, **options),
        lambda: O.SGD(rate, **options),
        lambda: O.Momentum(rate, 0.9, use_nesterov=net.maybe(), **options),
        lambda: O.Adam(rate, lazy_mode=net.maybe(0.3), **options),
        lambda: O.Adam(rate, **options),
        lambda: O.Adagrad(rate, **options),
    ]
    if not any(net.sparse.values()):  # the others take no sparse gradients
        choices += [
            lambda: O.Adamax(rate, **options),
            lambda: O.DecayedAdagrad(rate, **options),
            lambda: O.Adadelta(rate, **options),
            lambda: O.RMSProp(rate, momentum=rng.choice([0.0, 0.9]), centered=net.maybe(), **options),
            lambda: O.Ftrl(rate, l1=0.01, l2=0.02, **options),
            lambda: O.Lamb(rate, **options),
            lambda: O.LarsMomentum(rate, 0.9, **options),
        ]
    return rng.choice(choices)()


def minimize(net: Network, losses: list[Any], values: list[Any]) -> None:
    """Append what trains the losses. ``values``: of the network, checkpoints of recomputation are of them."""
    form = net.rng.randrange(10)
    loss = losses[0] if len(losses) == 1 else L.sums(losses)
    if form == 0:
        O.LookaheadOptimizer(_optimizer(net), alpha=0.5, k=2).minimize(loss)
    elif form == 1 and values and len(fluid.default_main_program().blocks) == 1:
        optimizer = O.RecomputeOptimizer(_optimizer(net))
        optimizer._set_checkpoints(values)
        optimizer.minimize(loss)
    elif form == 2 and len(losses) > 1:
        for each in losses:
            _optimizer(net).minimize(each)
    elif form == 3 and len(losses) > 1:
        parameters = fluid.default_main_program().all_parameters()
        half = [p.name for p in parameters[::2]]
        rest = [p.name for p in parameters[1::2]]
        for each, names in zip(losses, (half, rest), strict=False):
            if names:
                _optimizer(net).minimize(each, parameter_list=names)
    else:
        _optimizer(net).minimize(loss)
    if form == 4:
        O.ExponentialMovingAverage(0.9).update()
    elif form == 5:
        O.ModelAverage(0.3, min_average_window=2, max_average_window=4)
