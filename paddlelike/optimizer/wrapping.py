"""Optimizers that wrap another one, and Fluid's optimizers that need several devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from paddlelike.core import Versioned
from paddlelike.errors import GraphError, UnsupportedError
from paddlelike.foundation.keyword_options import NearKeywords
from paddlelike.framework import (
    Block,
    Operator,
    Parameter,
    Program,
    Variable,
    default_startup_program,
    program_guard,
)
from paddlelike.layers.control.branches import Switch
from paddlelike.layers.elementwise.binary import (
    elementwise_add,
    elementwise_mod,
    elementwise_mul,
    elementwise_sub,
)
from paddlelike.layers.emit import emit
from paddlelike.layers.tensor.assign import assign, create_global_var
from paddlelike.layers.tensor.constant import fill_constant
from paddlelike.optimizer.base import Optimizer
from paddlelike.optimizer.state import ParamGrads

__all__ = ["DGCMomentumOptimizer", "LookaheadOptimizer", "PipelineOptimizer", "RecomputeOptimizer"]


class LookaheadOptimizer(NearKeywords, Versioned):
    """After every ``k`` steps of ``inner_optimizer``: ``slow += alpha * (fast - slow); fast = slow``.

    Zhang et al., Lookahead optimizer: k steps forward, 1 step back, 2019. The slow weights are
    ``<parameter>@SLOW``. As in Fluid these operators belong to the forward part: create the test program with
    ``clone(for_test=True)`` before ``minimize``.

    Parameters
    ----------
    inner_optimizer
        The optimizer that makes the fast steps.
    alpha
        The share of the distance to the fast weights that the slow weights move.
    k
        The number of fast steps between two slow steps.

    Raises
    ------
    GraphError
        ``inner_optimizer`` is None, ``alpha`` is not between 0 and 1, or ``k`` is not a positive int.

    >>> import paddlelike as fluid
    >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 3]), 1))
    >>> optimizer = fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha=0.5, k=5)
    >>> updates, gradients = optimizer.minimize(loss)
    >>> [p.name for p in fluid.default_main_program().list_vars() if p.name.endswith("@SLOW")]
    ['fc_0.w_0@SLOW', 'fc_0.b_0@SLOW']
    """

    def __init__(self, inner_optimizer: Optimizer, alpha: float = 0.5, k: int = 5) -> None:
        if inner_optimizer is None:
            raise GraphError("LookaheadOptimizer: inner_optimizer is None, expected an optimizer")
        if not 0.0 <= alpha <= 1.0:
            raise GraphError(f"LookaheadOptimizer: alpha is {alpha}, expected 0.0 .. 1.0")
        if not isinstance(k, int) or k <= 0:
            raise GraphError(f"LookaheadOptimizer: k is {k!r}, expected an int of 1 or more")
        self.inner_optimizer = inner_optimizer
        self.alpha = alpha
        self.k = k
        self.type = "lookahead"

    def minimize(
        self, loss: Variable, startup_program: Program | None = None
    ) -> tuple[list[Operator], ParamGrads]:
        """Minimize with the inner optimizer and append the slow weights; return the result of the inner
        optimizer.

        Raises the errors of the inner optimizer's ``minimize``.
        """
        result = self.inner_optimizer.minimize(loss, startup_program=startup_program)
        startup = default_startup_program() if startup_program is None else startup_program
        pairs = _create_slow_weights(loss.block.program, startup)
        with program_guard(loss.block.program, startup):
            self._update_slow_weights(pairs)
        return result

    def _update_slow_weights(self, pairs: list[tuple[Variable, Variable]]) -> None:
        """Append the operators that update the slow weights every ``k`` steps."""
        k = create_global_var([1], int(self.k), "int32", persistable=True, name="lookahead_k")
        alpha = create_global_var([1], self.alpha, "float32", persistable=True, name="lookahead_alpha")
        step = create_global_var([1], 0, "int32", persistable=True, name="lookahead_step")
        emit("increment", {"X": step}, {"step": 1.0}, out=step)
        zero = fill_constant([1], "float32", 0.0)
        one = fill_constant([1], "float32", 1.0)
        phase = elementwise_mod(step, k)
        with Switch() as switch:
            with switch.case(phase == zero):
                for fast, slow in pairs:
                    near = elementwise_mul(fast, alpha)
                    rest = elementwise_sub(one, alpha)
                    far = elementwise_mul(slow, rest)
                    mean = elementwise_add(near, far)
                    assign(mean, output=slow)
                    assign(mean, output=fast)
            with switch.default():
                pass


def _create_slow_weights(main: Program, startup: Program) -> list[tuple[Variable, Variable]]:
    """Return the parameters with their slow weights, which are initialized as copies."""
    pairs = [(fast, _create_slow_weight(main.global_block(), fast)) for fast in main.all_parameters()]
    first = startup.global_block()
    for fast, _ in pairs:
        twin = _create_slow_weight(first, fast)
        first.append_op(type="assign", inputs={"X": first.var(fast.name)}, outputs={"Out": twin})
    return list(pairs)


def _create_slow_weight(block: Block, fast: Variable) -> Variable:
    return block.create_var(name=f"{fast.name}@SLOW", shape=fast.shape, dtype=fast.dtype, persistable=True)


class RecomputeOptimizer(Optimizer):
    """Minimizes with ``optimizer``, and keeps only some activations, the checkpoints, in memory.

    The activations between two checkpoints are computed again when the backward pass needs them, so that a
    step takes about a third more time. Chen et al., Training deep nets with sublinear memory cost, 2016.

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
        """Minimize with the wrapped optimizer. Raises GraphError when no checkpoints are declared."""
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
        """Append clips, decay and updates, and return the updates."""
        return self._optimizer.apply_gradients(params_grads)

    def apply_optimize(
        self, loss: Variable, startup_program: Program | None, params_grads: ParamGrads
    ) -> list[Operator]:
        """Append clips, decay and updates in the program of ``loss``, and return the updates."""
        return self._optimizer.apply_optimize(loss, startup_program, params_grads)

    def get_opti_var_name_list(self) -> list[str]:
        """Return the names of the accumulators."""
        return self._optimizer.get_opti_var_name_list()


class DGCMomentumOptimizer:
    """Deep gradient compression between GPUs. It is not supported.

    Lin et al., Deep gradient compression, 2017.

    Raises
    ------
    UnsupportedError
        Always: it compresses gradients between GPUs.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise UnsupportedError(
            "DGCMomentumOptimizer compresses gradients between GPUs, which are not supported",
            hint="Momentum does the same steps without compression",
        )


class PipelineOptimizer:
    """Sections of a network on several devices. They are not supported.

    Huang et al., GPipe, 2018.

    Raises
    ------
    UnsupportedError
        Always: a network runs on one device.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise UnsupportedError(
            "PipelineOptimizer runs sections of a network on several devices, but there is only one here",
            hint="minimize with the optimizer inside; the results are the same",
        )
