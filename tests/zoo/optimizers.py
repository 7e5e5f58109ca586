"""A builder for every entry of the golden table of optimizers and learning-rate schedules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddlelike as fluid

__all__ = ["OPTIMIZERS", "net"]

L = fluid.layers
O = fluid.optimizer  # noqa: E741  (the table reads better)


def net() -> Any:
    """Two layers and a mean square error."""
    hidden = L.fc(fluid.data("x", [None, 4], "float32"), 3, act="relu")
    out = L.fc(hidden, 1, bias_attr=False)
    return L.mean(L.square_error_cost(out, fluid.data("y", [None, 1], "float32")))


def model_average(loss: Any) -> None:
    O.SGD(0.1).minimize(loss)
    O.ModelAverage(0.15)


def moving_average(loss: Any) -> None:
    O.SGD(0.1).minimize(loss)
    O.ExponentialMovingAverage(0.999).update()


def lookahead(loss: Any) -> None:
    O.LookaheadOptimizer(O.SGD(0.1), alpha=0.5, k=5).minimize(loss)


def minimized(make: Callable[[], Any]) -> Callable[[Any], None]:
    return lambda loss: make().minimize(loss)


def sgd(rate: Callable[[], Any] = lambda: 0.1, **options: Any) -> Callable[[Any], None]:
    return lambda loss: O.SGD(rate(), **options).minimize(loss)


OPTIMIZERS: dict[str, Callable[[Any], None]] = {
    # Regularizers and clipping
    "SGD": sgd(),
    "SGD_named": sgd(name="myopt"),
    "SGD_l2": sgd(regularization=fluid.regularizer.L2Decay(1e-3)),
    "SGD_l1": sgd(regularization=fluid.regularizer.L1Decay(1e-3)),
    "SGD_clip_gnorm": sgd(grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0)),
    "SGD_clip_norm": sgd(grad_clip=fluid.clip.GradientClipByNorm(1.0)),
    "SGD_clip_value": sgd(grad_clip=fluid.clip.GradientClipByValue(1.0)),
    # Optimizers
    "Momentum": minimized(lambda: O.Momentum(0.1, 0.9)),
    "Momentum_nesterov_l2": minimized(
        lambda: O.Momentum(0.1, 0.9, use_nesterov=True, regularization=fluid.regularizer.L2Decay(1e-3))
    ),
    "LarsMomentum": minimized(lambda: O.LarsMomentum(0.1, 0.9)),
    "Adagrad": minimized(lambda: O.Adagrad(0.1)),
    "Adagrad_init": minimized(lambda: O.Adagrad(0.1, initial_accumulator_value=0.1)),
    "Adam": minimized(lambda: O.Adam(0.1)),
    "Adam_lazy": minimized(lambda: O.Adam(0.1, beta1=0.8, beta2=0.99, epsilon=1e-6, lazy_mode=True)),
    "Adam_named": minimized(lambda: O.Adam(0.1, name="opt")),
    "Adamax": minimized(lambda: O.Adamax(0.1)),
    "DecayedAdagrad": minimized(lambda: O.DecayedAdagrad(0.1)),
    "Adadelta": minimized(lambda: O.Adadelta(0.1)),
    "RMSProp": minimized(lambda: O.RMSProp(0.1)),
    "RMSProp_centered_momentum": minimized(lambda: O.RMSProp(0.1, momentum=0.9, centered=True)),
    "Ftrl": minimized(lambda: O.Ftrl(0.1)),
    "Ftrl_l1l2": minimized(lambda: O.Ftrl(0.1, l1=0.1, l2=0.2)),
    "Lamb": minimized(lambda: O.Lamb(0.1)),
    "Dpsgd": minimized(lambda: O.Dpsgd(0.1)),
    # Learning rates
    "LRvar": sgd(lambda: L.create_global_var([1], 0.1, "float32", persistable=True, name="mylr")),
    "noam": sgd(lambda: L.noam_decay(64, 100)),
    "exponential": sgd(lambda: L.exponential_decay(0.1, 100, 0.5)),
    "exponential_staircase": sgd(lambda: L.exponential_decay(0.1, 100, 0.5, staircase=True)),
    "natural_exp": sgd(lambda: L.natural_exp_decay(0.1, 100, 0.5)),
    "inverse_time": sgd(lambda: L.inverse_time_decay(0.1, 100, 0.5)),
    "polynomial": sgd(lambda: L.polynomial_decay(0.1, 100, 0.01, power=2.0)),
    "polynomial_cycle": sgd(lambda: L.polynomial_decay(0.1, 100, 0.01, cycle=True)),
    "piecewise": sgd(lambda: L.piecewise_decay([10, 20], [0.1, 0.01, 0.001])),
    "cosine": sgd(lambda: L.cosine_decay(0.1, 10, 5)),
    "warmup": sgd(lambda: L.linear_lr_warmup(0.1, 10, 0.0, 0.1)),
    "warmup_noam": minimized(lambda: O.Adam(L.linear_lr_warmup(L.noam_decay(64, 100), 10, 0.0, 0.1))),
    # Wrappers
    "ModelAverage": model_average,
    "EMA": moving_average,
    "Lookahead": lookahead,
}
