"""Gradient descent, with and without momentum."""

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
    "SGD",
    "Dpsgd",
    "DpsgdOptimizer",
    "LarsMomentum",
    "LarsMomentumOptimizer",
    "Momentum",
    "MomentumOptimizer",
    "SGDOptimizer",
]


class SGDOptimizer(Optimizer):
    """Gradient descent: ``p -= learning_rate * g`` (operator ``sgd``).

    A sparse gradient updates only its rows.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> _ = fluid.optimizer.SGD(learning_rate=0.1).minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.900 0.800 0.700
    """

    type = "sgd"

    def __init__(
        self,
        learning_rate: float | Variable,
        parameter_list: Sequence[Parameter | str] | None = None,
        regularization: WeightDecayRegularizer | None = None,
        grad_clip: GradientClipBase | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)


class DpsgdOptimizer(Optimizer):
    """Gradient descent with differential privacy: clipped gradients plus noise (operator ``dpsgd``).

    ``p -= learning_rate * (g / max(1, |g| / clip) + noise / batch_size)``, ``noise ~ N(0, sigma)`` (Abadi
    et al., Deep learning with differential privacy, 2016). The defaults are Fluid's; set ``batch_size`` to
    the number of samples per step and ``sigma`` to the noise that privacy requires.

    Parameters
    ----------
    clip
        The largest norm of a gradient; a larger one is scaled down to it.
    batch_size
        The number of samples per step, by which the noise is divided.
    sigma
        The ``sigma`` of the noise. With the default there is almost no noise.

    >>> import paddlelike as fluid
    >>> one = fluid.initializer.Constant(1.0)
    >>> w = fluid.layers.create_parameter([1], "float32", default_initializer=one)
    >>> private = fluid.optimizer.Dpsgd(learning_rate=0.1, clip=0.5, batch_size=1.0, sigma=0.0)
    >>> _ = private.minimize(fluid.layers.mean(w))
    >>> exe = fluid.Executor()
    >>> _ = exe.run(fluid.default_startup_program())
    >>> print(*(f"{exe.run(fetch_list=[w])[0][0]:.3f}" for _ in range(3)))  # gradients of 1
    0.950 0.900 0.850
    """

    type = "dpsgd"

    def __init__(
        self,
        learning_rate: float | Variable = 0.001,
        clip: float = 0.9,
        batch_size: float = 0.999,
        sigma: float = 1e-8,
        parameter_list: Sequence[Parameter | str] | None = None,
    ) -> None:
        super().__init__(learning_rate, parameter_list)
        warn_quirk("dpsgd_noise")
        self._attrs = {"clip": clip, "batch_size": batch_size, "sigma": sigma, "seed": 0}


SGD = SGDOptimizer
Dpsgd = DpsgdOptimizer


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

    Parameters
    ----------
    momentum
        The share of the last step that is kept, usually 0.9.
    lars_coeff
        The coefficient of the ratio of the norms.
    lars_weight_decay
        The factor of the weight decay, which also enters the ratio of the norms.

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
