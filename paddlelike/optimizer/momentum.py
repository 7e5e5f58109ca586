"""Gradient descent with momentum: Momentum, and LarsMomentum with a rate per parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.clip import GradientClipBase
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.optimizer.base import Optimizer
from paddlelike.optimizer.state import Accumulator

if TYPE_CHECKING:
    from paddlelike.regularizer import WeightDecayRegularizer

__all__ = ["LarsMomentum", "LarsMomentumOptimizer", "Momentum", "MomentumOptimizer"]


class MomentumOptimizer(Optimizer):
    """Momentum: ``v = momentum * v + g; p -= learning_rate * v`` (operator ``momentum``).

    With ``use_nesterov`` the step looks ahead: ``p -= learning_rate * (g + momentum * v)``.

    Parameters
    ----------
    momentum
        The share of the last step that is kept, usually 0.9.
    use_nesterov
        Whether the step looks ahead: ``p -= learning_rate * (g + momentum * v)``.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.Momentum(learning_rate=0.1, momentum=0.9).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.900 0.710 0.439
    """

    type = "momentum"
    accumulators = {"Velocity": Accumulator("velocity")}

    def __init__(
        self,
        learning_rate: float | Variable,
        momentum: float,
        parameter_list: Sequence[Parameter | str] | None = None,
        use_nesterov: bool = False,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = {"mu": momentum, "use_nesterov": bool(use_nesterov)}


class LarsMomentumOptimizer(Optimizer):
    """Momentum with the rate ``learning_rate * lars_coeff * |p| / (|g| + lars_weight_decay * |p|)``.

    You et al., Large batch training of convolutional networks, 2017 (operator ``lars_momentum``).
    ``momentum`` is the share of the last step.

    Parameters
    ----------
    momentum
        The share of the last step that is kept, usually 0.9.
    lars_coeff
        How far to trust the ratio of the norms.
    lars_weight_decay
        The weight decay, which also enters the ratio of the norms.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.LarsMomentum(learning_rate=1.0, momentum=0.9).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.999 0.997 0.994
    """

    type = "lars_momentum"
    accumulators = {"Velocity": Accumulator("velocity")}

    def __init__(
        self,
        learning_rate: float | Variable,
        momentum: float,
        lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = {"mu": momentum, "lars_coeff": lars_coeff, "lars_weight_decay": lars_weight_decay}


Momentum = MomentumOptimizer
LarsMomentum = LarsMomentumOptimizer
