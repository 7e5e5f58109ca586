"""RecomputeOptimizer: saves memory by computing activations twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.framework.graph.operator import Operator
from paddlelike.framework.graph.program import Program
from paddlelike.framework.graph.variable import Parameter, Variable
from paddlelike.optimizer.base import Optimizer
from paddlelike.optimizer.state import ParamGrads

__all__ = ["RecomputeOptimizer"]


class RecomputeOptimizer(Optimizer):
    """Minimizes by ``optimizer``; of the activations only the checkpoints stay in memory.

    Those between two checkpoints are computed again when the backward pass needs them, so that a step takes
    about a third more time.

    Parameters
    ----------
    optimizer
        The optimizer that updates the parameters.

    >>> import paddlelike as fluid
    >>> hidden = [fluid.data("x", [None, 4])]
    >>> for _ in range(4):
    ...     hidden.append(fluid.layers.fc(hidden[-1], 4, act="relu"))
    >>> optimizer = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
    >>> optimizer._set_checkpoints([hidden[2], hidden[4]])
    >>> updates, gradients = optimizer.minimize(fluid.layers.mean(hidden[4]))
    >>> len(gradients)
    8
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._checkpoints: Sequence[Variable | str] | None = None
        self._learning_rate = optimizer._learning_rate
        self._learning_rate_map = optimizer._learning_rate_map

    def _set_checkpoints(self, checkpoints: Sequence[Variable | str]) -> None:
        """Declare the activations that stay in memory."""
        self._checkpoints = checkpoints

    def load(self, stat_dict: object) -> NoReturn:
        """Raise UnsupportedError, as in Fluid."""
        raise UnsupportedError("RecomputeOptimizer.load is not supported", hint="use fluid.load")

    def minimize(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
    ) -> tuple[list[Operator], ParamGrads]:
        """Minimize by the optimizer inside. Raises GraphError when no checkpoints are declared."""
        if self._checkpoints is None:
            raise GraphError(
                "RecomputeOptimizer: no checkpoints are set",
                hint="call optimizer._set_checkpoints([variable, ...]) with the activations to keep",
            )
        params_grads = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_optimize(loss, startup_program, params_grads), params_grads

    def backward(
        self,
        loss: Variable,
        startup_program: Program | None = None,
        parameter_list: Sequence[Parameter | str] | None = None,
        no_grad_set: Iterable[Variable | str] | None = None,
        callbacks: Sequence[Callable[..., None]] | None = None,
    ) -> ParamGrads:
        """Append the backward pass, and return pairs of parameter and gradient."""
        self._optimizer._checkpoints = self._checkpoints
        return self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads: ParamGrads) -> list[Operator]:
        """Append clips, decay and updates, and return the latter."""
        return self._optimizer.apply_gradients(params_grads)

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: ParamGrads
    ) -> list[Operator]:
        """Append clips, decay and updates in the program of ``loss``, and return the latter."""
        return self._optimizer.apply_optimize(loss, startup_program, params_grads)

    def get_opti_var_name_list(self) -> list[str]:
        """Return the names of the accumulators."""
        return self._optimizer.get_opti_var_name_list()
