"""FTRL: follow the regularized leader."""

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

__all__ = ["Ftrl", "FtrlOptimizer"]


class FtrlOptimizer(Optimizer):
    """FTRL: weights become exactly zero where ``l1`` dominates (operator ``ftrl``).

    McMahan et al., Ad click prediction: a view from the trenches, 2013. Fluid 1.8 passes ``l1`` as ``l2``
    to the operator; so does this one, with a warning when they differ. ``lr_power`` is the power of the sum
    of squared gradients that divides ``learning_rate``, -0.5 in the paper.

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
