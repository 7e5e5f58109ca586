"""Steps scaled by the squares of earlier gradients: Adagrad, Adadelta, RMSProp, FTRL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlelike.clip import GradientClipBase
from paddlelike.framework import Parameter, Variable, warn_quirk
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
    "Ftrl",
    "FtrlOptimizer",
    "RMSProp",
    "RMSPropOptimizer",
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


class FtrlOptimizer(Optimizer):
    """FTRL: weights become exactly zero where ``l1`` dominates (operator ``ftrl``).

    McMahan et al., Ad click prediction: a view from the trenches, 2013. Fluid 1.8 passes ``l1`` as ``l2`` to
    the operator; so does this class, with a warning when they differ. ``lr_power`` is the power of the sum of
    squared gradients that divides ``learning_rate``, -0.5 in the paper.

    Parameters
    ----------
    l1
        The strength of the L1 penalty, which makes weights exactly zero.
    l2
        The strength of the L2 penalty.
    lr_power
        The power of the sum of squares that divides the learning rate.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.Ftrl(learning_rate=0.1).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.900 0.829 0.772
    """

    type = "ftrl"
    accumulators = {"SquaredAccumulator": Accumulator("squared"), "LinearAccumulator": Accumulator("linear")}

    def __init__(
        self,
        learning_rate: float | Variable,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        if l2 != l1 and warn_quirk("ftrl_l2"):
            l2 = l1
        self._attrs = {"l1": l1, "l2": l2, "lr_power": lr_power}


Ftrl = FtrlOptimizer
