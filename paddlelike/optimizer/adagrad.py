"""Adagrad, DecayedAdagrad and Adadelta: steps scaled by the size of past gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.clip import GradientClipBase
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.framework.quirks import warn_quirk
from paddlelike.optimizer.base import Optimizer
from paddlelike.optimizer.state import Accumulator

if TYPE_CHECKING:
    from paddlelike.regularizer import WeightDecayRegularizer

__all__ = [
    "Adadelta",
    "AdadeltaOptimizer",
    "Adagrad",
    "AdagradOptimizer",
    "DecayedAdagrad",
    "DecayedAdagradOptimizer",
]


class AdagradOptimizer(Optimizer):
    """Adagrad: ``m += g * g; p -= learning_rate * g / (sqrt(m) + epsilon)`` (operator ``adagrad``).

    Duchi et al., Adaptive subgradient methods, 2011. ``m`` starts at ``initial_accumulator_value``.

    Parameters
    ----------
    epsilon
        Added to the root of the sum, against division by zero.
    initial_accumulator_value
        The value at which the sum of squares starts.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.Adagrad(learning_rate=0.1).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.900 0.829 0.772
    """

    type = "adagrad"

    def __init__(
        self,
        learning_rate: float | Variable,
        epsilon: float = 1.0e-6,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = {"epsilon": epsilon}
        self.accumulators = {"Moment": Accumulator("moment", initial_accumulator_value)}


class DecayedAdagradOptimizer(Optimizer):
    """Adagrad with decaying sums: ``m = decay * m + (1 - decay) * g * g`` (operator ``decayed_adagrad``).

    ``p -= learning_rate * g / (sqrt(m) + epsilon)``.

    Parameters
    ----------
    decay
        The share of the sum of squares that each step keeps.
    epsilon
        Added to the root of the sum, against division by zero.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.DecayedAdagrad(learning_rate=0.01).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.955 0.923 0.897
    """

    type = "decayed_adagrad"
    accumulators = {"Moment": Accumulator("moment")}

    def __init__(
        self,
        learning_rate: float | Variable,
        decay: float = 0.95,
        epsilon: float = 1.0e-6,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._attrs = {"decay": decay, "epsilon": epsilon}


class AdadeltaOptimizer(Optimizer):
    """Adadelta: gradients scaled by the ratio of past steps and past gradients (operator ``adadelta``).

    Zeiler, ADADELTA: an adaptive learning rate method, 2012. As in Fluid ``learning_rate`` is not used.
    ``rho`` is the decay of the two moving means of squares, ``epsilon`` is added to them.

    Parameters
    ----------
    epsilon
        Added to both averages before their roots are taken.
    rho
        The share of both averages that each step keeps.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.Adadelta(learning_rate=1.0, rho=0.9).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(5)))  # gradients of 1
    0.996 0.992 0.988 0.984 0.980
    """

    type = "adadelta"
    accumulators = {
        "AvgSquaredGrad": Accumulator("_avg_squared_grad"),
        "AvgSquaredUpdate": Accumulator("_avg_squared_update"),
    }

    def __init__(
        self,
        learning_rate: float | Variable,
        epsilon: float = 1.0e-6,
        rho: float = 0.95,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        warn_quirk("adadelta_step")
        self._attrs = {"epsilon": epsilon, "rho": rho}


Adagrad = AdagradOptimizer
DecayedAdagrad = DecayedAdagradOptimizer
Adadelta = AdadeltaOptimizer
