"""DyNet's trainers: they update the parameters of a collection by the gradients that ``backward()`` left.

Formulas, defaults and the type of numbers (float32) are the same as in ``dynet/training.cc``. Gradients are
scaled down to a norm of 5 over all parameters unless ``set_clip_threshold`` says otherwise. Only parameters
that have a gradient are updated; in lookup tables, only the rows that were looked up. Then the gradients are
dropped.

==================== =============================================== ======================================
trainer              state of a parameter                            update
==================== =============================================== ======================================
SimpleSGDTrainer     none                                            w -= rate g
CyclicalSGDTrainer   none                                            the same; the rate goes up and down
MomentumSGDTrainer   h = mom h - rate g                              w += h
AdagradTrainer       s += g g                                        w -= rate g / sqrt(s + eps)
AdadeltaTrainer      s, d: averages of g g and of the steps' squares w -= g sqrt(d + eps) / sqrt(s + eps)
RMSPropTrainer       s = rho s + (1 - rho) g g                       w -= rate g / sqrt(s + eps)
AdamTrainer          m, v: averages of g and of g g                  w -= rate' m / (sqrt(v) + eps)
AmsgradTrainer       m, v, and the largest v                         the same with the largest v
==================== =============================================== ======================================

Adam's rate' is ``rate * sqrt(1 - beta_2^t) / (1 - beta_1^t)``, ``t`` the number of updates.

Parameters
----------
m
    The collection that is trained.
learning_rate
    The learning rate.
alpha
    The learning rate.
eps
    Added to divisors, against division by zero.
rho
    The share of the averages that an update keeps.
beta_1
    The share of the average of gradients that an update keeps.
beta_2
    The share of the average of squared gradients that an update keeps.
mom
    The share of the velocity that an update keeps.
learning_rate_min, learning_rate_max
    The lowest and the highest learning rate.
step_size
    The number of updates from the lowest learning rate to the highest.
gamma
    The share of the amplitude that an update keeps.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from paddlelike.collection.collection import ParameterCollection
from paddlelike.collection.parameters import Parameters
from paddlelike.errors import OperatorError

__all__ = [
    "AdadeltaTrainer",
    "AdagradTrainer",
    "AdamTrainer",
    "AmsgradTrainer",
    "CyclicalSGDTrainer",
    "MomentumSGDTrainer",
    "RMSPropTrainer",
    "SimpleSGDTrainer",
    "Trainer",
]

Array = np.ndarray[Any, Any]

_ONE = np.float32(1)


class Trainer(ABC):
    """Updates the parameters of a collection, as DyNet's ``Trainer``; a subclass defines the formula.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> m = dy.ParameterCollection()
    >>> isinstance(dy.SimpleSGDTrainer(m), dy.Trainer)
    True
    """

    state_count: ClassVar[int] = 0  # arrays of state per parameter

    def __init__(self, m: ParameterCollection, learning_rate: float) -> None:
        self._collection = m
        self._rate = np.float32(learning_rate)
        self._clip_threshold = np.float32(5)
        self._sparse = True
        self._states: dict[str, list[Array]] = {}
        self._updates = self._recent_updates = self._recent_clips = 0

    @property
    def learning_rate(self) -> float:
        """The learning rate, rounded to float32."""
        return float(self._rate)

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._rate = np.float32(value)

    def set_learning_rate(self, value: float) -> None:
        """Set the learning rate."""
        self.learning_rate = value

    def set_clip_threshold(self, thr: float) -> None:
        """Scale gradients down to this norm over all parameters; 0 or less for no limit."""
        self._clip_threshold = np.float32(max(thr, 0))

    def get_clip_threshold(self) -> float:
        """Return the largest norm of gradients, above which they are scaled down; 0 for no limit."""
        return float(self._clip_threshold)

    def set_sparse_updates(self, su: bool) -> None:
        """Update only the rows of lookup tables that were looked up (True, as at first), or all rows."""
        self._sparse = su

    def update(self) -> None:
        """Update the parameters that have a gradient, and forget the gradients.

        Raises
        ------
        OperatorError
            The gradients are not finite; nothing changes.
        """
        collection = self._collection
        owners = [*collection.parameters_list(), *collection.lookup_parameters_list()]
        updated = [one for one in owners if one.has_gradient()]
        scale = self._find_scale(updated)
        for one in updated:
            self._update(one, scale)
            one.reset_gradient()
        self._updates += 1
        self._recent_updates += 1

    def restart(self, learning_rate: float | None = None) -> None:
        """Forget momenta and averages; set the learning rate, if one is given."""
        self._states.clear()
        if learning_rate is not None:
            self.learning_rate = learning_rate

    def status(self) -> None:
        """Print the learning rate, and the latest counts of clips and updates, to standard error."""
        text = f"[lr={self._rate:g} clips={self._recent_clips} updates={self._recent_updates}] "
        sys.stderr.write(text)
        self._recent_clips = self._recent_updates = 0

    def whoami(self) -> str:
        """Return the name of the class."""
        return type(self).__name__

    def _find_scale(self, updated: list[Parameters]) -> np.float32:
        """Return the factors that scale the gradients down to the clip threshold."""
        if not self._clip_threshold:
            return _ONE
        norm = np.float32(math.sqrt(sum(float(np.sum(np.square(one.grad_as_array()))) for one in updated)))
        if not np.isfinite(norm):
            names = [one.name() for one in updated if not np.isfinite(one.grad_as_array()).all()]
            raise OperatorError(
                f"the norm of the gradients is {norm}, and nothing was updated",
                hint=f"look at the gradients of {', '.join(names[:5])}, or lower the learning rate",
            )
        if norm <= self._clip_threshold:
            return _ONE
        self._recent_clips += 1
        return np.float32(self._clip_threshold / norm)

    def _update(self, parameter: Parameters, scale: np.float32) -> None:
        value, gradient = parameter.as_array(), parameter.grad_as_array()
        state = self._states.setdefault(
            parameter.variable_name, [np.zeros_like(value) for _ in range(self.state_count)]
        )
        rows = parameter.looked_up_rows() if self._sparse else None
        if rows is None:
            self._apply(value, gradient, state, scale)
        else:
            parts = [one[rows] for one in (value, *state)]
            self._apply(parts[0], gradient[rows], parts[1:], scale)
            for whole, part in zip((value, *state), parts, strict=True):
                whole[rows] = part
        parameter.set_value(value)

    @abstractmethod
    def _apply(self, value: Array, gradient: Array, state: list[Array], scale: np.float32) -> None:
        """Change a value and its state, in place."""


def _average(state: Array, new: Array, decay: np.float32) -> None:
    """Move a decaying average towards a new value, in place."""
    state[...] = state * decay + new * (_ONE - decay)


class SimpleSGDTrainer(Trainer):
    """Stochastic gradient descent (DyNet's ``SimpleSGDTrainer``).

    >>> import numpy as np
    >>> import paddlelike.collection as dy
    >>> m = dy.ParameterCollection()
    >>> w = m.add_parameters(2, init=1.0)
    >>> trainer = dy.SimpleSGDTrainer(m, learning_rate=0.25)
    >>> _ = dy.renew_cg()
    >>> dy.squared_norm(w).backward()
    >>> trainer.update()
    >>> w.as_array().tolist()
    [0.5, 0.5]
    """

    def __init__(self, m: ParameterCollection, learning_rate: float = 0.1) -> None:
        super().__init__(m, learning_rate)

    def _apply(self, value: Array, gradient: Array, state: list[Array], scale: np.float32) -> None:
        value -= gradient * (self._rate * scale)


class CyclicalSGDTrainer(SimpleSGDTrainer):
    """Stochastic gradient descent whose rate goes up and down in triangles (Smith, 2015).

    The rate goes from ``learning_rate_min`` to ``learning_rate_max`` in ``step_size`` updates, and back in as
    many.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> m = dy.ParameterCollection()
    >>> w = m.add_parameters(2, init=1.0)
    >>> trainer = dy.CyclicalSGDTrainer(m, 0.1, 0.3)
    >>> dy.squared_norm(w).backward()
    >>> trainer.update()
    >>> bool(w.as_array()[0] < 1.0)
    True
    """

    def __init__(
        self,
        m: ParameterCollection,
        learning_rate_min: float = 0.01,
        learning_rate_max: float = 0.1,
        step_size: float = 2000,
        gamma: float = 1.0,
    ) -> None:
        super().__init__(m, learning_rate_min)
        self._low, self._high = np.float32(learning_rate_min), np.float32(learning_rate_max)
        self._step_size, self._gamma, self._step = step_size, gamma, 0

    def update(self) -> None:
        """Update the parameters, and then the learning rate. Raises the errors of :meth:`Trainer.update`."""
        super().update()
        position = np.float32(self._step / self._step_size)
        cycle = math.floor(1 + self._step / (2 * self._step_size))
        height = _ONE - abs(position - np.float32(2 * cycle) + _ONE)
        top = (self._high - self._low) * height * np.float32(self._gamma**self._step)
        self._rate = np.float32(self._low + max(top, np.float32(0)))
        self._step += 1


class MomentumSGDTrainer(Trainer):
    """Stochastic gradient descent with momentum (DyNet's ``MomentumSGDTrainer``).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> m = dy.ParameterCollection()
    >>> w = m.add_parameters(2, init=1.0)
    >>> trainer = dy.MomentumSGDTrainer(m, learning_rate=0.25, mom=0.9)
    >>> dy.squared_norm(w).backward()
    >>> trainer.update()
    >>> w.as_array().tolist()
    [0.5, 0.5]
    """

    state_count = 1

    def __init__(self, m: ParameterCollection, learning_rate: float = 0.01, mom: float = 0.9) -> None:
        super().__init__(m, learning_rate)
        self._momentum = np.float32(mom)

    def _apply(self, value: Array, gradient: Array, state: list[Array], scale: np.float32) -> None:
        (h,) = state
        h[...] = h * self._momentum - gradient * (self._rate * scale)
        value += h


class AdagradTrainer(Trainer):
    """Adagrad (Duchi et al., 2011).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> m = dy.ParameterCollection()
    >>> w = m.add_parameters(2, init=1.0)
    >>> trainer = dy.AdagradTrainer(m, learning_rate=0.5)
    >>> dy.squared_norm(w).backward()
    >>> trainer.update()
    >>> w.as_array().round(3).tolist()
    [0.5, 0.5]
    """

    state_count = 1

    def __init__(self, m: ParameterCollection, learning_rate: float = 0.1, eps: float = 1e-20) -> None:
        super().__init__(m, learning_rate)
        self._eps = np.float32(eps)

    def _apply(self, value: Array, gradient: Array, state: list[Array], scale: np.float32) -> None:
        (squares,) = state
        g = gradient * scale
        squares += g * g
        value += g / np.sqrt(squares + self._eps) * -self._rate


class AdadeltaTrainer(Trainer):
    """Adadelta (Zeiler, 2012); it has no learning rate.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> m = dy.ParameterCollection()
    >>> w = m.add_parameters(2, init=1.0)
    >>> trainer = dy.AdadeltaTrainer(m)
    >>> dy.squared_norm(w).backward()
    >>> trainer.update()
    >>> bool(w.as_array()[0] < 1.0)
    True
    """

    state_count = 2

    def __init__(self, m: ParameterCollection, eps: float = 1e-6, rho: float = 0.95) -> None:
        super().__init__(m, 1.0)
        self._eps, self._rho = np.float32(eps), np.float32(rho)

    def _apply(self, value: Array, gradient: Array, state: list[Array], scale: np.float32) -> None:
        squares, steps = state
        g = gradient * scale
        _average(squares, g * g, self._rho)
        step = -g * np.sqrt(steps + self._eps) / np.sqrt(squares + self._eps)
        _average(steps, step * step, self._rho)
        value += step


class RMSPropTrainer(Trainer):
    """RMSProp (Tieleman & Hinton, 2012).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> m = dy.ParameterCollection()
    >>> w = m.add_parameters(2, init=1.0)
    >>> trainer = dy.RMSPropTrainer(m, learning_rate=0.1)
    >>> dy.squared_norm(w).backward()
    >>> trainer.update()
    >>> bool(w.as_array()[0] < 1.0)
    True
    """

    state_count = 1

    def __init__(
        self, m: ParameterCollection, learning_rate: float = 0.001, eps: float = 1e-8, rho: float = 0.9
    ) -> None:
        super().__init__(m, learning_rate)
        self._eps, self._rho = np.float32(eps), np.float32(rho)

    def _apply(self, value: Array, gradient: Array, state: list[Array], scale: np.float32) -> None:
        (squares,) = state
        g = gradient * scale
        _average(squares, g * g, self._rho)
        value += self._rate * (-g / np.sqrt(squares + self._eps))


class AdamTrainer(Trainer):
    """Adam (Kingma & Ba, 2014).

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> m = dy.ParameterCollection()
    >>> w = m.add_parameters(2, init=1.0)
    >>> trainer = dy.AdamTrainer(m, alpha=0.5)
    >>> dy.squared_norm(w).backward()
    >>> trainer.update()
    >>> w.as_array().round(3).tolist()
    [0.5, 0.5]
    """

    state_count = 2

    def __init__(
        self,
        m: ParameterCollection,
        alpha: float = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(m, alpha)
        self._beta_1, self._beta_2, self._eps = map(np.float32, (beta_1, beta_2, eps))

    def _apply(self, value: Array, gradient: Array, state: list[Array], scale: np.float32) -> None:
        mean, square, *largest = state
        g = gradient * scale
        _average(mean, g, self._beta_1)
        _average(square, g * g, self._beta_2)
        if largest:
            np.maximum(largest[0], square, out=largest[0])
        count = self._updates + 1
        corrected = math.sqrt(1 - float(self._beta_2) ** count) / (1 - float(self._beta_1) ** count)
        rate = np.float32(float(self._rate) * corrected)
        value -= mean / (np.sqrt(largest[0] if largest else square) + self._eps) * rate


class AmsgradTrainer(AdamTrainer):
    """AMSGrad (Reddi et al., 2018): Adam with the largest average of squares so far.

    >>> import paddlelike.collection as dy
    >>> _ = dy.renew_cg()
    >>> m = dy.ParameterCollection()
    >>> w = m.add_parameters(2, init=1.0)
    >>> trainer = dy.AmsgradTrainer(m, alpha=0.5)
    >>> dy.squared_norm(w).backward()
    >>> trainer.update()
    >>> w.as_array().round(3).tolist()
    [0.5, 0.5]
    """

    state_count = 3
