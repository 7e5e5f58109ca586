"""RMSProp: steps scaled by a moving mean of squared gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.clip import GradientClipBase
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.optimizer.base import Optimizer
from paddlelike.optimizer.state import Accumulator

if TYPE_CHECKING:
    from paddlelike.regularizer import WeightDecayRegularizer

__all__ = ["RMSProp", "RMSPropOptimizer"]


class RMSPropOptimizer(Optimizer):
    """RMSProp: ``v = momentum * v + learning_rate * g / sqrt(ms + epsilon); p -= v`` (operator ``rmsprop``).

    ``ms = rho * ms + (1 - rho) * g * g``; with ``centered`` the square of the mean gradient is subtracted
    from it (Hinton, Neural networks for machine learning, lecture 6).

    Parameters
    ----------
    rho
        The share of the average of squares that each step keeps.
    epsilon
        Added to the average under the root, against division by zero.
    momentum
        The share of the last step that is kept.
    centered
        Whether the square of the mean gradient is subtracted from the average of squares.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.RMSProp(learning_rate=0.1).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.553 0.233 -0.032
    """

    type = "rmsprop"
    accumulators = {
        "Moment": Accumulator("momentum"),
        "MeanSquare": Accumulator("mean_square"),
        "MeanGrad": Accumulator("mean_grad"),
    }

    def __init__(
        self,
        learning_rate: float | Variable,
        rho: float = 0.95,
        epsilon: float = 1.0e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = {"epsilon": epsilon, "decay": rho, "momentum": momentum, "centered": centered}


RMSProp = RMSPropOptimizer
