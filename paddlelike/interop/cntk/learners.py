"""The learners of CNTK that Paddle lacks, as optimizers.

Each computes a step by Paddle's operators, and ``sgd`` subtracts it, so that the program runs in Paddle too.
CNTK adds up the gradients of a minibatch and divides the rate by its size ``N``. So in these formulas ``g = N
* gradient``, and the optimizers need ``batch_size``.

================ ========================================================= ===============================
learner          state of a parameter                                      step
================ ========================================================= ===============================
AdagradLearner   a += g g                                                  (g / sqrt(a)) / mean(1 / sqrt(a))
AdadeltaLearner  a, x: averages of g g and of the squares of steps         g sqrt(x + eps) / sqrt(a + eps)
RMSPropLearner   a: average of g g; s: sign of g; w: weights, which grow   (g w / sqrt(a)) / mean(w / sqrt(a))
                 while the sign stays, and shrink when it changes
FSAdagradLearner a, m: averages; c: average of N                           m of g min(sqrt(c / a), 10)
================ ========================================================= ===============================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from paddlelike import layers
from paddlelike.foundation.docstrings import complete_docstring, read_entries
from paddlelike.framework import Block, Operator, Parameter, Variable
from paddlelike.optimizer.base import Optimizer

if TYPE_CHECKING:
    from paddlelike.optimizer.state import ParamGrad

#: The state of each learner in the order of CNTK's arrays; ``count`` is its smoothed count.
STATES: Final = {
    "cntk_adagrad": ("squares",),
    "cntk_adadelta": ("squares", "steps"),
    "cntk_rmsprop": ("squares", "signs", "weights"),
    "cntk_fsadagrad": ("squares", "momenta"),
}
COUNTED: Final = ("cntk_rmsprop", "cntk_fsadagrad")
_LARGE: Final = 1e30
_FIRST_WEIGHT: Final = 0.02  # of RMSProp


class _Learner(Optimizer, ABC):
    """Base class of learners: operators compute a step from a gradient, and ``sgd`` subtracts it.

    Parameters
    ----------
    learning_rate
        The learning rate of a minibatch: a float, or a variable of shape (1,).
    batch_size
        The number of samples of a minibatch, by which CNTK's formulas multiply the mean gradient.
    """

    kind: ClassVar[str]
    type = "sgd"

    def __init__(self, learning_rate: float | Variable, batch_size: int) -> None:
        super().__init__(learning_rate)
        self._batch_size = batch_size

    def _create_accumulators(self, block: Block, parameters: list[Parameter]) -> None:
        for parameter in parameters:
            for state in STATES[self.kind]:
                first = _FIRST_WEIGHT if state == "weights" else 0.0
                self._add_accumulator(f"{self.kind}_{state}", parameter, fill_value=first)
            if self.kind in COUNTED:
                self._add_accumulator(f"{self.kind}_count", parameter, fill_value=0.0, shape=[1])

    def _append_optimize_op(self, block: Block, param_and_grad: ParamGrad) -> Operator:
        param, grad = param_and_grad
        total = layers.scale(grad, scale=float(self._batch_size))
        step = layers.scale(self._make_step(param, total), scale=1.0 / self._batch_size)
        inputs = {"Param": param, "Grad": step, "LearningRate": self._create_param_lr(param_and_grad)}
        return block.append_op(type="sgd", inputs=inputs, outputs={"ParamOut": param})

    @abstractmethod
    def _make_step(self, param: Parameter, g: Variable) -> Variable:
        """Return the step of a parameter at a learning rate of 1; ``g`` is a sum of gradients."""

    def _state(self, param: Parameter, name: str) -> Variable:
        return self._get_accumulator(f"{self.kind}_{name}", param)


class AdagradLearner(_Learner):
    """CNTK's ``adagrad``: steps shrink by the root of the sum of squared gradients.

    Parameters
    ----------
    need_ave_multiplier
        Whether steps are divided by the mean of the gradients' factors.

    See Also
    --------
    fluid.training.AdadeltaLearner, fluid.training.FSAdagradLearner, fluid.training.RMSPropLearner
    fluid.training.Trainer

    >>> learner = AdagradLearner(0.1, batch_size=32)
    """

    kind = "cntk_adagrad"

    def __init__(
        self, learning_rate: float | Variable, batch_size: int, need_ave_multiplier: bool = True
    ) -> None:
        super().__init__(learning_rate, batch_size)
        self._need_ave_multiplier = need_ave_multiplier

    def _make_step(self, param: Parameter, g: Variable) -> Variable:
        squares = self._state(param, "squares")
        layers.assign(layers.elementwise_add(squares, layers.square(g)), squares)
        return _weigh(g, layers.rsqrt(layers.scale(squares, bias=1e-16)), mean=self._need_ave_multiplier)


class AdadeltaLearner(_Learner):
    """CNTK's ``adadelta``. Its default learning rate is 1 per sample, which is ``batch_size`` here.

    Parameters
    ----------
    rho
        The decay of both averages.
    epsilon
        Added to both averages before their roots.

    See Also
    --------
    fluid.training.AdagradLearner, fluid.training.FSAdagradLearner, fluid.training.RMSPropLearner
    fluid.training.Trainer

    >>> learner = AdadeltaLearner(32.0, batch_size=32)
    """

    kind = "cntk_adadelta"

    def __init__(
        self, learning_rate: float | Variable, batch_size: int, rho: float = 0.95, epsilon: float = 1e-8
    ) -> None:
        super().__init__(learning_rate, batch_size)
        self._rho, self._epsilon = rho, epsilon

    def _make_step(self, param: Parameter, g: Variable) -> Variable:
        squares, steps = self._state(param, "squares"), self._state(param, "steps")
        _average(squares, layers.square(g), self._rho)
        ratio = layers.elementwise_div(
            layers.sqrt(layers.scale(steps, bias=self._epsilon)),
            layers.sqrt(layers.scale(squares, bias=self._epsilon)),
        )
        step = layers.elementwise_mul(g, ratio)
        _average(steps, layers.square(step), self._rho)
        return step


class RMSPropLearner(_Learner):
    """CNTK's ``rmsprop``, whose weights follow the signs of gradients.

    Parameters
    ----------
    gamma
        The decay of the average of squares.
    inc, dec
        The factors of a weight whose gradient keeps or changes its sign.
    max, min
        The limits of the weights.
    need_ave_multiplier
        Whether steps are divided by the mean of the gradients' factors.

    See Also
    --------
    fluid.training.AdadeltaLearner, fluid.training.AdagradLearner, fluid.training.FSAdagradLearner
    fluid.training.Trainer

    >>> learner = RMSPropLearner(0.1, batch_size=32, gamma=0.9, inc=1.2, dec=0.5, max=10.0, min=0.1)
    """

    kind = "cntk_rmsprop"

    def __init__(
        self,
        learning_rate: float | Variable,
        batch_size: int,
        gamma: float,
        inc: float,
        dec: float,
        max: float,  # noqa: A002  (CNTK's names)
        min: float,  # noqa: A002
        need_ave_multiplier: bool = True,
    ) -> None:
        super().__init__(learning_rate, batch_size)
        self._gamma, self._inc, self._dec, self._max, self._min = gamma, inc, dec, max, min
        self._need_ave_multiplier = need_ave_multiplier

    def _make_step(self, param: Parameter, g: Variable) -> Variable:
        squares, signs, weights = (self._state(param, name) for name in STATES[self.kind])
        count = self._state(param, "count")
        square = layers.square(g)
        is_first = layers.cast(layers.equal(count, layers.fill_constant([1], count.dtype, 0)), g.dtype)
        begun = layers.elementwise_add(squares, layers.elementwise_mul(square, is_first))
        layers.assign(begun, squares)
        _average(squares, square, self._gamma)
        sign = layers.sign(g)
        agrees = layers.relu(layers.elementwise_mul(signs, sign))  # 1 where the sign has stayed, else 0
        larger = layers.clip(layers.scale(weights, scale=self._inc), -_LARGE, self._max)
        smaller = layers.clip(layers.scale(weights, scale=self._dec), self._min, _LARGE)
        gained = layers.elementwise_mul(layers.elementwise_sub(larger, smaller), agrees)
        layers.assign(layers.elementwise_add(smaller, gained), weights)
        layers.assign(sign, signs)
        layers.assign(layers.scale(count, bias=1.0), count)
        factor = layers.elementwise_mul(weights, layers.rsqrt(layers.scale(squares, bias=1e-6)))
        return _weigh(g, factor, mean=self._need_ave_multiplier)


class FSAdagradLearner(_Learner):
    """CNTK's ``fsadagrad``; both momenta apply to a minibatch.

    Parameters
    ----------
    momentum
        The decay of the steps' average for each minibatch.
    variance_momentum
        The decay of the squares' average for each minibatch.
    unit_gain
        Whether new gradients enter the average with the factor ``1 - momentum``.

    See Also
    --------
    fluid.training.AdadeltaLearner, fluid.training.AdagradLearner, fluid.training.RMSPropLearner
    fluid.training.Trainer

    >>> learner = FSAdagradLearner(0.1, batch_size=32, momentum=0.9, variance_momentum=0.99)
    """

    kind = "cntk_fsadagrad"

    def __init__(
        self,
        learning_rate: float | Variable,
        batch_size: int,
        momentum: float,
        variance_momentum: float,
        unit_gain: bool = True,
    ) -> None:
        super().__init__(learning_rate, batch_size)
        self._momentum, self._variance_momentum, self._unit_gain = momentum, variance_momentum, unit_gain

    def _make_step(self, param: Parameter, g: Variable) -> Variable:
        squares, momenta, count = (self._state(param, name) for name in ("squares", "momenta", "count"))
        rest = 1 - self._variance_momentum
        layers.assign(layers.scale(count, self._variance_momentum, bias=rest * self._batch_size), count)
        _average(squares, layers.square(g), self._variance_momentum)
        inverse = layers.rsqrt(layers.clip(squares, 1e-37, _LARGE))
        weight = layers.clip(layers.elementwise_mul(inverse, layers.sqrt(count)), 0.0, 10.0)
        weighed = layers.elementwise_mul(g, weight)
        gain = 1 - self._momentum if self._unit_gain else 1.0
        before = layers.scale(momenta, scale=self._momentum)
        layers.assign(layers.elementwise_add(before, layers.scale(weighed, scale=gain)), momenta)
        return momenta


def _average(average: Variable, value: Variable, decay: float) -> None:
    """Set ``average`` to ``decay * average + (1 - decay) * value``.

    CNTK computes ``1 - decay`` in float32, which is 0.2 % off for FSAdaGrad's default.
    """
    kept = layers.scale(average, scale=decay)
    rest = float(np.float32(1) - np.float32(decay))
    layers.assign(layers.elementwise_add(kept, layers.scale(value, scale=rest)), average)


def _weigh(g: Variable, factor: Variable, *, mean: bool) -> Variable:
    """Return ``g * factor``, on request divided by the mean of the factors."""
    step = layers.elementwise_mul(g, factor)
    return layers.elementwise_div(step, layers.reduce_mean(factor)) if mean else step


for _class in (AdadeltaLearner, AdagradLearner, FSAdagradLearner, RMSPropLearner):
    complete_docstring(_class, read_entries(_Learner))
